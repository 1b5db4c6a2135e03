//! `WITH RECURSIVE`, by semi-naive evaluation: each round computes the step over the previous
//! round's rows.
//!
//! Rows are returned as they come, so a `LIMIT` above ends an infinite recursion. The operator
//! holds the rows of two rounds and, if duplicates are dropped, every distinct row.

use super::duplicates::Duplicates;
use super::protocol::{Operator, Rebuild};
use crate::context::Context;
use crate::context::supplied::SuppliedRows;
use crate::expr::ActiveRows;
use crate::group::Grouper;
use crate::memory::Reservation;
use nacre_column::Batch;
use nacre_types::{DataType, Result};

/// The rows of a recursion.
pub struct Recursive {
    /// The number under which the step reads the previous round.
    id: u32,
    /// The operators of this round: first the base, then the step.
    current: Option<Box<dyn Operator>>,
    /// Builds the step for the next round.
    step: Rebuild,
    previous: Round,
    now: Round,
    held: Reservation,
    /// Every row so far, when duplicates are dropped.
    seen: Option<Grouper>,
}

/// The rows of one round.
#[derive(Default)]
struct Round {
    batches: Vec<Batch>,
    bytes: usize,
}

impl Recursive {
    /// A recursion over rows of these types.
    pub fn new(
        id: u32,
        base: Box<dyn Operator>,
        step: Rebuild,
        types: &[DataType],
        duplicates: Duplicates,
    ) -> Recursive {
        Recursive {
            id,
            current: Some(base),
            step,
            previous: Round::default(),
            now: Round::default(),
            held: Reservation::default(),
            seen: (duplicates == Duplicates::Drop).then(|| Grouper::new(types)),
        }
    }

    /// The rows that have not been seen before.
    fn fresh(&mut self, batch: Batch) -> Result<Option<Batch>> {
        let Some(seen) = &mut self.seen else { return Ok(Some(batch.compact())) };
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let (mut known, mut ids) = (seen.groups(), Vec::new());
        seen.assign(&batch.columns, rows, &mut ids)?;
        let mut new = Vec::new();
        for (row, id) in rows.iter().zip(ids) {
            // Groups are numbered in the order in which they are first seen.
            if id as usize >= known {
                known += 1;
                new.push(row as u32);
            }
        }
        Ok((!new.is_empty()).then(|| Batch { selection: Some(new), ..batch }.compact()))
    }
}

impl Operator for Recursive {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.give_way()?;
            let Some(current) = &mut self.current else { return Ok(None) };
            let supplied = SuppliedRows {
                id: self.id,
                batches: &self.previous.batches,
                others: context.supplied,
            };
            let inner = Context { supplied: Some(&supplied), ..*context };
            if let Some(batch) = current.next(&inner)? {
                let Some(batch) = self.fresh(batch)? else { continue };
                self.now.bytes += batch.memory_bytes(self.now.batches.last());
                let seen = self.seen.as_ref().map_or(0, Grouper::memory_bytes);
                let bytes = self.previous.bytes + self.now.bytes + seen;
                context.reserve(&mut self.held, "WITH RECURSIVE", bytes)?;
                self.now.batches.push(batch.clone());
                return Ok(Some(batch));
            }
            // The step is built before the rounds change: after an error, the next call finds the
            // end of this round again.
            self.current = match self.now.batches.is_empty() {
                true => None,
                false => Some((self.step)(context)?),
            };
            self.previous = std::mem::take(&mut self.now);
        }
    }
}
