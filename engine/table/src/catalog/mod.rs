//! What the database has: tables by name and id, views, and every change of a schema.

pub(crate) mod alter;
pub(crate) mod indexes;
pub(crate) mod statistics;
pub(crate) mod views;
