//! Tables: one version of a schema, its partitions, their segments, and the assignment of rows to
//! partitions.

pub(crate) mod agenda;
pub(crate) mod common;
pub(crate) mod counter;
pub(crate) mod gate;
mod in_memory;
pub(crate) mod journal;
mod lifetime;
pub(crate) mod new_rows;
pub(crate) mod partition;
pub(crate) mod reference_locks;
pub(crate) mod reservations;
pub(crate) mod row_key;
pub(crate) mod row_source;
pub(crate) mod run;
pub(crate) mod segment_count;
pub(crate) mod segment_list;
pub(crate) mod sharding;
pub(crate) mod statistics;
pub(crate) mod version;
