//! What a schema says about rows that refer to others.

use super::foreign_key::ForeignKey;
use super::table::{TableId, TableSchema};

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
