//! Foreign keys: columns of a table whose values are keys of rows of another table, or of the same one.

use super::table::{TableId, TableSchema};
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
    /// The table that it refers to; 0 for the table that has it.
    pub parent: TableId,
    /// Ids of the columns of that table, as many: those of its primary key, or of a unique index.
    pub parent_columns: Vec<u32>,
    /// What the deletion of a key does.
    pub on_delete: ReferentialAction,
    /// What the change of a key does.
    pub on_update: ReferentialAction,
    /// Whether it is checked when the transaction commits.
    pub is_deferred: bool,
}

impl TableSchema {
    /// Whether its rows refer to others, or others to its rows.
    pub fn has_references(&self) -> bool {
        !self.foreign_keys.is_empty() || !self.referenced_by.is_empty()
    }

    /// Whether other rows, of this table or of others, may refer to its rows.
    pub fn is_referred_to(&self) -> bool {
        !self.referenced_by.is_empty() || self.keys_to(self.id).next().is_some()
    }

    /// The id of the table that a foreign key of this one refers to.
    pub fn parent_of(&self, key: &ForeignKey) -> TableId {
        if key.parent == 0 { self.id } else { key.parent }
    }

    /// A foreign key by name, without regard to ASCII case.
    pub fn foreign_key(&self, name: &str) -> Option<&ForeignKey> {
        self.foreign_keys.iter().find(|key| key.name.eq_ignore_ascii_case(name))
    }

    /// The foreign keys of this table that refer to rows of another, or of itself.
    pub fn keys_to(&self, parent: TableId) -> impl Iterator<Item = &ForeignKey> {
        self.foreign_keys.iter().filter(move |key| self.parent_of(key) == parent)
    }

    /// Whether no two rows have the same values in these columns, given by ascending ids: those of the primary
    /// key, or of a unique index.
    pub fn has_unique_key(&self, ids: &[u32]) -> bool {
        self.unique_sets(false).any(|set| {
            let mut known: Vec<u32> = set.iter().map(|at| self.columns[*at].id).collect();
            known.sort_unstable();
            known == ids
        })
    }

    /// Positions of columns by their ids; `None` if one is missing.
    pub fn positions(&self, ids: &[u32]) -> Option<Vec<usize>> {
        ids.iter().map(|id| self.column_position(*id)).collect()
    }
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
