//! Limits the rows per group, in input order: `DISTINCT ON`, and `LIMIT` in a correlated subquery.

use crate::analysis::columns::{mark, moved};
use crate::explain::text::{expr_text, field_name, joined};
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::{ColumnMap, Domain, Field, IsUnique, Plan, PlanNode, Pruning};
use nacre_types::{Result, Value};
use std::fmt::Write;

/// Like [`Plan::Limit`], applied separately to each combination of key values.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitBy {
    /// Input.
    pub input: Plan,
    /// Keys over the input row; nulls compare equal.
    pub keys: Vec<Expr>,
    /// Number of rows to skip.
    pub offset: Option<Expr>,
    /// Number of rows to return.
    pub limit: Option<Expr>,
}

impl PlanNode for LimitBy {
    fn fields(&self) -> Vec<Field> {
        self.input.fields()
    }

    fn for_each_input<'p>(&'p self, f: &mut dyn FnMut(&'p Plan)) {
        f(&self.input);
    }

    fn for_each_input_mut(&mut self, f: &mut dyn FnMut(&mut Plan)) {
        f(&mut self.input);
    }

    fn for_each_expr<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        self.keys.iter().chain(&self.offset).chain(&self.limit).for_each(f);
    }

    fn for_each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.keys.iter_mut().chain(&mut self.offset).chain(&mut self.limit).for_each(f);
    }

    fn title(&self) -> &'static str {
        "DISTINCT ON"
    }

    fn explain(&self) -> String {
        let fields = self.input.fields();
        let text = |e: &Expr| expr_text(e, &|at| field_name(&fields, at), false);
        let mut line = format!("LimitBy [{}]", joined(self.keys.iter().map(text)));
        if let Some(limit) = &self.limit {
            let _ = write!(line, " {}", text(limit));
        }
        if let Some(offset) = &self.offset {
            let _ = write!(line, " offset {}", text(offset));
        }
        line
    }

    fn prune(&mut self, mut needed: Vec<bool>, pruning: &Pruning) -> (Option<Plan>, ColumnMap) {
        self.keys.iter().for_each(|k| mark(k, &mut needed));
        let map = pruning.input(&mut self.input, needed);
        self.keys.iter_mut().for_each(|k| moved(k, &map));
        (None, map)
    }

    fn estimate_rows(&self, inputs: &[f64]) -> f64 {
        inputs.iter().sum::<f64>() / 2.0
    }

    fn keeps_statistics(&self) -> bool {
        true
    }

    fn is_unique(&self, fixed: &dyn Fn(usize) -> bool, of_input: IsUnique<'_>) -> bool {
        let limit = self.limit.as_ref().map(|l| &l.kind);
        let is_one = matches!(limit, Some(ExprKind::Literal(Value::Int(n))) if *n <= 1);
        let is_fixed = |key: &Expr| matches!(key.kind, ExprKind::Column(at) if fixed(at));
        (is_one && self.keys.iter().all(is_fixed)) || of_input(&self.input, fixed)
    }

    fn may_fail(&self) -> bool {
        let is_literal = |e: &Expr| matches!(e.kind, ExprKind::Literal(_));
        !self.offset.iter().chain(&self.limit).all(is_literal)
    }

    fn spread(
        &mut self,
        domain: &Domain,
        spread: &mut dyn FnMut(&mut Plan) -> Result<()>,
    ) -> Result<usize> {
        let width = self.input.fields().len();
        self.keys.iter_mut().for_each(|k| domain.settle(k, width));
        self.keys.extend(domain.columns(width));
        spread(&mut self.input)?;
        Ok(width)
    }
}
