//! Partial aggregates over the sorted rows, so that a sliding frame is combined from a few parts
//! however wide it is: a segment tree over accumulators (V. Leis et al., *Efficient Processing of
//! Window Functions in Analytical SQL Queries*, PVLDB 2015).
//!
//! The tree spans all rows, regardless of partitions; a part that crosses a partition boundary lies
//! in no frame. Parts are added from left to right, so that ties keep their first value and sums
//! are computed over the values in row order.

use crate::aggregate::accumulator::Accumulator;
use nacre_function::vector::groups::Groups;
use nacre_types::Result;
use std::ops::Range;

/// Rows summarised by one part of the first level, and parts summarised by one part of the next
/// level.
const FANOUT: usize = 64;
/// A frame with fewer rows is accumulated row by row.
pub(super) const WIDE: usize = 2 * FANOUT;

pub(super) struct Summaries {
    levels: Vec<Accumulator>,
}

/// One part of a frame.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Rows(Range<usize>),
    /// Parts of one level.
    Level(usize, Range<usize>),
}

impl Summaries {
    /// Summarises `rows` rows; `add` accumulates those that count. Fails if an aggregate of a
    /// single part is out of range.
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

    /// Adds these rows to the only group of an accumulator. `add` accumulates rows that no part
    /// covers.
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

/// For each of `count` rows or parts, the index of its parent one level up.
fn of_next_level(count: usize) -> Vec<u32> {
    (0..count).map(|at| (at / FANOUT) as u32).collect()
}

/// Splits a range of rows into parts, in order, with `levels` levels above the rows. Each run of
/// parts has at most [`FANOUT`].
fn parts(rows: Range<usize>, levels: usize) -> impl Iterator<Item = Part> {
    let mut at = rows.start;
    std::iter::from_fn(move || {
        if at >= rows.end {
            return None;
        }
        // Choose the largest part that begins here and fits; take parts of that size until a larger
        // one can begin or the range ends.
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
