//! The `nacre` command as its users run it: processes, exit codes, files.
#![allow(clippy::unwrap_used)]

mod blobs;
mod database;
mod export;
mod folder;
mod import;
mod readme;
mod readme_example;
mod sql;
mod tiers_page;
