//! What a record says: a commit timestamp, and the operations of that commit in the order in which
//! they are applied.

use crate::record::hashes::NewTable;
use crate::record::indexes::{Indexes, NewPart};
use nacre_types::{TableId, TableSchema, Timestamp, ViewSchema};
use roaring::RoaringBitmap;

/// A segment as a record names it, with the rows that are deleted from its beginning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewSegment {
    pub id: u64,
    pub deleted: RoaringBitmap,
}

/// A partition of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub table: TableId,
    pub partition: u32,
}

/// One redo operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// A key has this row from now on, in the rowstore.
    Put { place: Place, key: Vec<u8>, row: Vec<u8> },
    /// A key has no row from now on, neither in the rowstore nor in a segment.
    Delete { place: Place, key: Vec<u8> },
    /// Row `row` of a segment is in the rowstore from now on.
    Move { place: Place, segment: u64, row: u32, key: Vec<u8>, data: Vec<u8> },
    /// The rowstore's rows committed up to `upto`, except those of the keys in `except`, are in these
    /// segments from now on.
    Flush { place: Place, upto: Timestamp, segments: Vec<NewSegment>, except: Vec<Vec<u8>> },
    /// A bulk load's segments.
    AddSegments { place: Place, segments: Vec<NewSegment> },
    /// Rows of a segment are deleted.
    DeleteRows { place: Place, segment: u64, rows: RoaringBitmap },
    /// Segments are replaced by others with the same rows.
    Merge { place: Place, dropped: Vec<u64>, added: Vec<NewSegment> },
    /// A new, empty table.
    CreateTable { schema: TableSchema },
    /// A table is dropped with everything in it.
    DropTable { table: TableId },
    /// A new view, which replaces one of the same name.
    CreateView { view: ViewSchema },
    /// A view is dropped.
    DropView { name: String },
    /// A table has this schema from now on.
    AlterTable { schema: TableSchema },
    /// A table has no rows from now on.
    Truncate { table: TableId },
    /// A table has these indexes from now on.
    SetIndexes { table: TableId, indexes: Indexes },
    /// The part of an index for one segment is in a file of its own.
    AddPart { place: Place, part: NewPart },
    /// Hash tables of a partition, named by their first files, are replaced by one or by none.
    SetTables { place: Place, dropped: Vec<u64>, added: Option<NewTable> },
}

/// The first byte of each operation. Numbers are stored and never reused.
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
    pub const CREATE_VIEW: u8 = 20;
    pub const DROP_VIEW: u8 = 21;
}
