//! Bulk loads and updates: rows that go straight into segments.

mod added;
pub(crate) mod bulk_load;
pub(crate) mod bulk_update;
pub(crate) mod common_keys;
mod comparison;
mod contested;
mod inside;
mod key_sort;
mod key_walk;
pub(crate) mod loaded;
pub(crate) mod loader;
mod met;
mod pending;
mod publish;
pub(crate) mod same_keys;
pub(crate) mod staged;
mod watch;
mod write;
