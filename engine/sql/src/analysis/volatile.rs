//! Whether an expression has another value at each evaluation.

use crate::expr::{Expr, ExprKind};
use crate::plan::Plan;
use nacre_function::entry::definition::Volatility;
use nacre_types::hash::Set;

/// Whether an expression has a volatile function, outside its subqueries.
pub(crate) fn is_volatile(expr: &Expr) -> bool {
    if let ExprKind::Function { function, .. } = &expr.kind
        && function.volatility() == Volatility::Volatile
    {
        return true;
    }
    let mut found = false;
    expr.for_each_child(&mut |child| found |= is_volatile(child));
    found
}

/// Whether a plan evaluates a volatile function.
pub(crate) fn plan_is_volatile(plan: &Plan) -> bool {
    found_in(plan, &mut Set::default())
}

/// Walks each shared plan once: there may be exponentially many ways to it.
fn found_in(plan: &Plan, seen: &mut Set<u32>) -> bool {
    if let Plan::Shared { id, .. } = plan
        && !seen.insert(*id)
    {
        return false;
    }
    let mut found = false;
    plan.for_each_expr(&mut |expr| found |= is_volatile(expr));
    plan.for_each_input(&mut |input| found = found || found_in(input, seen));
    found
}
