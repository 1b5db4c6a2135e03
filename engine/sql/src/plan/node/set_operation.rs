//! `INTERSECT` and `EXCEPT`.

use crate::analysis::may_fail::expr_may_fail;
use crate::expr::Expr;
use crate::plan::tree::{Domain, Field, Plan, PlanNode};
use nacre_types::Result;

/// Rows of `left` that are, or are not, in `right`. Nulls compare equal. Without `all`, each
/// distinct row is returned once. With `all`, a row that occurs `l` times on the left and `r` times
/// on the right is returned `min(l, r)` times by `INTERSECT` and `max(l - r, 0)` times by `EXCEPT`.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperation {
    /// The rows that may be returned.
    pub left: Plan,
    /// The rows to compare with.
    pub right: Plan,
    /// `EXCEPT` if set, otherwise `INTERSECT`.
    pub except: bool,
    /// Keep duplicates.
    pub all: bool,
    /// Output columns.
    pub fields: Vec<Field>,
}

impl PlanNode for SetOperation {
    fn fields(&self) -> Vec<Field> {
        self.fields.clone()
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.left);
        f(&self.right);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.left);
        f(&mut self.right);
    }

    fn title(&self) -> &'static str {
        if self.except { "EXCEPT" } else { "INTERSECT" }
    }

    fn explain(&self) -> String {
        let name = if self.except { "Except" } else { "Intersect" };
        format!("{name}{}", if self.all { " all" } else { "" })
    }

    /// Pushes conditions into both sides, since a row satisfies them on one side exactly if it does
    /// on the other. Conditions that may fail stay above: a row outside the result must not raise
    /// an error.
    fn push_filters(
        &mut self,
        conditions: Vec<Expr>,
        push: &mut dyn FnMut(&mut Plan, Vec<Expr>),
    ) -> Vec<Expr> {
        let (above, conditions): (Vec<_>, Vec<_>) = conditions.into_iter().partition(expr_may_fail);
        push(&mut self.left, conditions.clone());
        push(&mut self.right, conditions);
        above
    }

    fn estimate_rows(&self, inputs: &[f64]) -> f64 {
        inputs.first().map_or(1.0, |left| left / 2.0)
    }

    fn may_fail(&self) -> bool {
        false
    }

    fn spread(
        &mut self,
        domain: &Domain,
        spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        let width = self.fields.len();
        self.fields.extend(domain.fields.iter().cloned());
        spread(&mut self.left)?;
        spread(&mut self.right)?;
        Ok(width)
    }
}
