//! Turns subqueries into joins. Afterwards no expression contains a subquery and no plan refers to
//! an enclosing row.
//!
//! References to the enclosing row are first hoisted to the top of the subquery, where they are
//! ordinary join conditions ([`hoist`]). If one cannot be hoisted (such as a condition below an
//! outer join), the distinct arguments are joined into the subquery instead ([`domain`]), following
//! T. Neumann and A. Kemper, *Unnesting Arbitrary Queries*, BTW 2015. Innermost subqueries are
//! unnested first.
//!
//! Invariants: a plan's columns keep their positions, and new ones follow them. The pass preserves
//! rows, nulls, and the error of a scalar subquery with more than one row. A row that does not
//! evaluate a subquery does not fail because of it ([`lazy`]).

mod apply;
mod dependent;
mod documents;
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

/// Removes the subqueries of a statement. `numbers` is the count of numbers in use. `is_volatile`:
/// whether the statement has a volatile function.
pub(crate) fn statement(
    statement: Statement,
    numbers: &mut u32,
    is_volatile: bool,
) -> Result<Statement> {
    let mut statement = statement;
    shared::inline(&mut statement, is_volatile);
    let mut unnester = Unnester::new(numbers);
    for (_, plan) in statement.plans_mut() {
        let old = std::mem::replace(plan, one_empty_row());
        *plan = unnester.plan(old)?;
    }
    Ok(statement)
}

/// A join whose right side may read each left row: `LATERAL`. Outputs the columns of both.
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
    let (left, right) = match unnester.over_left(left, right, kind, &row, condition.as_ref())? {
        Ok(plan) => return Ok(plan),
        Err(sides) => sides,
    };
    unnester.lateral(left, right, kind, row, condition)
}
