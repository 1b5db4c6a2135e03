//! The rows that a statement is about to delete. Of a row in a segment only a bit is kept.

use nacre_operator::{Context, Reservation};
use nacre_table::{RoaringBitmap, RowLocator};
use nacre_types::Result;
use nacre_types::sorted::SortedMap;

/// Estimated bytes of the locator of a row in memory, with its key.
const LOCATOR_BYTES: usize = 64;

/// Rows of one table.
#[derive(Default)]
pub(crate) struct TargetRows {
    /// By partition and segment.
    segments: SortedMap<(u32, u64), RoaringBitmap>,
    memory: Vec<RowLocator>,
    rows: u64,
    bitmap_bytes: usize,
    held: Reservation,
}

impl TargetRows {
    /// Adds rows. It may have those of segments, but none that is in memory. `limit` if all together
    /// exceed the statement's memory.
    pub fn add(
        &mut self,
        locators: impl IntoIterator<Item = RowLocator>,
        context: &Context<'_>,
    ) -> Result<()> {
        let mut locators = locators.into_iter().peekable();
        while let Some(locator) = locators.next() {
            let RowLocator::Segment { partition, segment, row } = locator else {
                self.rows += 1;
                self.memory.push(locator);
                continue;
            };
            let bitmap = self.segments.or_insert_with((partition, segment), Default::default);
            let before = bitmap.serialized_size();
            self.rows += u64::from(bitmap.insert(row));
            // Batches come from one segment each.
            let same = |next: &RowLocator| {
                matches!(next, RowLocator::Segment { partition: p, segment: s, .. }
                    if *p == partition && *s == segment)
            };
            while let Some(RowLocator::Segment { row, .. }) = locators.next_if(same) {
                self.rows += u64::from(bitmap.insert(row));
            }
            let after = bitmap.serialized_size();
            self.bitmap_bytes = self.bitmap_bytes + after - before;
        }
        let bytes = self.bitmap_bytes + self.memory.len() * LOCATOR_BYTES;
        context.reserve(&mut self.held, "the statement's rows", bytes)
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
