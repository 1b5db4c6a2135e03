//! Reserved column ids of segments: the row number of tables without a primary key, the key order,
//! the key filter, and the columns of hash tables and index parts.
//!
//! These ids are stored. Ids of a table's own columns start at 0 and stay below
//! [`FIRST_OF_INDEXES`].

use nacre_types::{IndexId, limits};

/// The hidden row number of a table without a primary key.
pub(crate) const ROW_NUMBER_COLUMN: u32 = u32::MAX;
/// Row numbers in key order, in a segment that is sorted by something other than its key.
pub(crate) const KEY_ORDER_COLUMN: u32 = u32::MAX - 1;
/// Stored hashes of a hash table, ascending.
pub(crate) const HASH_COLUMN: u32 = u32::MAX - 2;
/// The location of each hash's key: the segment's number in the hash table, and a position in it.
pub(crate) const PLACE_COLUMN: u32 = u32::MAX - 3;
/// Bloom filter of the keys of a segment.
pub(crate) const KEY_FILTER_COLUMN: u32 = u32::MAX - 4;

/// The first id that belongs to an index part.
const FIRST_OF_INDEXES: u32 = limits::MAX_COLUMN_ID + 1;
/// The first id above those of index parts; the ids from here on are reserved.
const END_OF_INDEXES: u32 = u32::MAX - 63;
/// Ids per index: the row numbers, then one per index column; the last one is the filter.
const IDS_PER_INDEX: u32 = 32;
const FILTER: u32 = IDS_PER_INDEX - 1;

const _: () = assert!(limits::MAX_INDEX_COLUMNS < FILTER as usize);
const _: () = assert!(limits::MAX_INDEX_ID <= (END_OF_INDEXES - FIRST_OF_INDEXES) / IDS_PER_INDEX);

/// The contents of a column of an index part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartColumn {
    /// The number of each row, in index order.
    RowNumbers,
    /// A column of the index, by its position in the index.
    Key(usize),
    /// Bloom filter of the index keys.
    Filter,
}

/// The id of a column of an index part.
pub(crate) fn id_in_part(index: IndexId, column: PartColumn) -> u32 {
    let offset = match column {
        PartColumn::RowNumbers => 0,
        PartColumn::Key(position) => 1 + position as u32,
        PartColumn::Filter => FILTER,
    };
    debug_assert!(offset < IDS_PER_INDEX, "column {offset} of index {index} has no id");
    let id = FIRST_OF_INDEXES + index * IDS_PER_INDEX + offset;
    debug_assert!(id < END_OF_INDEXES, "index {index} has no column ids");
    id
}

/// Decodes a column id into its index and column; `None` if it belongs to no index part.
pub(crate) fn column_of_part(id: u32) -> Option<(IndexId, PartColumn)> {
    if !(FIRST_OF_INDEXES..END_OF_INDEXES).contains(&id) {
        return None;
    }
    let (index, offset) =
        ((id - FIRST_OF_INDEXES) / IDS_PER_INDEX, (id - FIRST_OF_INDEXES) % IDS_PER_INDEX);
    let column = match offset {
        0 => PartColumn::RowNumbers,
        FILTER => PartColumn::Filter,
        position => PartColumn::Key(position as usize - 1),
    };
    debug_assert!(id_in_part(index, column) == id, "column id {id} does not round-trip");
    Some((index, column))
}

/// A name, for reports, of a segment column that its table does not have or no longer has.
pub fn hidden_column(id: u32) -> &'static str {
    match id {
        ROW_NUMBER_COLUMN => "(row number)",
        KEY_ORDER_COLUMN => "(key order)",
        KEY_FILTER_COLUMN => "(key filter)",
        id if column_of_part(id).is_some() => "(index)",
        _ => "(dropped)",
    }
}
