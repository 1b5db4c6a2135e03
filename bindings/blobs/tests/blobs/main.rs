//! Tests of the blob stores: in a folder, on a server that answers as a test says, and on a real one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end in a panic")]

mod failures;
mod folder;
mod requests;
mod s3;
mod support;
