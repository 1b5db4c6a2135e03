//! What a dependent join, whose right side looks at each left row, is taken apart into.

use crate::expr::Expr;
use crate::plan::Plan;

/// Two inputs whose right one no longer looks at the left row.
pub(super) struct Dependent {
    pub left: Plan,
    pub right: Plan,
    /// What must hold between the rows of both, over left columns then right columns.
    pub conditions: Vec<Expr>,
    /// The columns the right input had at first, over both.
    pub outputs: Vec<Expr>,
    /// Without a right row that fits, these are the outputs of the one row there is nevertheless: the right
    /// input was an aggregate without groups.
    pub missing: Option<Vec<Expr>>,
    /// Further keys of the join.
    pub keys: Vec<(Expr, Expr)>,
}
