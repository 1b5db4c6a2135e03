//! `WITH RECURSIVE`, round by round: the rows of a round are what the step is computed over in the next.
//!
//! Rows are passed on as they come, so that a `LIMIT` above ends what would go on for ever. What is held is the rows
//! of two rounds and, where duplicates do not count, every row once.

use crate::build::Builder;
use crate::context::Context;
use crate::context::supplied::SuppliedRows;
use crate::expr::ActiveRows;
use crate::group::Grouper;
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_types::{DataType, Result};

/// See the module.
pub(crate) struct Recursive {
    id: u32,
    /// Where rows come from now: the base, then the step of this round.
    current: Option<Box<dyn Operator>>,
    step: Box<Plan>,
    /// Builds the step anew for every round; what does not depend on the round stays.
    builder: Builder,
    /// Rows of the round before.
    before: Vec<Batch>,
    /// Rows of this round.
    now: Vec<Batch>,
    bytes: (usize, usize),
    held: Reservation,
    /// Every row there was, when duplicates do not count.
    seen: Option<Grouper>,
}

impl Recursive {
    pub fn new(
        id: u32,
        base: Box<dyn Operator>,
        step: Box<Plan>,
        builder: Builder,
        types: &[DataType],
        distinct: bool,
    ) -> Recursive {
        let seen = distinct.then(|| Grouper::new(types));
        Recursive {
            id,
            current: Some(base),
            step,
            builder,
            before: Vec::new(),
            now: Vec::new(),
            bytes: (0, 0),
            held: Reservation::default(),
            seen,
        }
    }

    /// The rows that were not there before.
    fn fresh(&mut self, batch: Batch) -> Result<Option<Batch>> {
        let Some(seen) = &mut self.seen else { return Ok(Some(batch.compact())) };
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let (mut known, mut ids) = (seen.groups(), Vec::new());
        seen.assign(&batch.columns, rows, &mut ids)?;
        let mut new = Vec::new();
        for (row, id) in rows.iter().zip(ids) {
            // Groups are numbered in the order they are first seen.
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
            context.check_cancelled()?;
            let Some(current) = &mut self.current else { return Ok(None) };
            let given =
                SuppliedRows { id: self.id, batches: &self.before, others: context.supplied };
            let inner = Context { supplied: Some(&given), ..*context };
            if let Some(batch) = current.next(&inner)? {
                let Some(batch) = self.fresh(batch)? else { continue };
                self.bytes.1 += batch.memory_bytes(self.now.last());
                let seen = self.seen.as_ref().map_or(0, Grouper::memory_bytes);
                context.reserve(
                    &mut self.held,
                    "WITH RECURSIVE",
                    self.bytes.0 + self.bytes.1 + seen,
                )?;
                self.now.push(batch.clone());
                return Ok(Some(batch));
            }
            self.before = std::mem::take(&mut self.now);
            self.bytes = (self.bytes.1, 0);
            self.current = match self.before.is_empty() {
                true => None,
                false => Some(self.builder.round(&self.step, context)?),
            };
        }
    }
}
