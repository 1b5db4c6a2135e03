//! The contents of a record: a commit timestamp, and the operations of that commit in the order of
//! application.

use crate::record::description::Description;
use crate::record::hashes::NewTable;
use crate::record::indexes::{Indexes, NewPart};
use crate::record::rules::Rules;
use nacre_types::{TableId, TableSchema, Timestamp, ViewSchema};
use roaring::RoaringBitmap;

/// A segment as a record names it, with the rows deleted from its start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewSegment {
    pub id: u64,
    pub deleted: RoaringBitmap,
}

/// The rows that one commit of a flush moves out of the rowstore.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlushedRange {
    /// The key before the range; `None` for a range from the first key on.
    pub after: Option<Vec<u8>>,
    /// The last key of the range.
    pub to: Vec<u8>,
    /// Rows of later commits stay.
    pub upto: Timestamp,
    /// Keys in the range, ascending, whose rows stay although they are old enough.
    pub except: Vec<Vec<u8>>,
}

impl FlushedRange {
    /// Whether a key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.after.as_deref().is_none_or(|after| after < key) && key <= &self.to[..]
    }
}

/// A partition of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub table: TableId,
    pub partition: u32,
}

/// One redo operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// Sets the row of a key in the rowstore.
    Put { place: Place, key: Vec<u8>, row: Vec<u8> },
    /// Deletes the row of a key, whether in the rowstore or in a segment.
    Delete { place: Place, key: Vec<u8> },
    /// Moves row `row` of a segment to the rowstore.
    Move { place: Place, segment: u64, row: u32, key: Vec<u8>, data: Vec<u8> },
    /// Moves rows committed up to `upto` from the rowstore to these segments, except the keys in
    /// `except`.
    Flush { place: Place, upto: Timestamp, segments: Vec<NewSegment>, except: Vec<Vec<u8>> },
    /// Moves rows of a key range from the rowstore to a segment.
    FlushRange { place: Place, range: FlushedRange, segment: NewSegment },
    /// Adds the segments of a bulk load.
    AddSegments { place: Place, segments: Vec<NewSegment> },
    /// Deletes rows of a segment.
    DeleteRows { place: Place, segment: u64, rows: RoaringBitmap },
    /// Replaces segments by others with the same rows.
    Merge { place: Place, dropped: Vec<u64>, added: Vec<NewSegment> },
    /// Creates an empty table.
    CreateTable { schema: TableSchema },
    /// Drops a table with all its contents.
    DropTable { table: TableId },
    /// Creates a view, or replaces the one with the same name.
    CreateView { view: ViewSchema },
    /// Drops a view.
    DropView { name: String },
    /// Changes a table's schema.
    AlterTable { schema: TableSchema },
    /// Removes all rows of a table.
    Truncate { table: TableId },
    /// Sets a table's indexes.
    SetIndexes { table: TableId, indexes: Indexes },
    /// Sets a table's rules.
    SetRules { table: TableId, rules: Rules },
    /// Lets the counter of a table's identity column go on from this value at least.
    Advance { table: TableId, next: i64 },
    /// Adds a separate index part of one segment.
    AddPart { place: Place, part: NewPart },
    /// Replaces hash tables of a partition, named by their first files, by one or none.
    SetTables { place: Place, dropped: Vec<u64>, added: Option<NewTable> },
    /// Describes a file that another operation of the record names.
    Describe { place: Place, description: Description },
}

/// The first byte of each operation. The numbers are stored and never reused.
pub(super) mod tag {
    pub const PUT: u8 = 1;
    pub const DELETE: u8 = 2;
    pub const MOVE: u8 = 3;
    pub const FLUSH: u8 = 4;
    pub const ADD_SEGMENTS: u8 = 5;
    pub const DELETE_ROWS: u8 = 6;
    pub const CREATE_TABLE: u8 = 7;
    pub const DROP_TABLE: u8 = 8;
    pub const MERGE: u8 = 9;
    pub const ALTER_TABLE: u8 = 10;
    pub const TRUNCATE: u8 = 11;
    pub const SET_INDEXES: u8 = 12;
    pub const ADD_PART: u8 = 13;
    pub const SET_TABLES: u8 = 14;
    pub const DESCRIBE: u8 = 15;
    pub const FLUSH_RANGE: u8 = 16;
    pub const SET_RULES: u8 = 17;
    pub const ADVANCE: u8 = 18;
    pub const CREATE_VIEW: u8 = 20;
    pub const DROP_VIEW: u8 = 21;
}
