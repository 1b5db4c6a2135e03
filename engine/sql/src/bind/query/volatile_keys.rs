//! Volatile keys of groups, windows and sorts become columns of the input, computed once for each
//! row: an operator evaluates its keys again when it reads back rows that it spilled.

use crate::analysis::volatile::is_volatile;
use crate::expr::Expr;
use crate::plan::{Field, Plan, SortKey};

/// Appends the volatile ones of the keys to the plan's columns and makes the keys read these. Equal
/// keys share a column.
pub(crate) fn compute<'k>(plan: Plan, keys: impl IntoIterator<Item = &'k mut Expr>) -> Plan {
    let mut fields = plan.fields();
    let width = fields.len();
    let mut exprs = columns_of(&fields);
    for key in keys.into_iter().filter(|key| is_volatile(key)) {
        let data_type = key.data_type;
        let known = exprs[width..].iter().position(|e| *e == *key);
        let column = Expr::column(width + known.unwrap_or(exprs.len() - width), data_type);
        let key = std::mem::replace(key, column);
        if known.is_none() {
            exprs.push(key);
            fields.push(Field { name: "key".into(), data_type, nullable: true });
        }
    }
    if exprs.len() == width {
        return plan;
    }
    Plan::Project { input: Box::new(plan), exprs, fields }
}

/// Sorts a plan.
pub(crate) fn sorted(plan: Plan, mut keys: Vec<SortKey>) -> Plan {
    let fields = plan.fields();
    let input = Box::new(compute(plan, keys.iter_mut().map(|key| &mut key.expr)));
    let is_wider = input.fields().len() > fields.len();
    let sorted = Plan::Sort { input, keys, limit: None };
    if !is_wider {
        return sorted;
    }
    Plan::Project { input: Box::new(sorted), exprs: columns_of(&fields), fields }
}

fn columns_of(fields: &[Field]) -> Vec<Expr> {
    fields.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect()
}
