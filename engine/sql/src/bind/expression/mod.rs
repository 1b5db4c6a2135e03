//! Expressions: literals, operators, rows, subqueries and function calls, each with its type.

pub(super) mod expr;
pub(super) mod function;
pub(super) mod literal;
pub(super) mod operator;
pub(super) mod row_value;
pub(super) mod subquery;
pub(super) mod types;
