//! Descriptions of columns: the input of the builder and the report of the reader.

use nacre_types::{DataType, Value};

/// A column as passed to the builder.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Stable id of the column in its table.
    pub id: u32,
    /// The declared type.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
}

/// A column as reported by the reader.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMeta {
    /// Stable id of the column in its table.
    pub id: u32,
    /// The type the values were written with.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
    /// Name of the encoding of most blocks.
    pub encoding: &'static str,
    /// Size in the file in bytes: blocks and dictionary.
    pub bytes: u64,
    /// Uncompressed size of the values, in bytes.
    pub raw_bytes: u64,
    /// Number of null rows.
    pub null_count: u64,
    /// Lower bound of the values; null if there are only nulls.
    pub min: Value,
    /// Upper bound of the values; null if there are only nulls.
    pub max: Value,
    /// Whether `min` and `max` occur in the column (long text has truncated bounds).
    pub exact: bool,
}

/// A sub-column of a column of JSON, as reported by the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMeta {
    /// Where its values are in the documents, as `.a[].b`; empty for whole documents.
    pub path: String,
    /// What it has of them: `integer`, `string`, the `shape` of objects, and so on.
    pub kind: &'static str,
    /// Number of its rows: those of the segment, or the elements of arrays.
    pub rows: u64,
    /// Name of the encoding of most blocks.
    pub encoding: &'static str,
    /// Size in the file in bytes: blocks and dictionary.
    pub bytes: u64,
}

/// Bounds of a column in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Lower bound; null if all rows are null.
    pub min: Value,
    /// Upper bound; null if all rows are null.
    pub max: Value,
    /// Number of null rows in the block.
    pub null_count: u32,
    /// Whether the bounds occur in the block (long text has truncated bounds).
    pub exact: bool,
}
