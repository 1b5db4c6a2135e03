//! SQL front: dialect, binder, logical plan, optimizer. Knows schemas, not storage.

pub mod expr;
pub mod plan;
