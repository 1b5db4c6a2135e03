//! The other way to keep keys unique, for comparison: nothing is looked up when rows are written, and a reader merges
//! all versions of all rows by key and keeps the newest (seed `003`'s merge-on-read).
//!
//! It reads the same segment files as the engine, which hold the versions that merges have not dropped yet, and
//! leaves the delete bitmaps aside. A version in a segment with a higher number is newer: bulk loads and merges number
//! their segments when they make them, and a merge keeps of each row only the version that was newest then.

use crate::measure::Outcome;
use nacre_segment::{BlockCache, Segment};
use nacredb::host::LocalStore;
use nacredb::{Values, Vector};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Rows of a segment that a reader decodes at once.
const STEP: usize = 2_048;

/// The segments of one table with a key of two integers.
pub struct MergeOnRead {
    segments: Vec<Arc<Segment>>,
    key: [usize; 2],
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    pub sum: i128,
}

impl MergeOnRead {
    /// Opens every segment file of the store.
    pub fn open(store: &dyn LocalStore, key: [usize; 2], cache_bytes: usize) -> Outcome<MergeOnRead> {
        let cache = BlockCache::new(cache_bytes);
        let mut segments = Vec::new();
        for name in store.list()? {
            let Some(number) = name.strip_prefix("seg-") else { continue };
            let id = u64::from_str_radix(number, 16)?;
            segments.push(Arc::new(Segment::open(store.open(&name)?, &name, id, cache.clone())?));
        }
        Ok(MergeOnRead { segments, key })
    }

    /// Versions in all segments.
    pub fn versions(&self) -> usize {
        self.segments.iter().map(|s| s.rows()).sum()
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Number of rows and, if asked for, the sum of a column, over the newest versions.
    pub fn aggregate(&self, column: Option<usize>) -> Outcome<Answer> {
        let mut cursors = Vec::with_capacity(self.segments.len());
        let mut heap = BinaryHeap::with_capacity(self.segments.len());
        for segment in &self.segments {
            let mut cursor = Cursor::new(segment.clone(), self.key, column);
            if cursor.fill()? {
                // Among versions of one row the newest comes first.
                heap.push(Reverse((cursor.key(), Reverse(segment.id()), cursors.len())));
            }
            cursors.push(cursor);
        }
        let mut answer = Answer { rows: 0, sum: 0 };
        let mut last = None;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((key, Reverse(id), at)) = *top;
            let cursor = &mut cursors[at];
            if last != Some(key) {
                last = Some(key);
                answer.rows += 1;
                answer.sum += i128::from(cursor.value());
            }
            if cursor.advance()? {
                *top = Reverse((cursor.key(), Reverse(id), at));
            } else {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        Ok(answer)
    }
}

/// A place in one segment, with some rows decoded around it.
struct Cursor {
    segment: Arc<Segment>,
    key: [usize; 2],
    column: Option<usize>,
    start: usize,
    row: usize,
    keys: [Vec<i64>; 2],
    values: Vec<i64>,
}

fn integers(vector: &Vector) -> Outcome<Vec<i64>> {
    match vector.flat().into_owned() {
        Values::I64(values) => Ok(values),
        other => Err(format!("integers are needed here, not {:?}", other.physical()).into()),
    }
}

impl Cursor {
    fn new(segment: Arc<Segment>, key: [usize; 2], column: Option<usize>) -> Cursor {
        Cursor { segment, key, column, start: 0, row: 0, keys: [Vec::new(), Vec::new()], values: Vec::new() }
    }

    /// Decodes the next rows; `false` at the end.
    fn fill(&mut self) -> Outcome<bool> {
        self.start += self.keys[0].len();
        self.row = 0;
        // Never across the end of a block, where decoding would copy.
        let len = STEP.min(self.segment.rows() - self.start);
        if len == 0 {
            return Ok(false);
        }
        for (column, keys) in self.key.into_iter().zip(&mut self.keys) {
            *keys = integers(&self.segment.decode(column, self.start, len)?)?;
        }
        if let Some(column) = self.column {
            self.values = integers(&self.segment.decode(column, self.start, len)?)?;
        }
        Ok(true)
    }

    fn key(&self) -> (i64, i64) {
        (self.keys[0][self.row], self.keys[1][self.row])
    }

    fn value(&self) -> i64 {
        self.values.get(self.row).copied().unwrap_or(0)
    }

    fn advance(&mut self) -> Outcome<bool> {
        self.row += 1;
        if self.row < self.keys[0].len() { Ok(true) } else { self.fill() }
    }
}
