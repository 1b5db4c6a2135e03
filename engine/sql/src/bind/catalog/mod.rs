//! Queries that the catalog alone answers: `SHOW`, `DESCRIBE` and `information_schema`.

pub(super) mod information_schema;
pub(super) mod show;
