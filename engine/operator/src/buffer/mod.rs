//! Rows that operators hold in memory, and limits on copying them.

mod column;
pub mod limits;
mod pieces;
mod row;

pub use column::{ColumnBuffer, fit};
pub use pieces::pieces;
pub use pieces::rows_at_once;
pub use row::RowBuffer;
