//! Functions of JSON documents.

mod arguments;
pub mod build;
pub mod change;
pub mod get;
pub mod inspect;
