//! Unified table storage: a table that is inserted into and locked like a row store and scanned like a
//! column store.
//!
//! A row has an identity, its key: the primary key, or a hidden row number. At any timestamp a key's
//! row is in exactly one place: a node of the rowstore, or one row of one segment whose delete bit is
//! not set. Source: Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD
//! 2022, sections 2 to 4; Apache Doris, merge-on-write tables.
//!
//! # Map
//! Each part uses only parts above it in this list; within a part, files form no circle either.
//!
//! - `options`, `record/`: settings; the bytes of log records and of the snapshot.
//! - `visits`: counts looks at partitions and segments, for tests.
//! - `layout/`: how a version of the schema lays out rows and keys, in memory and in segments.
//! - `segments/`: a segment as a member of a table: its file, from when until when, its delete bitmaps,
//!   its index parts; and the garbage that dropped segments become.
//! - `index/`: what an index is and keeps in memory, key ranges, hash tables, and the directory that
//!   finds the segments for a key.
//! - `table/`: a partition (a rowstore and a list of segments), which partition a row is in, and a
//!   table from one change of its schema to the next.
//! - `commit/`: timestamps, the commit lock, durability; the snapshots in use.
//! - `catalog/`: tables and views by name as of a timestamp, and every change of a schema.
//! - `read/`: a view of a table, one row by key, few rows by equality, probes of an index.
//! - `temporary`, `statement_memory`, `environment`: files, memory and host services for the execution
//!   of statements.
//! - `transaction/`: write sets, row locks, unique values, moves of rows from segments to memory,
//!   changes of the catalog that are not committed.
//! - `maintenance/`: flush, merge, index builds, snapshots, removal of files, their scheduling; the
//!   memory that parts hold; `check`.
//! - `load/`: bulk loads.
//! - `recovery/`: applies the log, to nothing or to what readers see, and opens the files that it
//!   names.
//! - `store`: assembles the parts. No part refers back to it.
//!
//! # Invariants
//! - Timestamps are given out, and shared structures changed by commits, only under the commit lock
//!   ([`commit`]). Log order is timestamp order.
//! - Only the writer sees what carries a timestamp above the newest visible one.
//! - The segments of a table are each sorted by its sort key, or by its key if it has none.
//!
//! Absent on purpose: SQL, expressions, asynchronous waiting. A write that meets a row lock reports its
//! holder ([`Transaction::take_blocker`]) and leaves the waiting to its caller.

mod catalog;
mod commit;
mod environment;
mod index;
mod layout;
mod load;
mod maintenance;
mod options;
mod read;
mod record;
mod recovery;
mod segments;
mod statement_memory;
mod store;
mod table;
mod temporary;
mod transaction;
mod visits;

pub use environment::Environment;
pub use index::range::KeyRange;
pub use layout::columns::hidden_column;
pub use layout::rules::{CompileRules, RowRules};
pub use load::bulk_load::{BulkLoad, LoadStep};
pub use load::bulk_update::BulkUpdate;
pub use load::loaded::OnDuplicate;
pub use maintenance::check::run::Check;
pub use maintenance::merge_all::{MergeAll, MergeStep};
pub use maintenance::pressure::{Admission, Asking};
pub use nacre_host::Ahead;
pub use nacre_host::fetched::{Fetched, Misses};
pub use nacre_rowstore::{Blocker, Owner, Waiting};
pub use nacre_segment::{
    BlockCache, PathForm, PathMeta, PathNeed, PathPart, PathPlace, PathRows, PathStep, Segment,
    Span, Zone,
};
pub use options::{DEFAULT_MEMORY_BYTES, Durability, StoreOptions};
pub use read::equal::{Equal, FoundRows};
pub use read::files::IndexFile;
pub use read::runs::{IndexProbe, IndexRun, RowCursor};
pub use read::segment_view::{SegmentPlace, SegmentView, SegmentWalk};
pub use read::view::{MemoryScan, RowLocator, TableView};
pub use roaring::RoaringBitmap;
pub use segments::state::SegmentState;
pub use statement_memory::StatementMemory;
pub use store::Store;
pub use table::partition::Partition;
pub use table::row_key::RowKey;
pub use table::run::RunSegments;
pub use table::segment_count::SegmentCount;
pub use table::segment_list::SegmentList;
pub use table::statistics::ColumnSummary;
pub use table::version::Table;
pub use temporary::TemporaryFile;
pub use transaction::handle::{Savepoint, Transaction};
pub use transaction::key_changes::{FollowedKey, KeyChanges};
pub use transaction::step::Rekeyed;
pub use transaction::temporary_tables::TemporaryTables;

#[cfg(test)]
mod tests;
