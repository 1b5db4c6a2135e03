//! Rows that do not fit in the statement's memory: in its temporary file, until they are read again.
//!
//! A statement has one file, made when the first operator spills and removed with the statement;
//! operators take and free ranges of it (`file`). Rows are written in chunks of plain columns
//! (`codec`), in lists that are read from front to back any number of times (`rows`). Rows that are
//! looked up by key are cut into partitions by the hash of the key (`partitions`), and again as long
//! as a partition does not fit.
//!
//! The format is private to this process and nothing here is durable: it may change at any time.

mod codec;
mod file;
mod partitions;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use file::SpillFile;
pub(crate) use partitions::{Partitions, SpilledPartition};
pub(crate) use rows::{SpillScan, SpilledRows};
