//! The protocol of operators: a parent pulls batches from its children.

use crate::context::Context;
use nacre_column::Batch;
use nacre_table::RowLocator;
use nacre_types::Result;

/// A pull operator.
pub trait Operator {
    /// The next rows: at least one, at most `VECTOR_ROWS`. `None` at the end, and again after it.
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>>;
}

/// A scan that also locates its rows, for `UPDATE` and `DELETE`.
pub trait LocatingOperator {
    /// The next rows, compact, with one locator per row; `None` at the end.
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>>;
}

/// Builds an operator during execution: the next round of a recursion, or a fallback plan.
///
/// Operators receive it from the builder, which they do not know.
pub type Rebuild = Box<dyn FnMut(&Context<'_>) -> Result<Box<dyn Operator>>>;

/// What a locating operator returns of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocatedColumns {
    /// The columns of the target.
    All,
    /// Their locators; the columns may hold nulls.
    None,
}
