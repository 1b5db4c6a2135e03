//! Candidate segments of a key, and the key's position in them.

use crate::layout::table_layout::TableLayout;
use crate::segments::state::SegmentState;
use nacre_segment::Segment;
use nacre_types::{Result, Value, limits};

/// Number of candidates stored without an allocation.
const INLINE: usize = 8;
/// An unknown position.
pub(crate) const NOWHERE: u32 = u32::MAX;
const _: () = assert!(NOWHERE as usize >= limits::MAX_SEGMENT_ROWS);

/// A segment that may hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its place in the list.
    pub place: usize,
    /// The row of the key, or its first position in an index part, if the segment has it at all. A
    /// segment may have several candidates. `None` if the position is unknown and the segment must
    /// be searched.
    pub position: Option<u32>,
    /// The key's hash, for segments with a key filter.
    pub hash: Option<u64>,
}

/// The candidates of a segment list.
#[derive(Default)]
pub(crate) struct Candidates {
    count: usize,
    few: [(u32, u32); INLINE],
    /// All candidates, once there are more than [`INLINE`].
    many: Vec<(u32, u32)>,
    hash: Option<u64>,
}

impl Candidates {
    /// Makes the segments at these ascending places candidates.
    pub fn of_places(places: impl IntoIterator<Item = usize>) -> Candidates {
        let mut found = Candidates::default();
        for place in places {
            debug_assert!(place < NOWHERE as usize, "segment {place} of one list");
            found.push(place as u32, NOWHERE);
        }
        debug_assert!(found.all_found().is_sorted(), "segments are not in the order of their list");
        found
    }

    /// Sets the key's hash, so that key filters can be checked before searching a segment.
    pub fn with_hash(self, hash: u64) -> Candidates {
        Candidates { hash: Some(hash), ..self }
    }

    /// Adds the segment at `place`, with the key's position in it or [`NOWHERE`].
    pub(crate) fn push(&mut self, place: u32, position: u32) {
        debug_assert!(place != NOWHERE, "a candidate is nowhere in the list of segments");
        if let Some(free) = self.few.get_mut(self.count) {
            *free = (place, position);
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.few);
            }
            self.many.push((place, position));
        }
        self.count += 1;
        debug_assert!(self.all_found().len() == self.count, "a candidate is lost");
    }

    /// Sorts the candidates by place.
    pub(crate) fn sort(&mut self) {
        let all =
            if self.many.is_empty() { &mut self.few[..self.count] } else { &mut self.many[..] };
        all.sort_unstable();
        debug_assert!(
            self.all_found().windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[1].1 != NOWHERE),
            "a segment is a candidate as a whole and by a position"
        );
    }

    fn all_found(&self) -> &[(u32, u32)] {
        debug_assert!(
            self.many.is_empty() || self.many.len() == self.count,
            "{} of {} candidates are found",
            self.many.len(),
            self.count
        );
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    /// The candidates, newest segment first.
    pub fn newest_first(&self) -> impl Iterator<Item = Candidate> {
        debug_assert!(self.all_found().is_sorted(), "candidates are read out of order");
        self.all_found().iter().rev().map(|(place, position)| Candidate {
            place: *place as usize,
            position: (*position != NOWHERE).then_some(*position),
            hash: self.hash,
        })
    }
}

impl Candidate {
    /// The row with a primary key in the candidate's segment, deleted or not.
    pub fn find(
        &self,
        layout: &TableLayout,
        state: &SegmentState,
        key: &[Value],
    ) -> Result<Option<u32>> {
        debug_assert!(
            key.len() == layout.key_columns().map_or(1, <[usize]>::len),
            "a key of {} values is looked for",
            key.len()
        );
        match self.position {
            Some(row) => {
                let columns = layout.key_positions(&state.segment)?;
                Ok(state.segment.is_key(row as usize, &columns, key)?.then_some(row))
            }
            None if !state.may_have(self.hash)? => Ok(None),
            None => layout.find_row(&state.segment, key, Segment::search_to_read),
        }
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
            assert_eq!(places(&Candidates::of_places(0..count as usize)), expected);
        }
    }
}
