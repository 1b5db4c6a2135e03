//! Subqueries become joins: after this pass no expression holds a subquery and no plan refers to the row
//! of an enclosing one.
//!
//! What a subquery asks of its enclosing row is first moved up to its top, where it is an ordinary join
//! condition ([`hoist`]). What cannot move up (say, a condition below an outer join) is answered by joining the
//! distinct arguments into the subquery instead ([`domain`]), after T. Neumann and A. Kemper, "Unnesting
//! arbitrary queries", BTW 2015. Subqueries are treated innermost first.
//!
//! Invariants: the columns a plan had stay where they were, new ones come after them; the pass keeps rows,
//! nulls and the error of a scalar subquery with more than one row, and rows that do not get to a subquery do
//! not fail for it ([`lazy`]).

mod apply;
mod dependent;
mod domain;
mod hoist;
mod lazy;
mod nodes;
mod shared;
mod size;
mod tools;
mod unnester;

use crate::expr::Expr;
use crate::plan::{JoinKind, Plan, Statement};
use nacre_types::Result;
use tools::one_empty_row;
use unnester::Unnester;

/// Removes the subqueries of a statement. `numbers` are those used so far.
pub(crate) fn statement(statement: Statement, numbers: &mut u32) -> Result<Statement> {
    let mut statement = statement;
    shared::inline(&mut statement);
    let mut unnester = Unnester::new(numbers);
    for (_, plan) in statement.plans_mut() {
        let old = std::mem::replace(plan, one_empty_row());
        *plan = unnester.plan(old)?;
    }
    Ok(statement)
}

/// A join whose right side may look at each left row: `LATERAL`. The result has the columns of both.
pub(crate) fn lateral(
    left: Plan,
    right: Plan,
    kind: JoinKind,
    row: (u32, Vec<Expr>),
    condition: Option<Expr>,
    numbers: &mut u32,
) -> Result<Plan> {
    let mut unnester = Unnester::new(numbers);
    let left = unnester.plan(left)?;
    let right = unnester.plan(right)?;
    unnester.lateral(left, right, kind, row, condition)
}
