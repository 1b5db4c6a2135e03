//! Spills rows that do not fit in the statement's memory to its temporary file.
//!
//! A statement has one file, created when the first operator spills and removed with the statement;
//! operators allocate and free ranges of it (`file`). Rows are written in chunks of plain columns
//! (`codec`), as lists that can be read sequentially any number of times (`rows`). Rows that must
//! be looked up by key are partitioned by the hash of the key (`partitions`), repeatedly if a
//! partition does not fit.
//!
//! The format is private to this process and nothing here is durable, so it may change at any time.

mod codec;
mod file;
mod partitions;
mod rows;

pub use file::SpillFile;
pub use partitions::{Partitions, SpilledPartition};
pub use rows::{SpillScan, SpilledRows};
