//! Expressions: literals, operators, row values, subqueries and function calls, with their types.

pub(super) mod cast;
pub(super) mod expr;
pub(super) mod function;
mod json;
pub(super) mod literal;
pub(super) mod operator;
pub(super) mod predicate;
pub(super) mod row_value;
pub(super) mod subquery;
mod temporal;
pub(crate) mod types;
