//! `LATERAL` functions of JSON documents. Their rows depend on nothing but the left row, so they are
//! made right above the left side: it is not collected, nor are its documents made distinct.

use super::tools::{columns_of, is_one_empty_row};
use super::unnester::Unnester;
use crate::analysis::conditions::filter;
use crate::expr::{Expr, ExprKind};
use crate::plan::node::json_rows::JsonRows;
use crate::plan::{JoinKind, Plan};
use nacre_types::{Result, Value};

impl Unnester<'_> {
    /// The join of a left side with functions of its rows; both sides if the right one is anything
    /// else.
    pub(super) fn over_left(
        &mut self,
        left: Plan,
        mut right: Plan,
        kind: JoinKind,
        (frame, args): &(u32, Vec<Expr>),
        condition: Option<&Expr>,
    ) -> Result<Result<Plan, (Plan, Plan)>> {
        let always = condition.is_none_or(|c| c.kind == ExprKind::Literal(Value::Boolean(true)));
        let alone = right.as_node::<JsonRows>().filter(|node| is_one_empty_row(&node.input));
        let fits = match kind {
            JoinKind::Inner => is_made_of_rows(&right),
            JoinKind::Left => always && alone.is_some(),
            _ => false,
        };
        let mut fields = left.fields();
        // The argument that each column of the left side is.
        let mut used = vec![usize::MAX; fields.len()];
        for (at, arg) in args.iter().enumerate() {
            match arg.kind {
                ExprKind::Column(column) if fits && used[column] == usize::MAX => {
                    used[column] = at;
                }
                _ => return Ok(Err((left, right))),
            }
        }
        if !fits {
            return Ok(Err((left, right)));
        }
        if let (JoinKind::Left, Some(node)) = (kind, alone) {
            right = Plan::Node(Box::new(JsonRows { outer: true, ..node.clone() }));
        }
        let right_fields = right.fields();
        let width = right_fields.len();
        let plan = self.over_domain(right, *frame, &used, left)?;
        let left_width = fields.len();
        fields.extend(right_fields);
        let exprs = columns_of(&fields).into_iter().enumerate().map(|(at, expr)| {
            let to = if at < left_width { width + at } else { at - left_width };
            Expr::column(to, expr.data_type)
        });
        let exprs = exprs.collect();
        let plan = Plan::Project { input: Box::new(plan), exprs, fields };
        Ok(Ok(match condition {
            Some(condition) if kind == JoinKind::Inner => filter(plan, vec![condition.clone()]),
            _ => plan,
        }))
    }
}

/// Whether a plan does nothing but make rows of documents, and compute columns of them.
fn is_made_of_rows(plan: &Plan) -> bool {
    match plan {
        Plan::Project { input, .. } => is_made_of_rows(input),
        plan => plan
            .as_node::<JsonRows>()
            .is_some_and(|node| is_one_empty_row(&node.input) || is_made_of_rows(&node.input)),
    }
}
