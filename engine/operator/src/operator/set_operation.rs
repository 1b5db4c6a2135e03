//! `INTERSECT` and `EXCEPT`. Rows are equal when all their columns are; null equals null.
//!
//! Rows of the right side are counted first; each row of the left side then passes or not as it
//! comes, and uses up a count where duplicates are kept.
//!
//! Once no further row fits in memory, the groups that are known stay, and all rows of either side
//! that belong to none of them are set aside in partitions (`spill`), which are compared on their
//! own afterwards.

use super::duplicates::Duplicates;
use super::inputs::{Inputs, exactly};
use super::protocol::Operator;
use super::settle::settle;
use crate::buffer::limits::NO_ROW;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::group::{Grouper, Seen};
use crate::memory::Reservation;
use crate::spill::{Partitions, SpillScan, SpilledPartition};
use nacre_column::Batch;
use nacre_sql::plan::node::set_operation as node;
use nacre_types::{DataType, Result, invariant};
use std::sync::Arc;

/// Which left rows to return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// `INTERSECT`: those also on the right side.
    Present,
    /// `EXCEPT`: those not on the right side.
    Absent,
}

/// What a set operation computes.
#[derive(Clone)]
struct SetSpec {
    types: Vec<DataType>,
    passes: Passes,
    /// `ALL` keeps them.
    duplicates: Duplicates,
}

/// An input of the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Rows that do not fit in memory.
struct Aside {
    left: Partitions,
    right: Partitions,
}

/// Compares the rows of two inputs.
struct SetOperation {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    spec: SetSpec,
    grouper: Grouper,
    /// Rows of the right side in each group, less those used up by left rows where duplicates are
    /// kept.
    counts: Vec<u32>,
    /// Where duplicates are dropped: whether a left row of the group may still pass.
    open: Vec<bool>,
    /// Whether all right rows are counted.
    counted: bool,
    held: Reservation,
    /// Number of times these rows were set aside before.
    level: u32,
    aside: Option<Aside>,
    seen: Seen,
    /// Pairs of partitions to be compared.
    rest: Vec<(SpilledPartition, SpilledPartition)>,
    /// The comparison of one pair.
    current: Option<Box<SetOperation>>,
    left_done: bool,
}

/// The operator of a node.
pub fn operator(node: &node::SetOperation, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [left, right] = exactly(inputs);
    let spec = SetSpec {
        types: node.fields.iter().map(|f| f.data_type).collect(),
        passes: if node.except { Passes::Absent } else { Passes::Present },
        duplicates: if node.all { Duplicates::Keep } else { Duplicates::Drop },
    };
    Ok(Box::new(SetOperation::new(left, right, spec, 0)))
}

impl SetOperation {
    /// Over two inputs that were set aside `level` times before.
    fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        spec: SetSpec,
        level: u32,
    ) -> SetOperation {
        SetOperation {
            left,
            right,
            grouper: Grouper::new(&spec.types),
            spec,
            counts: Vec::new(),
            open: Vec::new(),
            counted: false,
            held: Reservation::default(),
            level,
            aside: None,
            seen: Seen::default(),
            rest: Vec::new(),
            current: None,
            left_done: false,
        }
    }

    /// Whether a left row of a group passes.
    fn passes(&mut self, group: usize) -> bool {
        let is_present = self.counts[group] > 0;
        let passes = is_present == (self.spec.passes == Passes::Present);
        match self.spec.duplicates {
            Duplicates::Keep => {
                self.counts[group] -= u32::from(is_present);
                passes
            }
            Duplicates::Drop => std::mem::replace(&mut self.open[group], false) && passes,
        }
    }

    /// The groups of the rows of a batch that belong to known groups, and those rows. Other rows
    /// are set aside.
    fn groups(
        &mut self,
        batch: &Batch,
        side: Side,
        context: &Context<'_>,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        context.check_cancelled()?;
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let mut ids = Vec::new();
        if let Some(aside) = &mut self.aside {
            self.grouper.lookup(&batch.columns, rows, &mut self.seen, &mut ids)?;
            let (mut known, mut unknown) = (Vec::new(), Vec::new());
            for (row, id) in rows.iter().zip(&ids) {
                if *id == NO_ROW { unknown.push(row as u32) } else { known.push(row as u32) }
            }
            ids.retain(|id| *id != NO_ROW);
            let partitions = match side {
                Side::Left => &mut aside.left,
                Side::Right => &mut aside.right,
            };
            partitions.add(&batch.columns, batch, rows.narrowed(&unknown), context)?;
            return Ok((ids, known));
        }
        self.grouper.assign(&batch.columns, rows, &mut ids)?;
        self.counts.resize(self.grouper.groups(), 0);
        self.open.resize(self.grouper.groups(), true);
        if !self
            .held
            .try_resize(self.grouper.memory_bytes() + self.counts.len() * 5, context.memory)
        {
            let file = context.spill_file("set operation")?;
            let partitions = || Partitions::new(&file, &self.spec.types, self.level, context);
            self.aside = Some(Aside { left: partitions(), right: partitions() });
        }
        Ok((ids, rows.to_selection()))
    }

    /// Starts on the next pair of partitions that can produce rows; false when there is none.
    fn next_partition(&mut self) -> bool {
        // The partitions need the memory.
        self.held.release();
        self.grouper = Grouper::new(&self.spec.types);
        while let Some((left, right)) = self.rest.pop() {
            if left.rows.rows() > 0 {
                let scan = |partition: SpilledPartition| {
                    Box::new(SpillScan::new(Arc::new(partition.rows)))
                };
                let (spec, level) = (self.spec.clone(), self.level + 1);
                let inner = SetOperation::new(scan(left), scan(right), spec, level);
                self.current = Some(Box::new(inner));
                return true;
            }
        }
        false
    }
}

impl Operator for SetOperation {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while !self.counted {
            let Some(batch) = self.right.next(context)? else {
                self.counted = true;
                break;
            };
            let (ids, _) = self.groups(&batch, Side::Right, context)?;
            ids.iter().for_each(|id| {
                self.counts[*id as usize] = self.counts[*id as usize].saturating_add(1)
            });
        }
        while !self.left_done {
            let Some(batch) = self.left.next(context)? else {
                self.left_done = true;
                if let Some(Aside { left, right }) = self.aside.take() {
                    let (left, right) = (left.finish(context)?, right.finish(context)?);
                    invariant!(
                        left.len() == right.len(),
                        "{} left partitions for {} right ones",
                        left.len(),
                        right.len()
                    );
                    self.rest = left.into_iter().zip(right).collect();
                }
                break;
            };
            let (ids, rows) = self.groups(&batch, Side::Left, context)?;
            let passed: Vec<u32> = rows
                .iter()
                .zip(&ids)
                .filter(|(_, id)| self.passes(**id as usize))
                .map(|(row, _)| *row)
                .collect();
            if !passed.is_empty() {
                return Ok(Some(settle(Batch { selection: Some(passed), ..batch })));
            }
        }
        loop {
            context.check_cancelled()?;
            if let Some(current) = &mut self.current {
                if let Some(batch) = current.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            if !self.next_partition() {
                return Ok(None);
            }
        }
    }
}
