//! The shape of a secondary index: which columns it is over, whether their values are unique. How it is stored is
//! `engine/table`'s affair.

use crate::{Error, Result, TableSchema, limits};

/// Identifies an index inside its table; never reused.
pub type IndexId = u32;

/// How an index was declared. Both kinds are kept in key order and answer the same questions; the kind says what its
/// maker meant it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// For equality: `USING HASH`.
    Hash,
    /// For equality, ranges and order: `USING BTREE`.
    BTree,
}

/// A secondary index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Identity.
    pub id: IndexId,
    /// Name as written; compared without regard to ASCII case, unique in its table, and not the primary key's.
    pub name: String,
    /// Ids of its columns, in key order. Ids and not positions, so that it means the same columns when others come
    /// and go.
    pub columns: Vec<u32>,
    /// Whether no two rows may have the same values in all its columns. Rows with a null in any of them never
    /// conflict.
    pub unique: bool,
    /// How it was declared.
    pub kind: IndexKind,
}

impl TableSchema {
    /// Gives out the id of a new index.
    pub fn take_index_id(&mut self) -> IndexId {
        let above = self.indexes.iter().map(|index| index.id + 1).max().unwrap_or(0);
        let id = self.next_index_id.max(above);
        self.next_index_id = id + 1;
        id
    }

    /// An index by name, without regard to ASCII case.
    pub fn index_by_name(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// An index by id.
    pub fn index_by_id(&self, id: IndexId) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// Position of the column with an id.
    pub fn column_position(&self, id: u32) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// Positions of an index's columns, in key order; `None` when one is not there.
    pub fn index_positions(&self, index: &IndexSchema) -> Option<Vec<usize>> {
        index.columns.iter().map(|id| self.column_position(*id)).collect()
    }

    /// Checks that the indexes have different names and ids, and columns that there are.
    pub fn check_indexes(&self) -> Result<()> {
        if self.indexes.len() > limits::MAX_INDEXES {
            return Err(Error::limit(format!("a table has {} indexes at most", limits::MAX_INDEXES)));
        }
        // Each index takes places in a segment beside the table's columns.
        let places: usize = self.indexes.iter().map(|index| index.columns.len() + 2).sum();
        if places > 0 && self.columns.len() + places + 2 > limits::MAX_COLUMNS {
            return Err(Error::limit(format!(
                "columns and indexes together take {} places at most",
                limits::MAX_COLUMNS
            )));
        }
        for (at, index) in self.indexes.iter().enumerate() {
            let name = &index.name;
            let earlier = &self.indexes[..at];
            let is_key = self.primary_key.as_ref().is_some_and(|key| key.name.eq_ignore_ascii_case(name));
            if is_key || earlier.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
                return Err(
                    Error::already_exists(format!("index {name} of table {}", self.name)).with_sqlstate("42P07")
                );
            }
            if index.id >= limits::MAX_INDEX_ID || earlier.iter().any(|other| other.id == index.id) {
                return Err(Error::limit(format!("index {name} has no id of its own")));
            }
            if index.columns.is_empty() || index.columns.len() > limits::MAX_INDEX_COLUMNS {
                let most = limits::MAX_INDEX_COLUMNS;
                return Err(Error::limit(format!("index {name} is over no column, or more than {most}")));
            }
            let mut seen = Vec::with_capacity(index.columns.len());
            for id in &index.columns {
                if self.column_position(*id).is_none() {
                    let table = self.name.clone();
                    return Err(Error::constraint(format!("index {name} needs a column that table {table} has not"))
                        .with_sqlstate("2BP01")
                        .with_table(table)
                        .with_hint("drop the index first"));
                }
                if seen.contains(id) {
                    return Err(Error::constraint(format!("index {name} has a column twice")).with_sqlstate("42701"));
                }
                seen.push(*id);
            }
        }
        Ok(())
    }
}
