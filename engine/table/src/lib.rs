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

mod catalog;
mod commit;
mod index;
mod layout;
mod load;
mod maintenance;
mod read;
mod record;
mod recovery;
mod segments;
mod store;
mod table;
mod temporary;
mod transaction;

pub use catalog::statistics::ColumnSummary;
pub use load::bulk_load::{BulkLoad, OnDuplicate};
pub use nacre_rowstore::{Blocker, Owner, Waiting};
pub use nacre_segment::{BlockCache, Segment, Zone};
pub use read::equal::{Equal, Rows};
pub use read::probe::{IndexProbe, IndexRun, KeyRange, RowCursor};
pub use read::view::{MemoryScan, RowLocator, SegmentView, TableView};
pub use roaring::RoaringBitmap;
pub use segments::state::SegmentState;
pub use store::{Durability, Store, StoreOptions};
pub use table::partition::Partition;
pub use table::segment_list::SegmentList;
pub use table::version::{Table, hidden_column};
pub use temporary::TemporaryFile;
pub use transaction::keyed::RowKey;
pub use transaction::state::{Savepoint, Transaction};

#[cfg(test)]
mod tests;
