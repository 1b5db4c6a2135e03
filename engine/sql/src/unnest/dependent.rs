//! The parts of a decorrelated join.

use crate::expr::Expr;
use crate::plan::Plan;

/// Two inputs, of which the right one no longer reads the left row.
pub(super) struct Dependent {
    pub left: Plan,
    pub right: Plan,
    /// Conditions between the rows of both, over left columns then right columns.
    pub conditions: Vec<Expr>,
    /// The right input's original columns, as expressions over both.
    pub outputs: Vec<Expr>,
    /// Outputs of a left row without a matching right row, set if the right input was an aggregate
    /// without groups, which returns a row even then.
    pub missing: Option<Vec<Expr>>,
    /// Additional join keys.
    pub keys: Vec<(Expr, Expr)>,
}
