//! Rows summed up beforehand, so that a frame that slides is put together from few parts, whatever its width: a segment
//! tree over accumulators (Leis, Kundhikanjana, Kemper, Neumann: Efficient Processing of Window Functions in Analytical
//! SQL Queries, PVLDB 2015).
//!
//! Parts are of all rows, whatever partitions there are: a part that lies in two is in no frame. Parts of a frame are
//! taken from left to right, so that of equal values the first is kept, and its sums pass over the values they would
//! have row by row.

use crate::aggregate::accumulator::Accumulator;
use nacre_function::vector::groups::Groups;
use nacre_types::Result;
use std::ops::Range;

/// Rows of a part of the first level; parts of each level in one of the next.
const FANOUT: usize = 64;
/// A frame of fewer rows is accumulated row by row.
pub(super) const WIDE: usize = 2 * FANOUT;

pub(super) struct Summaries {
    levels: Vec<Accumulator>,
}

/// Where a part of a frame is.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Rows(Range<usize>),
    /// Groups of a level.
    Level(usize, Range<usize>),
}

impl Summaries {
    /// Summarises `rows` rows: `add` accumulates those that count. Fails where a single part is out of range.
    pub fn new(
        rows: usize,
        fresh: impl Fn() -> Result<Accumulator>,
        add: impl FnOnce(&mut Accumulator, Groups<'_>) -> Result<()>,
    ) -> Result<Summaries> {
        let mut count = rows.div_ceil(FANOUT);
        let mut level = fresh()?;
        level.resize(count);
        add(&mut level, Groups::Each(&of_next_level(rows)))?;
        let mut levels = vec![level];
        while count > FANOUT {
            let ids = of_next_level(count);
            count = count.div_ceil(FANOUT);
            let mut level = fresh()?;
            level.resize(count);
            levels.last().map_or(Ok(()), |below| level.merge(below, 0, &ids))?;
            levels.push(level);
        }
        Ok(Summaries { levels })
    }

    /// Adds these rows to the only group of an accumulator; `add` does it for those that are no part.
    pub fn add(
        &self,
        rows: Range<usize>,
        to: &mut Accumulator,
        mut add: impl FnMut(&mut Accumulator, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        parts(rows, self.levels.len()).try_for_each(|part| match part {
            Part::Rows(rows) => add(to, rows),
            Part::Level(level, groups) => {
                to.merge(&self.levels[level], groups.start, &[0; FANOUT][..groups.len()])
            }
        })
    }
}

/// The group, one level up, of each of `count` rows or groups.
fn of_next_level(count: usize) -> Vec<u32> {
    (0..count).map(|at| (at / FANOUT) as u32).collect()
}

/// The parts of some rows in order, with `levels` levels above the rows. No part has more than [`FANOUT`]
/// groups.
fn parts(rows: Range<usize>, levels: usize) -> impl Iterator<Item = Part> {
    let mut at = rows.start;
    std::iter::from_fn(move || {
        if at >= rows.end {
            return None;
        }
        // The largest that begins here and ends in time; as many as that until a larger one begins, or the end is near.
        let (mut level, mut unit) = (0, 1);
        while level < levels && at.is_multiple_of(unit * FANOUT) && at + unit * FANOUT <= rows.end {
            unit *= FANOUT;
            level += 1;
        }
        let next = (at / (unit * FANOUT) + 1) * unit * FANOUT;
        let groups = at / unit..next.min(rows.end) / unit;
        at = groups.end * unit;
        Some(if level == 0 { Part::Rows(groups) } else { Part::Level(level - 1, groups) })
    })
}

#[cfg(test)]
mod tests {
    use super::{FANOUT, Part, parts};

    #[test]
    fn parts_are_few_and_all_there_is() {
        let ends =
            [0, 1, 63, 64, 65, 127, 128, 129, 4_095, 4_096, 4_097, 8_192, 12_345, 262_144, 300_000];
        for levels in 0..4 {
            for (from, to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (*from, *to))) {
                let mut at = from;
                let mut count = 0;
                for part in parts(from..to, levels) {
                    let (unit, groups) = match part {
                        Part::Rows(rows) => (1, rows),
                        Part::Level(level, groups) => (FANOUT.pow(level as u32 + 1), groups),
                    };
                    assert_eq!(groups.start * unit, at, "{from}..{to} with {levels} levels");
                    assert!(!groups.is_empty() && groups.len() <= FANOUT);
                    at = groups.end * unit;
                    count += 1;
                }
                assert_eq!(at, to.max(from));
                let above = (to.max(from) - from) / FANOUT.pow(levels as u32 + 1);
                assert!(
                    count <= 2 * levels + 2 + above,
                    "{count} parts of {from}..{to} with {levels} levels"
                );
            }
        }
    }
}
