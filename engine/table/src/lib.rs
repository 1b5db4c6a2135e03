//! Unified table storage: one table that is inserted into and locked like a row store and scanned
//! like a column store.
//!
//! Seeds: SIGMOD 2022 paper, sections 2 to 4; Doris' merge-on-write. A row has an identity, its key:
//! the primary key, or a hidden row number. At any timestamp a key's row is in exactly one place: a
//! node of the rowstore, or one row of one segment whose delete bit is not set.
//!
//! Invariants: timestamps are given out, and structures changed by commits, only under the commit
//! lock; what carries a timestamp above [`Store::visible`] is seen by nobody but its writer. Log order
//! is timestamp order. Segments of one table are each sorted by the key.
//!
//! Absent on purpose: SQL, expressions, asynchronous waiting. A write that meets a row lock reports
//! whom to wait for ([`Transaction::take_blocker`]) and leaves the waiting to its caller.

mod bitmaps;
mod bulk;
mod check;
mod commit;
mod ddl;
mod flush;
mod gather;
mod index;
mod key_filter;
mod keys;
mod maintenance;
mod merge;
mod moves;
mod partition;
mod point;
mod record;
mod recovery;
mod rows;
mod segment_file;
mod segment_list;
mod segments;
mod shard;
mod snapshot;
mod statistics;
mod store;
mod sync;
mod table;
mod temporary;
mod transaction;
mod view;
mod views;

pub use bulk::{BulkLoad, OnDuplicate};
pub use index::{Equal, IndexProbe, IndexRun, KeyRange, RowCursor, Rows};
pub use nacre_rowstore::{Blocker, Owner, Waiting};
pub use nacre_segment::{BlockCache, Segment, Zone};
pub use partition::Partition;
pub use roaring::RoaringBitmap;
pub use segment_list::SegmentList;
pub use segments::SegmentState;
pub use statistics::ColumnSummary;
pub use store::{Durability, Store, StoreOptions};
pub use table::{Table, hidden_column};
pub use temporary::TemporaryFile;
pub use transaction::{RowKey, Savepoint, Transaction};
pub use view::{MemoryScan, RowLocator, SegmentView, TableView};

#[cfg(all(test, feature = "loom"))]
mod models;
#[cfg(test)]
mod overtaking_tests;
#[cfg(test)]
mod tests;
