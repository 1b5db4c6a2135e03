//! Bulk loads: rows that go straight into segments.

pub(crate) mod bulk_load;
pub(crate) mod common_keys;
mod duplicates;
pub(crate) mod loaded;
pub(crate) mod loader;
mod locks;
mod one_by_one;
mod pending;
mod publish;
mod unique;
mod write;
