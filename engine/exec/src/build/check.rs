//! Wraps operators so that debug builds check every batch they return.

use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::plan::Plan;
use nacre_types::{DataType, Result, limits};

/// Wraps the operator of a plan in debug builds.
pub(super) fn checked(operator: Box<dyn Operator>, plan: &Plan) -> Box<dyn Operator> {
    if cfg!(debug_assertions) {
        Box::new(Checked { operator, types: plan.types(), is_done: false })
    } else {
        operator
    }
}

struct Checked {
    operator: Box<dyn Operator>,
    /// The types that the plan declares.
    types: Vec<DataType>,
    is_done: bool,
}

impl Operator for Checked {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let batch = self.operator.next(context)?;
        match &batch {
            Some(batch) => {
                debug_assert!(!self.is_done, "an operator has no rows after its end");
                check(batch, &self.types);
            }
            None => self.is_done = true,
        }
        Ok(batch)
    }
}

/// Checks the invariants of a batch.
fn check(batch: &Batch, types: &[DataType]) {
    debug_assert!(batch.rows <= limits::VECTOR_ROWS, "a batch of {} rows", batch.rows);
    debug_assert!(batch.selected() > 0, "a batch has at least one row");
    debug_assert_eq!(batch.columns.len(), types.len(), "a batch has the columns of the plan");
    for (at, (column, declared)) in batch.columns.iter().zip(types).enumerate() {
        debug_assert_eq!(column.len(), batch.rows, "column {at} is as long as the batch");
        debug_assert_eq!(
            column.data_type().physical(),
            declared.physical(),
            "column {at} is of type {} where the plan declares {declared}",
            column.data_type()
        );
    }
    if let Some(selection) = &batch.selection {
        debug_assert!(
            selection.windows(2).all(|pair| pair[0] < pair[1]),
            "a selection is ascending and has no row twice"
        );
        debug_assert!(
            selection.last().is_none_or(|row| (*row as usize) < batch.rows),
            "a selection stays inside its batch"
        );
    }
}
