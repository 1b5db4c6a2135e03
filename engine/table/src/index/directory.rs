//! Which segments of a list may hold a key: one question, [`Directory::candidates`], for the primary key and for every
//! index.
//!
//! Each segment has the range of its keys in its footer. The ranges are in an interval tree ([`Intervals`]), so that a
//! key meets only the segments whose range holds it, however many there are. Where many ranges overlap, hash tables
//! ([`HashTable`]) cover most segments: then those are found by the key's hash, with the place of the key in them, and
//! the tree has the rest. What a candidate really has, is for who asks to find out: neither hashes that happen to be
//! equal nor deletions nor snapshots are looked into here.

use crate::index::definition::Index;
use crate::index::hash::table::HashTable;
use crate::index::intervals::{Bounds, Intervals};
use crate::read::probe::KeyRange;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::hash::{Map, hash_bytes};
use nacre_types::{DataType, Result, Value, key};
use std::ops::Bound;
use std::sync::Arc;

/// Candidates that are kept without an allocation.
const INLINE: usize = 8;
/// The position of a key is not known.
const NOWHERE: u32 = u32::MAX;

/// What finds the segments of one list that may hold a key.
pub(crate) struct Directory {
    /// Of the key's columns.
    types: Vec<DataType>,
    /// The key's column whose ranges overlap least; the ranges are of its values.
    column: usize,
    /// Ranges of all segments.
    intervals: Intervals,
    /// Where there are hash tables, ranges of the segments that none covers.
    uncovered: Option<Intervals>,
    /// Segments whose range is not known. Nothing is asked about them.
    unbounded: Vec<u32>,
    /// Hash tables, each with the places of its segments in the list; `None` for those that are not in it.
    tables: Vec<(Arc<HashTable>, Vec<Option<u32>>)>,
}

impl Directory {
    /// For the key that identifies the rows of a table.
    pub fn of_primary_key(
        table: &Table,
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        let columns: Vec<Option<Vec<usize>>> =
            list.iter().map(|s| table.segment_key_columns(s).ok()).collect();
        let files = list
            .iter()
            .zip(&columns)
            .map(|(state, columns)| Some((&*state.segment, columns.as_deref()?)));
        Directory::new(table.key_types(), &files.collect::<Vec<_>>(), list, tables)
    }

    /// For the keys of an index.
    pub fn of_index(
        index: &Index,
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        let parts: Vec<Option<Arc<Part>>> =
            list.iter().map(|state| state.part(index.schema.id)).collect();
        let files =
            parts.iter().map(|part| part.as_ref().map(|part| (&*part.file, &part.keys[..])));
        Directory::new(index.types.clone(), &files.collect::<Vec<_>>(), list, tables)
    }

    /// `files` are, by place, those in which the keys are and where the key's columns are in them.
    fn new(
        types: Vec<DataType>,
        files: &[Option<(&Segment, &[usize])>],
        list: &[Arc<SegmentState>],
        tables: &[Arc<HashTable>],
    ) -> Directory {
        let mut uncovered: Map<u64, u32> =
            list.iter().map(|state| state.segment.id()).zip(0u32..).collect();
        // Two tables never cover the same segment; if they did, one would do. A place in a file that is not known is
        // none: such a segment is a candidate already.
        let is_known = |place: &u32| files.get(*place as usize).is_some_and(Option::is_some);
        let here = |table: &Arc<HashTable>| {
            let places =
                table.segments.iter().map(|id| uncovered.remove(id).filter(is_known)).collect();
            (table.clone(), places)
        };
        let tables = if tables.is_empty() { Vec::new() } else { tables.iter().map(here).collect() };
        let places = || files.iter().zip(0u32..);
        let unbounded =
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

    /// How many segments' ranges a key is in, on average.
    pub fn depth(&self) -> f64 {
        self.intervals.depth()
    }

    /// The segments that may hold a key without nulls, which is encoded whole.
    pub fn candidates(&self, key: &[u8]) -> Result<Candidates> {
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
        // Nulls come first and are not in the bounds.
        (Some(_), Some(high)) if column.null_count > 0 => (vec![0], high),
        (Some(low), Some(high)) => (low, high),
        _ => (Vec::new(), vec![u8::MAX; 8]),
    }
}

/// A segment that may hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the list.
    pub place: usize,
    /// Where the key is, if it is there at all: the number of its row, or the first position of an index's part. Several
    /// candidates may be of one segment. `None` when that is not known, and the segment is to be searched.
    pub position: Option<u32>,
    /// The key's hash, when a filter of the segment may know it.
    pub hash: Option<u64>,
}

/// Candidates of a list of segments.
#[derive(Default)]
pub(crate) struct Candidates {
    count: usize,
    few: [(u32, u32); INLINE],
    /// All of them, once they are more than a few.
    many: Vec<(u32, u32)>,
    hash: Option<u64>,
}

impl Candidates {
    /// All segments of a list of so many.
    pub fn all(segments: usize) -> Candidates {
        let mut all = Candidates::default();
        (0..segments as u32).for_each(|place| all.push(place, NOWHERE));
        all
    }

    /// The same for who asks segments' filters before searching them.
    pub fn with_hash(self, hash: u64) -> Candidates {
        Candidates { hash: Some(hash), ..self }
    }

    fn push(&mut self, place: u32, position: u32) {
        if let Some(free) = self.few.get_mut(self.count) {
            *free = (place, position);
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.few);
            }
            self.many.push((place, position));
        }
        self.count += 1;
    }

    fn sort(&mut self) {
        let all =
            if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many[..] };
        all.sort_unstable();
    }

    fn all_of_them(&self) -> &[(u32, u32)] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    /// The candidates, newest segment first.
    pub fn newest_first(&self) -> impl Iterator<Item = Candidate> {
        self.all_of_them().iter().rev().map(|(place, position)| Candidate {
            place: *place as usize,
            position: (*position != NOWHERE).then_some(*position),
            hash: self.hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidates, NOWHERE};

    #[test]
    fn many_candidates_are_kept_as_well_as_few() {
        for count in [0, 1, 7, 8, 9, 40] {
            let mut found = Candidates::default();
            (0..count).for_each(|n| found.push(n * 11 % count, NOWHERE));
            found.sort();
            let places =
                |found: &Candidates| found.newest_first().map(|c| c.place).collect::<Vec<_>>();
            let expected: Vec<usize> = (0..count as usize).rev().collect();
            assert_eq!(places(&found), expected);
            assert_eq!(places(&Candidates::all(count as usize)), expected);
        }
    }
}
