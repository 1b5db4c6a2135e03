//! Finds the segments of a list that may hold a key, for the primary key and for every index,
//! through [`Directory::candidates`].
//!
//! Each segment's footer has its key range. The ranges form an interval tree ([`Intervals`]), so a
//! lookup visits only segments whose range contains the key, however many there are. Where many
//! ranges overlap, hash tables ([`HashTable`]) cover most segments: those are found by the key's
//! hash, with the key's position in them, and the tree covers the rest. The caller checks each
//! candidate: the directory ignores hash collisions, deletions and snapshots.

use crate::index::candidates::{Candidates, NOWHERE};
use crate::index::definition::Index;
use crate::index::hash::table::HashTable;
use crate::index::intervals::{Bounds, Intervals};
use crate::index::range::KeyRange;
use crate::layout::table_layout::TableLayout;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::hash::{Map, hash_bytes};
use nacre_types::{DataType, Result, Value, invariant, key};
use std::ops::Bound;
use std::sync::Arc;

/// Finds the segments of one list that may hold a key.
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
    /// Hash tables, each with its segments' places in the list; `None` for segments that are not in
    /// it.
    tables: Vec<(Arc<HashTable>, Vec<Option<u32>>)>,
}

impl Directory {
    /// Creates the directory of the key that identifies the rows of a table.
    pub fn of_primary_key(
        layout: &TableLayout,
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        let columns: Vec<Option<Vec<usize>>> =
            list.iter().map(|s| layout.key_positions(&s.segment).ok()).collect();
        let files = list
            .iter()
            .zip(&columns)
            .map(|(state, columns)| Some((&*state.segment, columns.as_deref()?)));
        Directory::new(layout.key_types(), &files.collect::<Vec<_>>(), list, tables)
    }

    /// Creates the directory of an index.
    pub fn of_index(
        index: &Index,
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        let parts: Vec<Option<Arc<Part>>> =
            list.iter().map(|state| state.part(index.id())).collect();
        let files =
            parts.iter().map(|part| part.as_ref().map(|part| (&**part.file(), part.keys())));
        Directory::new(index.types().to_vec(), &files.collect::<Vec<_>>(), list, tables)
    }

    /// `files` holds, by place, the file with the keys and the positions of the key columns in it.
    fn new(
        types: Vec<DataType>,
        files: &[Option<(&Segment, &[usize])>],
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        invariant!(!types.is_empty(), "a directory of keys without columns");
        let mut uncovered: Map<u64, u32> =
            list.iter().map(|state| state.segment.id()).zip(0u32..).collect();
        debug_assert!(uncovered.len() == list.len(), "a directory has a segment twice");
        debug_assert!(
            files.len() == list.len(),
            "a directory has {} files of {} segments",
            files.len(),
            list.len()
        );
        // No segment is covered twice; if one were, either table would do. A segment whose file is
        // unknown is always a candidate, so tables leave it out.
        let is_known = |place: &u32| files.get(*place as usize).is_some_and(Option::is_some);
        let here = |table: &Arc<HashTable>| {
            let places =
                table.segments().iter().map(|id| uncovered.remove(id).filter(is_known)).collect();
            (table.clone(), places)
        };
        let tables = if tables.is_empty() { Vec::new() } else { tables.iter().map(here).collect() };
        let places = || files.iter().zip(0u32..);
        let unbounded: Vec<u32> =
            places().filter(|(file, _)| file.is_none()).map(|(_, place)| place).collect();
        let bounds_of = |column: usize| -> Vec<Bounds> {
            let bounded = places().filter_map(|(file, place)| {
                let (file, columns) = (*file)?;
                let (low, high) = bounds(file.columns().get(*columns.get(column)?)?, types[column]);
                Some((low, high, place))
            });
            bounded.collect()
        };
        let all = (0..types.len()).map(|column| (column, Intervals::new(&bounds_of(column))));
        let best = all.min_by(|(_, a), (_, b)| a.depth().total_cmp(&b.depth()));
        let (column, intervals) = best.unwrap_or_default();
        // A key in a segment that is left out would not be found.
        invariant!(
            intervals.len() + unbounded.len() == list.len(),
            "a directory of {} segments has {} ranges and {} without",
            list.len(),
            intervals.len(),
            unbounded.len()
        );
        let of_uncovered = || {
            let mut bounds = bounds_of(column);
            bounds.retain(|(_, _, place)| {
                uncovered.contains_key(&list[*place as usize].segment.id())
            });
            Intervals::new(&bounds)
        };
        let uncovered = (!tables.is_empty()).then(of_uncovered);
        Directory { types, column, intervals, uncovered, unbounded, tables }
    }

    /// The average number of segments whose range contains a key.
    pub fn depth(&self) -> f64 {
        self.intervals.depth()
    }

    /// The segments that may hold an encoded whole key without nulls.
    pub fn candidates(&self, key: &[u8]) -> Result<Candidates> {
        debug_assert!(
            key::parts(key, &self.types).map(<[u8]>::len).sum::<usize>() == key.len(),
            "a key to find does not divide into its {} columns",
            self.types.len()
        );
        let mut found = Candidates::default();
        self.unbounded.iter().for_each(|place| found.push(*place, NOWHERE));
        let value = key::parts(key, &self.types).nth(self.column).unwrap_or_default();
        let intervals = self.uncovered.as_ref().unwrap_or(&self.intervals);
        intervals.stab(value, &mut |place| found.push(place, NOWHERE));
        if !self.tables.is_empty() {
            let hash = hash_bytes(key);
            for (table, places) in &self.tables {
                table.find(hash, |segment, position| {
                    if let Some(Some(place)) = places.get(segment) {
                        found.push(*place, position);
                    }
                })?;
            }
        }
        found.sort();
        Ok(found)
    }

    /// The places of the segments that may hold keys of a range, ascending.
    pub fn overlapping(&self, range: &KeyRange) -> Result<Vec<usize>> {
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
        let mut found: Vec<usize> = self.unbounded.iter().map(|place| *place as usize).collect();
        self.intervals
            .overlap(low.as_deref(), high.as_deref(), &mut |place| found.push(place as usize));
        found.sort_unstable();
        debug_assert!(
            found.windows(2).all(|pair| pair[0] < pair[1]),
            "a segment overlaps a range twice"
        );
        Ok(found)
    }
}

/// The encoded range of a column.
fn bounds(column: &ColumnMeta, data_type: DataType) -> (Vec<u8>, Vec<u8>) {
    let encode = |value: &Value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, data_type, value).ok().map(|()| bytes)
    };
    match (encode(&column.min), encode(&column.max)) {
        // Nulls sort first and are not included in the bounds.
        (Some(_), Some(high)) if column.null_count > 0 => (vec![0], high),
        (Some(low), Some(high)) => (low, high),
        _ => (Vec::new(), vec![u8::MAX; 8]),
    }
}
