//! Queries answered from the catalog alone: `SHOW`, `DESCRIBE` and `information_schema`.

pub(super) mod information_schema;
pub(super) mod keys;
mod references;
pub(super) mod rows;
pub(super) mod show;
pub(super) mod sqlite;
