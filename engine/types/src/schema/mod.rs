//! The schema of a table: columns, keys, indexes and rules for values. Storage decisions are not here.

mod index;
mod indexes;
mod references;
mod ruled;
mod rules;
mod table;

pub use index::{IndexId, IndexKind, IndexSchema, IndexTraits};
pub use references::{ForeignKey, ReferentialAction, reference_type};
pub use rules::{CheckConstraint, ColumnRule};
pub use table::{
    Column, FIRST_TEMPORARY_TABLE, KeyColumns, ShardKey, TableId, TableSchema, ViewSchema,
};
