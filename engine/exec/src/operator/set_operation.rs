//! `UNION ALL`, `INTERSECT` and `EXCEPT`. Rows are equal when all their columns are; null equals null.

use super::settle::settle;
use crate::buffer::limits::NO_ROW;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::group::{Grouper, Seen};
use crate::memory::Reservation;
use crate::operator::inputs::{Inputs, exactly};
use crate::operator::protocol::Operator;
use crate::spill::{Partition, Partitions, SpillScan};
use nacre_column::Batch;
use nacre_sql::plan::node::set_operation as node;
use nacre_types::{DataType, Result};
use std::sync::Arc;

/// Rows of all inputs, one input after the other.
pub(crate) struct Union {
    inputs: std::vec::IntoIter<Box<dyn Operator>>,
    current: Option<Box<dyn Operator>>,
}

impl Union {
    pub fn new(inputs: Vec<Box<dyn Operator>>) -> Union {
        let mut inputs = inputs.into_iter();
        Union { current: inputs.next(), inputs }
    }
}

impl Operator for Union {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while let Some(input) = &mut self.current {
            if let Some(batch) = input.next(context)? {
                return Ok(Some(batch));
            }
            // Ended inputs are dropped with what they hold.
            self.current = self.inputs.next();
        }
        Ok(None)
    }
}

/// `INTERSECT` and `EXCEPT`. Rows of the right side are counted first; each row of the left side then passes or
/// not as it comes, and uses up a count where duplicates matter.
///
/// Once no further row can be held, those that are known stay, and all rows of both sides that equal none of them are
/// put aside in partitions (`spill`), which are compared by themselves afterwards.
pub(crate) struct SetOperation {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    types: Vec<DataType>,
    grouper: Grouper,
    /// Rows of the right side in each group; without `all` a passed or used up group has none.
    counts: Vec<u32>,
    /// Without `all`: whether a group may still pass.
    open: Vec<bool>,
    except: bool,
    all: bool,
    counted: bool,
    held: Reservation,
    /// How often the rows were put aside before.
    level: u32,
    /// Left and right rows that are not held.
    aside: Option<(Partitions, Partitions)>,
    seen: Seen,
    rest: Vec<(Partition, Partition)>,
    current: Option<Box<SetOperation>>,
    left_done: bool,
}

/// The operator of a node.
pub(crate) fn operator(node: &node::SetOperation, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [left, right] = exactly(inputs);
    let types: Vec<DataType> = node.fields.iter().map(|f| f.data_type).collect();
    Ok(Box::new(SetOperation::new(left, right, &types, node.except, node.all)))
}

impl SetOperation {
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        types: &[DataType],
        except: bool,
        all: bool,
    ) -> SetOperation {
        SetOperation {
            left,
            right,
            types: types.to_vec(),
            grouper: Grouper::new(types),
            counts: Vec::new(),
            open: Vec::new(),
            except,
            all,
            counted: false,
            held: Reservation::default(),
            level: 0,
            aside: None,
            seen: Seen::default(),
            rest: Vec::new(),
            current: None,
            left_done: false,
        }
    }

    fn passes(&mut self, group: usize) -> bool {
        if self.all {
            let found = self.counts[group] > 0;
            self.counts[group] -= u32::from(found);
            return found != self.except;
        }
        let first = std::mem::replace(&mut self.open[group], false);
        first && (self.counts[group] > 0) != self.except
    }

    /// The groups of a batch's rows, and which rows these are: those that are held.
    fn groups(
        &mut self,
        batch: &Batch,
        is_left: bool,
        context: &Context<'_>,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        context.check_cancelled()?;
        let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
        let mut ids = Vec::new();
        if let Some((lefts, rights)) = &mut self.aside {
            self.grouper.lookup(&batch.columns, rows, &mut self.seen, &mut ids)?;
            let (mut known, mut unknown) = (Vec::new(), Vec::new());
            for (row, id) in rows.iter().zip(&ids) {
                if *id == NO_ROW { unknown.push(row as u32) } else { known.push(row as u32) }
            }
            ids.retain(|id| *id != NO_ROW);
            let aside = if is_left { lefts } else { rights };
            aside.add(&batch.columns, batch, rows.narrowed(&unknown), context)?;
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
            let partitions = || Partitions::new(&file, &self.types, self.level, context);
            self.aside = Some((partitions(), partitions()));
        }
        Ok((ids, rows.to_selection()))
    }

    /// The next partitions that were put aside, as an operation of their own.
    fn next_partition(&mut self) -> bool {
        // They need the memory.
        self.held.release();
        self.grouper = Grouper::new(&self.types);
        while let Some((left, right)) = self.rest.pop() {
            if left.rows.rows() > 0 {
                let scan =
                    |partition: Partition| Box::new(SpillScan::new(Arc::new(partition.rows)));
                let mut inner =
                    SetOperation::new(scan(left), scan(right), &self.types, self.except, self.all);
                inner.level = self.level + 1;
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
            let (ids, _) = self.groups(&batch, false, context)?;
            ids.iter().for_each(|id| {
                self.counts[*id as usize] = self.counts[*id as usize].saturating_add(1)
            });
        }
        while !self.left_done {
            let Some(batch) = self.left.next(context)? else {
                self.left_done = true;
                if let Some((lefts, rights)) = self.aside.take() {
                    self.rest =
                        lefts.finish(context)?.into_iter().zip(rights.finish(context)?).collect();
                }
                break;
            };
            let (ids, rows) = self.groups(&batch, true, context)?;
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
