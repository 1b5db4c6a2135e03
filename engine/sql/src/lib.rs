//! SQL front end: dialect, binder, logical plan and optimizer. Knows schemas, not storage.
//!
//! [`parse`] turns text into statements, [`bind`] turns a statement into a typed, optimised
//! [`Statement`], and [`explain`] renders a bound statement as stable lines. Nothing here evaluates
//! rows or reads data.

mod access;
mod analysis;
mod bind;
mod explain;
pub mod expr;
mod optimize;
mod parse;
pub mod plan;
mod statement;
#[cfg(test)]
mod tests;
mod type_names;
mod unnest;
mod window;

pub use access::{
    Equalities, Equality, IndexAccess, IndexKeys, ScanOutput, equalities, fixed_columns,
    index_access, index_keys, joined_key, key_name,
};
pub use analysis::may_fail::expr_may_fail;
pub use bind::{Computed, Given, TableRules, created_name, table_rules, type_named};
pub use explain::text::path_text;
pub use explain::{explain, explain_nodes, explain_row_nodes};
pub use expr::{
    Aggregate, AggregateFunction, BinaryOp, Expr, ExprKind, ScalarFunction, Subquery, SubqueryKind,
};
pub use nacre_function::entry::aggregate::{AggregateKernel, CreatedAggregate, GroupStates};
pub use nacre_function::entry::created::{Created, CreatedFunctions};
pub use nacre_function::entry::definition::{CreatedScalar, ScalarKernel, Volatility};
pub use parse::{Parsed, ends_transaction, parse};
pub use plan::join_filter::{KeyUse, Wanted, key_use};
pub use plan::key_order::{KeyOrder, index_order, kept_by_key, key_order};
pub use plan::{Catalog, ColumnStatistics, Field, JoinKind, Plan, SortKey};
pub use statement::{
    Access, CatalogDescription, CatalogStatement, ControlStatement, IfLocked, LockedRows,
    MergeAction, NameResolution, OnDuplicateKey, Output, RowDescription, RowStatement,
    ScanStrategy, SessionOption, Statement, WriteStatement,
};

use nacre_types::{DataType, Result};

/// A bound and optimised statement.
#[derive(Clone, Debug)]
pub struct BoundStatement {
    /// The statement, with every name resolved and every expression typed.
    pub statement: Statement,
    /// Type of each parameter, by position; values are cast to these before execution.
    pub parameters: Vec<DataType>,
}

/// Resolves names and types against the catalog and optimises the plan. `given` describes the
/// parameter values; it may be shorter than the parameter list, or empty, when values are not known
/// yet.
pub fn bind(parsed: &Parsed, catalog: &dyn Catalog, given: &[Given]) -> Result<BoundStatement> {
    let (statement, parameters) = bind::bind_statement(parsed, catalog, given)?;
    Ok(BoundStatement { statement: optimize::optimize(statement, catalog), parameters })
}
