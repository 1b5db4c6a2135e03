//! Expressions: literals, operators, rows, subqueries and function calls, each with its type.

pub(super) mod cast;
pub(super) mod expr;
pub(super) mod function;
pub(super) mod literal;
pub(super) mod operator;
pub(super) mod predicate;
pub(super) mod row_value;
pub(super) mod subquery;
mod temporal;
pub(crate) mod types;
