//! `range` and `generate_series` in `FROM`: numbers or points in time at equal distances.

use crate::explain::text::expr_text;
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::{Field, Plan, PlanNode};
use nacre_types::Value;

/// Rows from `start` on in steps of `step`, up to `stop`. No rows if one of the three is null.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// First value: `BIGINT` or `TIMESTAMP`, as are all values.
    pub start: Expr,
    /// Where the rows end.
    pub stop: Expr,
    /// `BIGINT`, or `INTERVAL` between points in time.
    pub step: Expr,
    /// Whether `stop` itself is a row if a step reaches it.
    pub inclusive: bool,
    /// The only output column.
    pub field: Field,
}

impl PlanNode for Series {
    fn fields(&self) -> Vec<Field> {
        vec![self.field.clone()]
    }

    fn for_each_input<'p>(&'p self, _: &mut dyn FnMut(&'p Plan)) {}

    fn for_each_input_mut(&mut self, _: &mut dyn FnMut(&mut Plan)) {}

    fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        [&self.start, &self.stop, &self.step].into_iter().for_each(f);
    }

    fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        [&mut self.start, &mut self.stop, &mut self.step].into_iter().for_each(f);
    }

    fn title(&self) -> &'static str {
        "a table function"
    }

    fn explain(&self) -> String {
        let text = |e: &Expr| expr_text(e, &|_| String::new(), false);
        let end = if self.inclusive { "through" } else { "to" };
        let (start, stop, step) = (text(&self.start), text(&self.stop), text(&self.step));
        format!("Series {start} {end} {stop} by {step}")
    }

    fn estimate_rows(&self, _: &[f64]) -> f64 {
        let number = |e: &Expr| match e.kind {
            ExprKind::Literal(Value::Int(n)) => Some(n as f64),
            _ => None,
        };
        match (number(&self.start), number(&self.stop), number(&self.step)) {
            (Some(start), Some(stop), Some(step)) if step != 0.0 => {
                ((stop - start) / step).max(0.0) + 1.0
            }
            _ => 1_000.0,
        }
    }

    fn is_unique(&self, fixed: &dyn Fn(usize) -> bool, _: crate::plan::tree::IsUnique<'_>) -> bool {
        fixed(0)
    }
}
