//! Segment rows that a transaction has replaced or deleted and must no longer see, although its
//! snapshot contains them.

use crate::table::version::Table;
use nacre_types::TableId;
use nacre_types::hash::Map;
use roaring::RoaringBitmap;

/// A row of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRow {
    pub segment: u64,
    pub row: u32,
}

/// Segment rows hidden from a transaction's own snapshot.
#[derive(Default)]
pub(super) struct HiddenRows(Map<(TableId, u64), RoaringBitmap>);

impl HiddenRows {
    /// Hides a row; returns whether it was not hidden before.
    pub fn insert(&mut self, table: &Table, hidden: SegmentRow) -> bool {
        self.0.entry((table.id(), hidden.segment)).or_default().insert(hidden.row)
    }

    /// Hides rows that are not hidden.
    pub fn insert_all(&mut self, table: &Table, segment: u64, rows: &RoaringBitmap) {
        debug_assert!(!rows.is_empty(), "no row of segment {segment} is hidden");
        let hidden = self.0.entry((table.id(), segment)).or_default();
        debug_assert!(hidden.is_disjoint(rows), "a row of segment {segment} is hidden twice");
        *hidden |= rows;
    }

    /// Unhides rows.
    pub fn remove_all(&mut self, table: &Table, segment: u64, rows: &RoaringBitmap) {
        let key = (table.id(), segment);
        let Some(hidden) = self.0.get_mut(&key) else {
            debug_assert!(false, "no row of segment {segment} is hidden");
            return;
        };
        debug_assert!(rows.is_subset(hidden), "rows of segment {segment} are not hidden");
        *hidden -= rows;
        if hidden.is_empty() {
            self.0.remove(&key);
        }
    }

    /// Whether no row is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Unhides a row.
    pub fn remove(&mut self, table: &Table, hidden: SegmentRow) {
        let key = (table.id(), hidden.segment);
        let Some(rows) = self.0.get_mut(&key) else {
            debug_assert!(false, "{hidden:?} is not hidden");
            return;
        };
        let was_hidden = rows.remove(hidden.row);
        debug_assert!(was_hidden, "{hidden:?} is not hidden");
        if rows.is_empty() {
            self.0.remove(&key);
        }
    }

    /// Whether a row is hidden.
    pub fn contains(&self, table: &Table, segment: u64, row: u32) -> bool {
        self.0.get(&(table.id(), segment)).is_some_and(|rows| rows.contains(row))
    }

    /// The hidden rows of a segment.
    pub fn of_segment(&self, table: &Table, segment: u64) -> Option<&RoaringBitmap> {
        let rows = self.0.get(&(table.id(), segment));
        debug_assert!(rows.is_none_or(|rows| !rows.is_empty()), "no row of a segment is hidden");
        rows
    }
}
