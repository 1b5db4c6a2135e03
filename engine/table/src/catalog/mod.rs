//! The catalog of a database: tables by name and id, views, and schema changes.

pub(crate) mod contents;
pub(crate) mod indexes;
pub(crate) mod registry;
pub(crate) mod tables;
pub(crate) mod to_verify;
mod unique;
pub(crate) mod verify;
pub(crate) mod views;
