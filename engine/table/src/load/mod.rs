//! Bulk loads: rows that go straight into segments.

pub(crate) mod bulk_load;
pub(crate) mod common_keys;
mod create;
mod locks;
pub(crate) mod unique;
