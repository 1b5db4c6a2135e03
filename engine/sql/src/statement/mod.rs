//! Bound statements: what a text asks for, with the plans that it runs. Each family is an enum of its own whose
//! `describe` tells, in one exhaustive place, everything the engine needs to know of a statement besides how to run it.

mod bound;
mod catalog;
mod control;
mod row;

pub use bound::Statement;
pub use catalog::{CatalogDescription, CatalogStatement, NameResolution};
pub use control::{ControlStatement, SessionOption};
pub use row::{Access, OnDuplicateKey, Output, RowDescription, RowStatement, Write};
pub(crate) use row::{PlanRole, Title};
