//! The schema of a table: columns, keys and indexes. Storage decisions are not here.

mod index;
mod indexes;
mod table;

pub use index::{IndexId, IndexKind, IndexSchema, IndexTraits};
pub use table::{Column, KeyColumns, ShardKey, TableId, TableSchema, ViewSchema};
