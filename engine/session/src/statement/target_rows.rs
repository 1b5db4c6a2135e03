//! The rows that a statement is about to delete. Of a row in a segment only a bit is kept.

use nacre_table::{RoaringBitmap, RowLocator};
use std::collections::BTreeMap;

/// Estimated bytes of the locator of a row in memory, with its key.
const LOCATOR_BYTES: usize = 64;

/// Rows of one table.
#[derive(Default)]
pub(super) struct TargetRows {
    /// By partition and segment.
    segments: BTreeMap<(u32, u64), RoaringBitmap>,
    memory: Vec<RowLocator>,
    rows: u64,
    bitmap_bytes: usize,
}

impl TargetRows {
    /// Adds rows that it does not have.
    pub fn add(&mut self, locators: impl IntoIterator<Item = RowLocator>) {
        let mut locators = locators.into_iter().peekable();
        while let Some(locator) = locators.next() {
            self.rows += 1;
            let RowLocator::Segment { partition, segment, row } = locator else {
                self.memory.push(locator);
                continue;
            };
            let bitmap = self.segments.entry((partition, segment)).or_default();
            let before = bitmap.serialized_size();
            bitmap.insert(row);
            // Batches come from one segment each.
            let same = |next: &RowLocator| {
                matches!(next, RowLocator::Segment { partition: p, segment: s, .. }
                    if *p == partition && *s == segment)
            };
            while let Some(RowLocator::Segment { row, .. }) = locators.next_if(same) {
                self.rows += 1;
                bitmap.insert(row);
            }
            self.bitmap_bytes += bitmap.serialized_size() - before;
        }
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        debug_assert!(
            self.rows
                == self.memory.len() as u64 + self.segments.values().map(|b| b.len()).sum::<u64>(),
            "a row is to be deleted twice"
        );
        self.rows
    }

    /// Estimated bytes.
    pub fn bytes(&self) -> usize {
        self.bitmap_bytes + self.memory.len() * LOCATOR_BYTES
    }

    /// The rows in memory.
    pub fn memory(&self) -> &[RowLocator] {
        &self.memory
    }

    /// The rows of each segment, with partition and segment.
    pub fn segments(&self) -> impl Iterator<Item = ((u32, u64), &RoaringBitmap)> {
        self.segments.iter().map(|(place, rows)| (*place, rows))
    }

    /// The locators of all rows.
    pub fn locators(&self) -> impl Iterator<Item = RowLocator> {
        let of_segment = |((partition, segment), rows): ((u32, u64), &RoaringBitmap)| {
            let locate = move |row| RowLocator::Segment { partition, segment, row };
            rows.iter().map(locate).collect::<Vec<_>>()
        };
        self.segments().flat_map(of_segment).chain(self.memory.iter().cloned())
    }
}
