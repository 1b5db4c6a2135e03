//! The description of a column: what the builder is given, and what the reader reports.

use nacre_types::{DataType, Value};

/// A column, as the builder is given it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Stable id of the column in its table.
    pub id: u32,
    /// The declared type.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
}

/// A column, as the reader reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMeta {
    /// Stable id of the column in its table.
    pub id: u32,
    /// The type the values were written with.
    pub data_type: DataType,
    /// Whether nulls are allowed.
    pub nullable: bool,
    /// Name of the encoding that most blocks have.
    pub encoding: &'static str,
    /// Bytes in the file: blocks and dictionary.
    pub bytes: u64,
    /// Bytes the values take uncompressed.
    pub raw_bytes: u64,
    /// Number of null rows.
    pub null_count: u64,
    /// A lower bound of the values; null when there are only nulls.
    pub min: Value,
    /// An upper bound of the values; null when there are only nulls.
    pub max: Value,
    /// Whether `min` and `max` occur in the column (long text is cut to shorter bounds).
    pub exact: bool,
}

/// Bounds of one column in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// A lower bound; null when all rows are null.
    pub min: Value,
    /// An upper bound; null when all rows are null.
    pub max: Value,
    /// Null rows of the block.
    pub null_count: u32,
    /// Whether the bounds occur in the block (long text is cut to shorter bounds).
    pub exact: bool,
}
