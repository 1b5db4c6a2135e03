//! Queries: `SELECT`, `FROM`, grouping, set operations, `WITH` and row locks, as plans.

pub(super) mod from;
pub(super) mod grouping;
mod json_table;
pub(super) mod lock;
pub(super) mod query_expression;
pub(super) mod recursive;
pub(super) mod sample;
pub(super) mod select;
pub(super) mod set_operation;
pub(super) mod table_function;
pub(super) mod volatile_keys;
pub(super) mod wildcard;
