//! The schema of a table: columns, keys, indexes and rules for values. Storage decisions are not here.

mod foreign_key;
mod index;
mod indexes;
mod references;
mod ruled;
mod rules;
mod table;

pub use foreign_key::{ForeignKey, ReferentialAction, reference_type};
pub use index::{IndexId, IndexKind, IndexSchema, IndexTraits};
pub use rules::{CheckConstraint, ColumnRule};
pub use table::{
    Column, FIRST_TEMPORARY_TABLE, KeyColumns, ShardKey, TableId, TableSchema, ViewSchema,
};
