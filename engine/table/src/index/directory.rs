//! Finds the segments of a run that may hold a key by which the run is not ordered: the keys of
//! indexes, and the primary key of a table with another sort key.
//!
//! Each segment's description has its key range, or its footer if the log is an old one. The ranges form an interval tree ([`Intervals`]), so a
//! lookup visits only segments whose range contains the key, however many there are. Where many
//! ranges overlap, hash tables cover most segments: those are found by the key's hash, with the
//! key's position in them, and the tree covers the rest. The caller checks each candidate: the
//! directory ignores deletions and snapshots.

use crate::index::definition::Index;
use crate::index::intervals::{Bounds, Intervals};
use crate::index::range::KeyRange;
use crate::layout::bounds::{add_bounds_of, key_range};
use crate::layout::table_layout::TableLayout;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use nacre_segment::{BoundsOfColumns, Segment};
use nacre_types::hash::Set;
use nacre_types::{DataType, Result, Value, invariant, key};
use std::ops::Bound;
use std::sync::Arc;

/// Finds the segments of one run that may hold a key.
pub(crate) struct Directory {
    /// Types of the key's columns.
    types: Vec<DataType>,
    /// The key column whose ranges overlap least; the intervals are ranges of its values.
    column: usize,
    /// Ranges of all segments.
    intervals: Intervals,
    /// Ranges of the segments that no hash table covers, if there are hash tables.
    uncovered: Option<Intervals>,
    /// Segments whose range is unknown; they are always candidates.
    unbounded: Vec<u32>,
    /// For each segment, whether its keys are found in hash tables; empty if there are none.
    in_tables: Vec<bool>,
}

impl Directory {
    /// Creates the directory of the key that identifies the rows of a table. `covered` are the ids
    /// of segments that hash tables cover, if there are hash tables.
    pub fn of_primary_key(
        layout: &TableLayout,
        states: &[Arc<SegmentState>],
        covered: Option<&Set<u64>>,
    ) -> Directory {
        let columns: Vec<Option<Vec<usize>>> =
            states.iter().map(|s| layout.key_positions(&s.segment).ok()).collect();
        let files = states
            .iter()
            .zip(&columns)
            .map(|(state, columns)| Some((&*state.segment, columns.as_deref()?)));
        Directory::new(layout.key_types(), &files.collect::<Vec<_>>(), states, covered)
    }

    /// Creates the directory of an index.
    pub fn of_index(
        index: &Index,
        states: &[Arc<SegmentState>],
        covered: Option<&Set<u64>>,
    ) -> Directory {
        let parts: Vec<Option<Arc<Part>>> =
            states.iter().map(|state| state.part(index.id())).collect();
        let files =
            parts.iter().map(|part| part.as_ref().map(|part| (&**part.file(), part.keys())));
        Directory::new(index.types().to_vec(), &files.collect::<Vec<_>>(), states, covered)
    }

    /// `files` holds, by position, the file with the keys and the positions of the key columns in
    /// it.
    fn new(
        types: Vec<DataType>,
        files: &[Option<(&Segment, &[usize])>],
        states: &[Arc<SegmentState>],
        covered: Option<&Set<u64>>,
    ) -> Directory {
        invariant!(!types.is_empty(), "a directory of keys without columns");
        debug_assert!(
            files.len() == states.len(),
            "a directory has {} files of {} segments",
            files.len(),
            states.len()
        );
        let ranges: Vec<Option<Vec<ValueRange>>> =
            files.iter().map(|file| file.and_then(|file| ranges(file, types.len()))).collect();
        // A segment whose range is unknown is always a candidate, so tables leave it out.
        let in_tables: Vec<bool> = covered.map_or(Vec::new(), |covered| {
            let both = states.iter().zip(&ranges);
            both.map(|(state, known)| known.is_some() && covered.contains(&state.id())).collect()
        });
        let places = || ranges.iter().zip(0u32..);
        let unbounded: Vec<u32> =
            places().filter(|(known, _)| known.is_none()).map(|(_, place)| place).collect();
        let bounds_of = |column: usize| -> Vec<Bounds> {
            let bounded = places().filter_map(|(known, place)| {
                let (low, high) = known.as_ref()?[column].clone();
                Some((low, high, place))
            });
            bounded.collect()
        };
        let all = (0..types.len()).map(|column| (column, Intervals::new(&bounds_of(column))));
        let best = all.min_by(|(_, a), (_, b)| a.depth().total_cmp(&b.depth()));
        let (column, intervals) = best.unwrap_or_default();
        // A key in a segment that is left out would not be found.
        invariant!(
            intervals.len() + unbounded.len() == states.len(),
            "a directory of {} segments has {} ranges and {} without",
            states.len(),
            intervals.len(),
            unbounded.len()
        );
        let uncovered = covered.map(|_| {
            let mut bounds = bounds_of(column);
            bounds.retain(|(_, _, place)| !in_tables[*place as usize]);
            Intervals::new(&bounds)
        });
        Directory { types, column, intervals, uncovered, unbounded, in_tables }
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        let uncovered = self.uncovered.as_ref().map_or(0, Intervals::memory_bytes);
        let lists = self.unbounded.len() * size_of::<u32>() + self.in_tables.len();
        self.intervals.memory_bytes() + uncovered + lists
    }

    /// The average number of segments whose range contains a key.
    pub fn depth(&self) -> f64 {
        self.intervals.depth()
    }

    /// Whether the keys of a segment are found in hash tables.
    pub fn is_in_tables(&self, at: usize) -> bool {
        self.in_tables.get(at).copied().unwrap_or(false)
    }

    /// The positions of the segments whose range is unknown, as that of a segment without an index
    /// part is.
    pub fn without_range(&self) -> impl Iterator<Item = usize> {
        debug_assert!(self.unbounded.is_sorted(), "segments without a range are out of order");
        self.unbounded.iter().map(|place| *place as usize)
    }

    /// Visits the positions of the segments that may hold an encoded whole key without nulls, and
    /// that no hash table covers.
    pub fn stab(&self, key: &[u8], visit: &mut dyn FnMut(usize)) {
        debug_assert!(
            key::parts(key, &self.types).map(<[u8]>::len).sum::<usize>() == key.len(),
            "a key to find does not divide into its {} columns",
            self.types.len()
        );
        self.unbounded.iter().for_each(|place| visit(*place as usize));
        let value = key::parts(key, &self.types).nth(self.column).unwrap_or_default();
        let intervals = self.uncovered.as_ref().unwrap_or(&self.intervals);
        intervals.stab(value, &mut |place| visit(place as usize));
    }

    /// Visits the positions of the segments that may hold keys of a range.
    pub fn overlapping(&self, range: &KeyRange, visit: &mut dyn FnMut(usize)) -> Result<()> {
        debug_assert!(
            range.prefix.len() + usize::from(range.is_bounded()) <= self.types.len(),
            "a range of {} values and a bound of a key of {} columns",
            range.prefix.len(),
            self.types.len()
        );
        let encode = |value: &Value| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            key::append(&mut bytes, self.types[self.column], value)?;
            Ok(bytes)
        };
        let of_bound = |bound: &Bound<Value>| match bound {
            Bound::Included(value) | Bound::Excluded(value) => encode(value).map(Some),
            Bound::Unbounded => Ok(None),
        };
        let (low, high) = match range.prefix.get(self.column) {
            Some(value) => {
                let value = encode(value)?;
                (Some(value.clone()), Some(value))
            }
            None if self.column == range.prefix.len() => {
                (of_bound(&range.low)?, of_bound(&range.high)?)
            }
            None => (None, None),
        };
        self.unbounded.iter().for_each(|place| visit(*place as usize));
        self.intervals.overlap(low.as_deref(), high.as_deref(), &mut |place| visit(place as usize));
        Ok(())
    }
}

/// The encoded least and greatest value of a column.
type ValueRange = (Vec<u8>, Vec<u8>);

/// The encoded ranges of a key's columns in a file; `None` if they cannot be read. Searching the
/// segment then reports why.
fn ranges((file, places): (&Segment, &[usize]), columns: usize) -> Option<Vec<ValueRange>> {
    debug_assert!(places.len() <= columns, "{} columns of a key", places.len());
    let known = |at: usize| {
        let id = file.column_ids().get(*places.get(at)?)?;
        file.known().bounds_of(*id).map(key_range)
    };
    let described: Option<Vec<ValueRange>> = (0..columns).map(known).collect();
    if described.is_some() {
        return described;
    }
    let of_file = file.columns().ok()?;
    let range = |at: usize| {
        let column = of_file.get(*places.get(at)?)?;
        let mut bounds = BoundsOfColumns::default();
        add_bounds_of(column, &mut bounds);
        Some(bounds.iter().next().map_or((Vec::new(), vec![u8::MAX; 8]), key_range))
    };
    (0..columns).map(range).collect()
}
