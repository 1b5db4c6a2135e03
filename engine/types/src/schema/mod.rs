//! The shape of a table: columns, keys, indexes. How they are stored is unknown here.

mod index;
mod indexes;
mod table;

pub use index::{IndexId, IndexKind, IndexSchema, IndexTraits};
pub use table::{Column, KeyColumns, ShardKey, TableId, TableSchema, ViewSchema};
