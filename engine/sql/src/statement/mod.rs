//! Bound statements and the plans that they run. Each family is an enum whose exhaustive `describe`
//! returns all properties of a statement that the engine needs apart from running it.

mod bound;
mod catalog;
mod control;
mod description;
mod plans;

pub use bound::{
    IfLocked, LockedRows, MergeAction, OnDuplicateKey, RowStatement, Statement, WriteStatement,
};
pub use catalog::{CatalogDescription, CatalogStatement, NameResolution};
pub use control::{ControlStatement, ScanStrategy, SessionOption};
pub(crate) use description::Title;
pub use description::{Access, Output, RowDescription};
pub(crate) use plans::PlanRole;
