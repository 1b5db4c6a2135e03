//! Segment rows that a transaction has replaced or deleted and must no longer see, although its
//! snapshot contains them.

use crate::read::view::HiddenBySegment;
use crate::table::version::Table;
use nacre_types::TableId;
use nacre_types::hash::Map;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A row of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRow {
    pub segment: u64,
    pub row: u32,
}

/// Segment rows hidden from a transaction's own snapshot. Views share them with it until it hides
/// more.
#[derive(Default)]
pub(crate) struct HiddenRows(Map<TableId, Arc<Map<u64, Arc<RoaringBitmap>>>>);

impl HiddenRows {
    /// Hides a row; returns whether it was not hidden before.
    pub fn insert(&mut self, table: &Table, hidden: SegmentRow) -> bool {
        let is_new = self.rows_of(table, hidden.segment).insert(hidden.row);
        debug_assert!(self.contains(table, hidden.segment, hidden.row), "{hidden:?} is not hidden");
        is_new
    }

    /// Hides rows that are not hidden.
    pub fn insert_all(&mut self, table: &Table, segment: u64, rows: &RoaringBitmap) {
        debug_assert!(!rows.is_empty(), "no row of segment {segment} is hidden");
        let hidden = self.rows_of(table, segment);
        debug_assert!(hidden.is_disjoint(rows), "a row of segment {segment} is hidden twice");
        *hidden |= rows;
    }

    /// Unhides rows.
    pub fn remove_all(&mut self, table: &Table, segment: u64, rows: &RoaringBitmap) {
        let hidden = self.rows_of(table, segment);
        debug_assert!(rows.is_subset(hidden), "rows of segment {segment} are not hidden");
        *hidden -= rows;
        self.forget_empty(table, segment);
    }

    /// Whether no row is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Unhides a row.
    pub fn remove(&mut self, table: &Table, hidden: SegmentRow) {
        let was_hidden = self.rows_of(table, hidden.segment).remove(hidden.row);
        debug_assert!(was_hidden, "{hidden:?} is not hidden");
        self.forget_empty(table, hidden.segment);
    }

    /// Whether a row is hidden.
    pub fn contains(&self, table: &Table, segment: u64, row: u32) -> bool {
        let rows = self.0.get(&table.id()).and_then(|segments| segments.get(&segment));
        rows.is_some_and(|rows| rows.contains(row))
    }

    /// The hidden rows of a segment.
    pub fn of_segment(&self, table: &Table, segment: u64) -> Option<&RoaringBitmap> {
        self.0.get(&table.id()).and_then(|segments| segments.get(&segment)).map(|rows| &**rows)
    }

    /// The hidden rows of a table.
    pub fn of_table(&self, table: &Table) -> HiddenBySegment {
        let segments = self.0.get(&table.id());
        debug_assert!(
            segments.is_none_or(|segments| segments.values().all(|rows| !rows.is_empty())),
            "no row of a segment is hidden"
        );
        segments.cloned()
    }

    /// The hidden rows of a segment, of its own from here on.
    fn rows_of(&mut self, table: &Table, segment: u64) -> &mut RoaringBitmap {
        let segments = Arc::make_mut(self.0.entry(table.id()).or_default());
        Arc::make_mut(segments.entry(segment).or_default())
    }

    /// Forgets a segment, and a table, without hidden rows.
    fn forget_empty(&mut self, table: &Table, segment: u64) {
        let Some(segments) = self.0.get_mut(&table.id()) else { return };
        if segments.get(&segment).is_some_and(|rows| rows.is_empty()) {
            Arc::make_mut(segments).remove(&segment);
        }
        if segments.is_empty() {
            self.0.remove(&table.id());
        }
        debug_assert!(
            self.0.values().all(|segments| !segments.is_empty()),
            "a table without hidden rows is kept"
        );
    }
}
