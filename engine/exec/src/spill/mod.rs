//! Rows that do not fit the statement's memory: in its temporary file, until they are read again.
//!
//! One file a statement, made when the first operator spills and removed with the statement; operators take and
//! free ranges of it (`file`). Rows are written some at a time as plain columns (`codec`), in lists that are read
//! from front to back any number of times (`rows`). What is looked up by key is cut into partitions by the hash of
//! the key (`partitions`), and again as long as a partition does not fit; what is sorted is written as sorted runs
//! that are merged (`runs`). Joins by partition are in `join`.
//!
//! Nothing here is durable or read by anybody else: the format may change at any time.

mod codec;
mod file;
mod partitions;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use file::SpillFile;
pub(crate) use partitions::{Partitions, SpilledPartition};
pub(crate) use rows::{SpillScan, SpilledRows};
