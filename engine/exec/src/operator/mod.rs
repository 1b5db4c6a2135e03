//! The operators that are not scans: each pulls from its children and answers batches.

pub(crate) mod inputs;
mod limit;
pub(crate) mod limit_by;
pub(crate) mod protocol;
mod recursive;
mod row;
pub(crate) mod set_operation;
mod settle;
mod shared;
mod supplied;
#[cfg(test)]
mod tests;

pub(crate) use limit::{Limit, wanted};
pub(crate) use recursive::Recursive;
pub(crate) use row::{Filter, Project, Values};
pub(crate) use set_operation::Union;
pub(crate) use settle::settle;
pub(crate) use shared::{Buffer, SharedScan};
pub(crate) use supplied::SuppliedScan;
