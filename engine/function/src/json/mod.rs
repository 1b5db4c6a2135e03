//! JSON documents as text: paths into them, the values that a path names, changes of them, and
//! conversions to and from SQL values.
//!
//! A document is text in its normal form (`nacre_types::json`). Everything here reads it token by
//! token, and nothing is recursive: how deep a document is costs no stack.

pub mod contain;
pub mod convert;
pub mod edit;
pub mod merge;
pub mod outline;
pub mod path;
pub mod pretty;
pub mod select;
mod tree;
