//! Background work, driven by the host: flushes, merges, index builds, snapshots, removal of files;
//! and `check`.

pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod context;
mod failed;
pub(crate) mod flush;
mod flush_order;
pub(crate) mod hash_build;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod merge_all;
pub(crate) mod merge_plan;
mod merge_source;
pub(crate) mod part_build;
pub(crate) mod pressure;
pub(crate) mod scheduler;
pub(crate) mod snapshot;
mod written;
