//! Transactions: snapshot isolation, row locks, first committer wins.

mod catalog_changes;
mod changes;
mod claimed;
mod claiming;
mod core;
mod ddl;
pub(crate) mod handle;
pub(crate) mod hidden;
pub(crate) mod key_changes;
mod keyed;
mod locking;
pub(crate) mod manager;
pub(crate) mod moves;
pub(crate) mod own_segments;
mod references;
mod rekey;
pub(crate) mod step;
pub(crate) mod temporary_tables;
mod unique;
mod write_set;
mod written_partitions;
