//! Which segments of a list may hold a key: one question, [`Directory::candidates`], for the primary key and for every
//! index.
//!
//! Each segment has the range of its keys in its footer. The ranges are in an interval tree ([`Intervals`]), so that a
//! key meets only the segments whose range holds it, however many there are. What a candidate really has, is for who
//! asks to find out: neither deletions nor snapshots matter here.

use crate::index::Index;
use crate::index::intervals::{Bounds, Intervals};
use crate::index::part::Part;
use crate::segments::SegmentState;
use crate::table::Table;
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::{DataType, Result, Value, key};
use std::sync::Arc;

/// Candidates that are kept without an allocation.
const INLINE: usize = 8;

/// What finds the segments of one list that may hold a key.
pub(crate) struct Directory {
    /// Of the key's columns.
    types: Vec<DataType>,
    /// The key's column whose ranges overlap least; the ranges are of its values.
    column: usize,
    intervals: Intervals,
    /// Segments whose range is not known.
    unbounded: Vec<u32>,
}

impl Directory {
    /// For the key that identifies the rows of a table.
    pub fn of_primary_key(table: &Table, list: &[Arc<SegmentState>]) -> Directory {
        let columns: Vec<Option<Vec<usize>>> = list.iter().map(|s| table.segment_key_columns(s).ok()).collect();
        let files = list.iter().zip(&columns).map(|(state, columns)| Some((&*state.segment, columns.as_deref()?)));
        Directory::new(table.key_types(), &files.collect::<Vec<_>>())
    }

    /// For the keys of an index.
    pub fn of_index(index: &Index, list: &[Arc<SegmentState>]) -> Directory {
        let parts: Vec<Option<Arc<Part>>> = list.iter().map(|state| state.part(index.schema.id)).collect();
        let files = parts.iter().map(|part| part.as_ref().map(|part| (&*part.file, &part.keys[..])));
        Directory::new(index.types.clone(), &files.collect::<Vec<_>>())
    }

    /// `files` are, by place, those in which the keys are and where the key's columns are in them.
    fn new(types: Vec<DataType>, files: &[Option<(&Segment, &[usize])>]) -> Directory {
        let places = || files.iter().zip(0u32..);
        let unbounded = places().filter(|(file, _)| file.is_none()).map(|(_, place)| place).collect();
        let of_column = |column: usize| {
            let bounded = places().filter_map(|(file, place)| {
                let (file, columns) = (*file)?;
                let (low, high) = bounds(file.columns().get(*columns.get(column)?)?, types[column]);
                Some((low, high, place))
            });
            Intervals::new(&bounded.collect::<Vec<Bounds>>())
        };
        let all = (0..types.len()).map(|column| (column, of_column(column)));
        let best = all.min_by(|(_, a), (_, b)| a.depth().total_cmp(&b.depth()));
        let (column, intervals) = best.unwrap_or_default();
        Directory { types, column, intervals, unbounded }
    }

    /// The segments that may hold a key without nulls, which is encoded whole.
    pub fn candidates(&self, key: &[u8]) -> Result<Candidates> {
        let mut found = Candidates::default();
        self.unbounded.iter().for_each(|place| found.push(*place));
        let value = key::parts(key, &self.types).nth(self.column).unwrap_or_default();
        self.intervals.stab(value, &mut |place| found.push(place));
        found.sort();
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

/// Some places of a list of segments.
#[derive(Default)]
pub(crate) struct Candidates {
    count: usize,
    few: [u32; INLINE],
    /// All of them, once they are more than a few.
    many: Vec<u32>,
}

impl Candidates {
    /// All segments of a list of so many.
    pub fn all(segments: usize) -> Candidates {
        let mut all = Candidates::default();
        (0..segments as u32).for_each(|place| all.push(place));
        all
    }

    fn push(&mut self, place: u32) {
        if let Some(free) = self.few.get_mut(self.count) {
            *free = place;
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.few);
            }
            self.many.push(place);
        }
        self.count += 1;
    }

    fn sort(&mut self) {
        let places = if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many[..] };
        places.sort_unstable();
    }

    fn places(&self) -> &[u32] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    /// The places, newest segment first.
    pub fn newest_first(&self) -> impl Iterator<Item = usize> {
        self.places().iter().rev().map(|place| *place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Candidates;

    #[test]
    fn many_candidates_are_kept_as_well_as_few() {
        for count in [0, 1, 7, 8, 9, 40] {
            let mut found = Candidates::default();
            (0..count).for_each(|n| found.push(n * 11 % count));
            found.sort();
            let expected: Vec<usize> = (0..count as usize).rev().collect();
            assert_eq!(found.newest_first().collect::<Vec<_>>(), expected);
            assert_eq!(Candidates::all(count as usize).newest_first().collect::<Vec<_>>(), expected);
        }
    }
}
