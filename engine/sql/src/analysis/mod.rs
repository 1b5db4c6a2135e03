//! Analyses of expressions and plans shared by binding, unnesting and the optimizer. Nothing here
//! changes a plan.

pub(crate) mod columns;
pub(crate) mod conditions;
mod domain;
pub(crate) mod equal_values;
pub(crate) mod equality;
pub(crate) mod json_path;
pub(crate) mod may_fail;
pub(crate) mod nullable;
pub(crate) mod size;
pub(crate) mod subqueries;
pub(crate) mod unique;
pub(crate) mod validate;
pub(crate) mod volatile;
