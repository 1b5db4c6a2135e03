//! Bound statements and the plans that they run. Each family is an enum whose exhaustive `describe`
//! returns all properties of a statement that the engine needs apart from running it.

mod bound;
mod catalog;
mod control;
mod row;

pub use bound::Statement;
pub use catalog::{CatalogDescription, CatalogStatement, NameResolution};
pub use control::{ControlStatement, SessionOption};
pub use row::{Access, OnDuplicateKey, Output, RowDescription, RowStatement, Write};
pub(crate) use row::{PlanRole, Title};
