//! What the tidy tests share: the project's files, its Rust source as syntax trees, the graphs of
//! its imports, and the counts that `npm run tidy` prints.
//!
//! The rules themselves are in `tests/`, one file a subject. They look at text and at
//! `cargo metadata`; they run nothing of the product.

pub mod circles;
pub mod graph;
pub mod imports;
pub mod measure;
pub mod modules;
pub mod project;
pub mod script;
pub mod source;

pub use project::{files, files_ending, is_test_file, metadata, packages, read, root};
pub use source::without_tests;
