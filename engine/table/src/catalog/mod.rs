//! What the database has: tables by name and id, views, and every change of a schema.

pub(crate) mod contents;
pub(crate) mod indexes;
pub(crate) mod registry;
pub(crate) mod tables;
mod verify;
pub(crate) mod views;
