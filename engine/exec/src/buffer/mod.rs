//! Rows that operators hold in memory, and limits on copying them.

mod column;
pub(crate) mod limits;
mod pieces;
mod row;

pub(crate) use column::{ColumnBuffer, fit};
pub use pieces::pieces;
pub(crate) use pieces::rows_at_once;
pub(crate) use row::RowBuffer;
