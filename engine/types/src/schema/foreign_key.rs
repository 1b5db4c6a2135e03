//! Foreign keys: columns of a table whose values are keys of rows of another table, or of the same one.

use crate::DataType;

/// What happens to rows that refer to a key when that key is deleted or changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The statement fails if such rows are left at its end, or at that of the transaction.
    #[default]
    NoAction,
    /// The statement fails if such rows are left at its end.
    Restrict,
    /// They are deleted, or refer to the changed key.
    Cascade,
    /// Their columns become null.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

/// A foreign key. Rows with a null in one of its columns refer to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Name, unique among the constraints of a table.
    pub name: String,
    /// Ids of its columns.
    pub columns: Vec<u32>,
    /// The id of the table that it refers to; 0 for the table that has it.
    pub parent: u32,
    /// Ids of the columns of that table, as many: those of its primary key, or of a unique index.
    pub parent_columns: Vec<u32>,
    /// What the deletion of a key does.
    pub on_delete: ReferentialAction,
    /// What the change of a key does.
    pub on_update: ReferentialAction,
    /// Whether it is checked when the transaction commits.
    pub is_deferred: bool,
}

/// The type as which values of a foreign key, and of the key that it refers to, are compared. Columns with
/// the same one can refer to each other.
pub fn reference_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::UInt64 => DataType::UInt64,
        DataType::Text { .. } => DataType::TEXT,
        DataType::Binary { .. } => DataType::Binary { max_bytes: None },
        other if other.is_integer() => DataType::Int64,
        other => other,
    }
}
