//! Merge-on-read, the alternative way to keep keys unique, for comparison: a write looks nothing
//! up, and a reader merges all versions of all rows by key and keeps the newest.
//!
//! It consists of the engine's own parts: every load is a segment, sorted by key, with the same
//! encodings, and a reader decodes the same vectors. It does as little as possible: a segment is
//! opened only when the merge reaches its smallest key, so that loads of different key ranges do
//! not slow each other down.

use crate::measure::Outcome;
use nacre_segment::{BlockCache, ColumnSpec, Segment, SegmentBuilder};
use nacredb::host::LocalStore;
use nacredb::{Batch, Values, Vector};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Number of rows of a segment that a reader decodes at once.
const STEP: usize = 2_048;

/// The loads of one table whose columns are a key of two integers and one more integer; oldest
/// first.
pub struct MergeOnRead {
    store: Arc<dyn LocalStore>,
    cache: Arc<BlockCache>,
    loads: Vec<Load>,
}

struct Load {
    smallest: (i64, i64),
    segment: Arc<Segment>,
}

/// Result of a query.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    pub sum: i128,
}

impl MergeOnRead {
    /// Creates a table without loads.
    pub fn new(store: Arc<dyn LocalStore>, cache_bytes: usize) -> MergeOnRead {
        MergeOnRead { store, cache: BlockCache::new(cache_bytes), loads: Vec::new() }
    }

    /// Adds a load: rows in the order of their key, newer than all before.
    pub fn load(&mut self, rows: &[Batch]) -> Outcome<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let specs = first.columns.iter().enumerate();
        let spec = |(id, column): (usize, &Arc<Vector>)| ColumnSpec {
            id: id as u32,
            data_type: column.data_type(),
            nullable: false,
        };
        let mut builder = SegmentBuilder::new(specs.map(spec).collect());
        rows.iter().for_each(|batch| builder.push(batch));
        let id = self.loads.len() as u64;
        let name = format!("load-{id}");
        let file = self.store.create(&name)?;
        builder.write(file.as_ref())?;
        file.sync()?;
        let segment = Arc::new(Segment::open(file, &name, id, self.cache.clone())?);
        let mut cursor = Cursor::new(segment.clone(), false);
        cursor.fill()?;
        self.loads.push(Load { smallest: cursor.key(), segment });
        Ok(())
    }

    /// Returns the number of row versions in all loads.
    pub fn versions(&self) -> usize {
        self.loads.iter().map(|load| load.segment.rows()).sum()
    }

    /// Returns the number of rows and, if requested, the sum of the third column, over the newest
    /// versions.
    pub fn aggregate(&self, sum: bool) -> Outcome<Answer> {
        let mut closed: Vec<(usize, &Load)> = self.loads.iter().enumerate().collect();
        closed.sort_by_key(|(_, load)| Reverse(load.smallest));
        let mut cursors: Vec<Cursor> = Vec::new();
        let mut heap = BinaryHeap::new();
        let mut answer = Answer { rows: 0, sum: 0 };
        let mut last = None;
        loop {
            // Include every load that may contain the next key.
            let next: Option<(i64, i64)> = heap.peek().map(|Reverse((key, _, _))| *key);
            if let Some((age, load)) =
                closed.pop_if(|(_, load)| next.is_none_or(|next| load.smallest <= next))
            {
                let mut cursor = Cursor::new(load.segment.clone(), sum);
                if cursor.fill()? {
                    // Among versions of one row the newest comes first.
                    heap.push(Reverse((cursor.key(), Reverse(age), cursors.len())));
                    cursors.push(cursor);
                }
                continue;
            }
            let Some(mut top) = heap.peek_mut() else { return Ok(answer) };
            let Reverse((key, age, at)) = *top;
            let cursor = &mut cursors[at];
            if last != Some(key) {
                last = Some(key);
                answer.rows += 1;
                answer.sum += i128::from(cursor.value());
            }
            if cursor.advance()? {
                *top = Reverse((cursor.key(), age, at));
            } else {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
    }
}

/// A position in one segment, with the decoded rows around it.
struct Cursor {
    segment: Arc<Segment>,
    with_values: bool,
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
    fn new(segment: Arc<Segment>, with_values: bool) -> Cursor {
        Cursor {
            segment,
            with_values,
            start: 0,
            row: 0,
            keys: Default::default(),
            values: Vec::new(),
        }
    }

    /// Decodes the next rows. Returns false at the end.
    fn fill(&mut self) -> Outcome<bool> {
        self.start += self.keys[0].len();
        self.row = 0;
        let len = STEP.min(self.segment.rows() - self.start);
        if len == 0 {
            return Ok(false);
        }
        for (column, keys) in self.keys.iter_mut().enumerate() {
            *keys = integers(&self.segment.decode(column, self.start, len)?)?;
        }
        if self.with_values {
            self.values = integers(&self.segment.decode(2, self.start, len)?)?;
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
