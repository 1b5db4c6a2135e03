//! `range` and `generate_series`: computes its rows as they are asked for.

use crate::context::Context;
use crate::expr;
use crate::operator::inputs::{Inputs, exactly};
use crate::operator::protocol::Operator;
use nacre_column::{Batch, VectorBuilder};
use nacre_sql::plan::node::series::Series;
use nacre_types::{DataType, Error, Interval, Result, Value, interval, limits};
use std::sync::Arc;

/// The operator of a node.
pub fn operator(node: &Series, inputs: Inputs) -> Result<Box<dyn Operator>> {
    let [] = exactly(inputs);
    Ok(Box::new(SeriesScan { node: node.clone(), steps: None }))
}

/// Values at equal distances.
struct SeriesScan {
    node: Series,
    /// Set by the first call.
    steps: Option<Steps>,
}

/// Where a series is. Points in time are in microseconds.
struct Steps {
    /// The next value; `None` at the end.
    next: Option<i64>,
    /// The last value that is allowed.
    last: i64,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Number(i64),
    Time(Interval),
}

impl Step {
    /// Whether values grow. Returns an error for a step that leads nowhere, or back and forth.
    fn ascends(self) -> Result<bool> {
        let signs = match self {
            Step::Number(n) => [n.signum(), 0, 0],
            Step::Time(v) => {
                [i64::from(v.months.signum()), i64::from(v.days.signum()), v.micros.signum()]
            }
        };
        match (signs.contains(&1), signs.contains(&-1)) {
            (true, false) => Ok(true),
            (false, true) => Ok(false),
            (false, false) => {
                Err(Error::type_error("the step must not be zero").with_sqlstate("22023"))
            }
            (true, true) => Err(Error::type_error("the parts of the step have different signs")
                .with_sqlstate("22023")),
        }
    }

    /// Returns the value after another; `None` beyond the numbers or the calendar.
    fn after(self, value: i64) -> Option<i64> {
        match self {
            Step::Number(n) => value.checked_add(n),
            Step::Time(v) => interval::add(value, v),
        }
    }
}

impl Steps {
    fn new(node: &Series, context: &Context<'_>) -> Result<Steps> {
        let start = expr::evaluate_constant(&node.start, context)?;
        let stop = expr::evaluate_constant(&node.stop, context)?;
        let step = match expr::evaluate_constant(&node.step, context)? {
            Value::Int(n) => Some(Step::Number(n)),
            Value::Interval(v) => Some(Step::Time(v)),
            _ => None,
        };
        let (Some(start), Some(stop), Some(step)) = (point(&start), point(&stop), step) else {
            return Ok(Steps { next: None, last: 0, step: Step::Number(1) });
        };
        let ascends = step.ascends()?;
        let last = match (node.inclusive, ascends) {
            (true, _) => Some(stop),
            (false, true) => stop.checked_sub(1),
            (false, false) => stop.checked_add(1),
        };
        let Some(last) = last else { return Ok(Steps { next: None, last: stop, step }) };
        let reaches = if ascends { start <= last } else { start >= last };
        debug_assert!(node.inclusive || last != stop, "the end is not a row of a range");
        Ok(Steps { next: reaches.then_some(start), last, step })
    }

    /// Returns the next value. Values move strictly towards the last one.
    fn take(&mut self) -> Option<i64> {
        let value = self.next?;
        self.next = self.step.after(value).filter(|next| match *next > value {
            true => *next <= self.last,
            false => *next >= self.last,
        });
        debug_assert!(self.next != Some(value), "a series moves on from {value}");
        Some(value)
    }
}

/// Returns a number, or the microseconds of a point in time; `None` for null.
fn point(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) | Value::Timestamp(n) | Value::TimestampTz(n) => Some(*n),
        _ => None,
    }
}

impl Operator for SeriesScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.give_way()?;
        if self.steps.is_none() {
            self.steps = Some(Steps::new(&self.node, context)?);
        }
        let Some(steps) = &mut self.steps else { return Ok(None) };
        let data_type = self.node.field.data_type;
        let mut builder = VectorBuilder::new(data_type);
        let mut rows = 0;
        while rows < limits::VECTOR_ROWS
            && let Some(value) = steps.take()
        {
            builder.push(&match data_type {
                DataType::Timestamp => Value::Timestamp(value),
                DataType::TimestampTz => Value::TimestampTz(value),
                _ => Value::Int(value),
            });
            rows += 1;
        }
        Ok((rows > 0).then(|| Batch::new(vec![Arc::new(builder.finish())], rows)))
    }
}
