//! Function calls: scalar functions, aggregates and window functions.

pub(in crate::bind) mod aggregate;
pub(in crate::bind) mod aggregate_owner;
pub(in crate::bind) mod call;
mod columns;
pub(in crate::bind) mod operands;
mod unknown;
pub(in crate::bind) mod window;
