//! `UNION ALL`, `INTERSECT` and `EXCEPT`. Rows are equal when all their columns are; null equals null.

use crate::context::{Context, Operator, Step, pull};
use crate::expr::Rows;
use crate::group::Grouper;
use nacre_column::Batch;
use nacre_types::{DataType, Result};

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
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        while let Some(input) = &mut self.current {
            if let Some(batch) = pull!(input, context) {
                return Ok(Step::Batch(batch));
            }
            // Ended inputs are dropped with what they hold.
            self.current = self.inputs.next();
        }
        Ok(Step::Done)
    }
}

/// `INTERSECT` and `EXCEPT`. Rows of the right side are counted first; each row of the left side then passes or
/// not as it comes, and uses up a count where duplicates matter.
pub(crate) struct SetOperation {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    grouper: Grouper,
    /// Rows of the right side in each group; without `all` a passed or used up group has none.
    counts: Vec<u32>,
    /// Without `all`: whether a group may still pass.
    open: Vec<bool>,
    except: bool,
    all: bool,
    counted: bool,
}

impl SetOperation {
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        types: &[DataType],
        except: bool,
        all: bool,
    ) -> SetOperation {
        let grouper = Grouper::new(types);
        SetOperation { left, right, grouper, counts: Vec::new(), open: Vec::new(), except, all, counted: false }
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
}

impl Operator for SetOperation {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        let mut ids = Vec::new();
        if !self.counted {
            while let Some(batch) = pull!(self.right, context) {
                context.check_cancelled()?;
                let rows = Rows { len: batch.rows, selection: batch.selection.as_deref() };
                self.grouper.assign(&batch.columns, rows, &mut ids)?;
                self.counts.resize(self.grouper.groups(), 0);
                ids.iter().for_each(|id| self.counts[*id as usize] = self.counts[*id as usize].saturating_add(1));
                context.check_memory("set operation", self.grouper.memory_bytes() + self.counts.len() * 5)?;
            }
            self.counted = true;
        }
        while let Some(batch) = pull!(self.left, context) {
            context.check_cancelled()?;
            let rows = Rows { len: batch.rows, selection: batch.selection.as_deref() };
            self.grouper.assign(&batch.columns, rows, &mut ids)?;
            self.counts.resize(self.grouper.groups(), 0);
            self.open.resize(self.grouper.groups(), true);
            let passed: Vec<u32> =
                rows.iter().zip(&ids).filter(|(_, id)| self.passes(**id as usize)).map(|(row, _)| row as u32).collect();
            context.check_memory("set operation", self.grouper.memory_bytes() + self.counts.len() * 5)?;
            if !passed.is_empty() {
                return Ok(Step::Batch(super::settle(Batch { selection: Some(passed), ..batch })));
            }
        }
        Ok(Step::Done)
    }
}
