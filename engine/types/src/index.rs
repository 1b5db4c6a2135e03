//! The shape of a secondary index: which columns it is over, whether their values are unique. How it is stored is
//! `engine/table`'s affair.

use crate::{Error, Result, TableSchema, limits};

/// Identifies an index inside its table; never reused.
pub type IndexId = u32;

/// How an index was declared. All kinds are kept in key order and answer the same questions; the kind says what the
/// index is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// For equality: `USING HASH`.
    Hash,
    /// For equality, ranges and order: `USING BTREE`.
    BTree,
    /// Not declared: of one column that others have, but not as their first ([`TableSchema::complete_indexes`]).
    Companion,
}

/// What distinguishes a kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexTraits {
    /// Its number in stored schemas: even, never reused. The lowest bit says that the index is unique.
    pub code: u8,
    /// What stands after `USING`; `None` for a kind that cannot be declared.
    pub keyword: Option<&'static str>,
    /// Entries of one integer column are kept packed in memory, for a table whose key is one integer.
    pub packs_integers: bool,
}

impl IndexKind {
    /// The kind of an index that is declared without `USING`.
    pub const DEFAULT: IndexKind = IndexKind::BTree;
    /// All kinds.
    pub const ALL: &'static [IndexKind] =
        &[IndexKind::Hash, IndexKind::BTree, IndexKind::Companion];

    /// What distinguishes the kind.
    pub const fn traits(self) -> IndexTraits {
        match self {
            IndexKind::Hash => {
                IndexTraits { code: 0, keyword: Some("HASH"), packs_integers: false }
            }
            IndexKind::BTree => {
                IndexTraits { code: 2, keyword: Some("BTREE"), packs_integers: true }
            }
            IndexKind::Companion => IndexTraits { code: 4, keyword: None, packs_integers: true },
        }
    }

    /// The kind with a number in stored schemas.
    pub fn of_code(code: u8) -> Option<IndexKind> {
        IndexKind::ALL.iter().copied().find(|kind| kind.traits().code == code)
    }

    /// The kind that a word after `USING` declares, without regard to ASCII case.
    pub fn of_keyword(word: &str) -> Option<IndexKind> {
        let has = |kind: &IndexKind| {
            kind.traits().keyword.is_some_and(|keyword| keyword.eq_ignore_ascii_case(word))
        };
        IndexKind::ALL.iter().copied().find(has)
    }
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

    /// The indexes that somebody asked for.
    pub fn declared_indexes(&self) -> impl Iterator<Item = &IndexSchema> {
        self.indexes.iter().filter(|index| index.kind != IndexKind::Companion)
    }

    /// One of them by name, without regard to ASCII case.
    pub fn index_by_name(&self, name: &str) -> Option<&IndexSchema> {
        self.declared_indexes().find(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The sets of columns, by position, of which no two rows have the same values: the primary key's, and those of
    /// unique indexes. Where `with_nulls` does not hold, rows with a null in one of them do not count; else sets that may
    /// hold one are left out.
    pub fn unique_sets(&self, with_nulls: bool) -> impl Iterator<Item = Vec<usize>> {
        let primary = self.primary_key.iter().map(|key| key.columns.clone());
        let unique = self.indexes.iter().filter(|index| index.unique);
        let unique = unique.filter_map(|index| self.index_positions(index));
        let counts =
            move |set: &Vec<usize>| !with_nulls || !set.iter().any(|at| self.columns[*at].nullable);
        primary.chain(unique.filter(counts))
    }

    /// Gives each column that an index has, but none as its first, an index of its own, so that any of an index's
    /// columns can be looked up; takes away those of which that is no longer so. As many as the limits allow.
    pub fn complete_indexes(&mut self) {
        let declared: Vec<IndexSchema> = self.declared_indexes().cloned().collect();
        let leads =
            |column: &u32| declared.iter().any(|index| index.columns.first() == Some(column));
        let mut needed: Vec<(u32, String)> = Vec::new();
        for index in &declared {
            for column in index.columns.iter().skip(1) {
                if !leads(column) && needed.iter().all(|(known, _)| known != column) {
                    let of = self.column_position(*column).map_or("", |at| &self.columns[at].name);
                    needed.push((*column, format!("{}.{of}", index.name)));
                }
            }
        }
        let is_needed =
            |index: &IndexSchema| needed.iter().any(|(column, _)| index.columns == [*column]);
        self.indexes.retain(|index| index.kind != IndexKind::Companion || is_needed(index));
        for (column, name) in needed {
            if self
                .indexes
                .iter()
                .any(|index| index.kind == IndexKind::Companion && index.columns == [column])
            {
                continue;
            }
            let (before, kind) = (self.next_index_id, IndexKind::Companion);
            let id = self.take_index_id();
            self.indexes.push(IndexSchema { id, name, columns: vec![column], unique: false, kind });
            if self.check_indexes().is_err() {
                self.indexes.pop();
                self.next_index_id = before;
                return;
            }
        }
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
            return Err(Error::limit(format!(
                "a table has {} indexes at most",
                limits::MAX_INDEXES
            )));
        }
        // Each index takes places in a segment beside the table's columns.
        let places: usize = self.indexes.iter().map(|index| index.columns.len() + 2).sum();
        if places > 0 && self.columns.len() + places + 3 > limits::MAX_SEGMENT_COLUMNS {
            return Err(Error::limit(format!(
                "columns and indexes together take {} places at most",
                limits::MAX_COLUMNS
            )));
        }
        for (at, index) in self.indexes.iter().enumerate() {
            let name = &index.name;
            let earlier = &self.indexes[..at];
            let is_key =
                self.primary_key.as_ref().is_some_and(|key| key.name.eq_ignore_ascii_case(name));
            let is_taken = |other: &IndexSchema| {
                other.kind != IndexKind::Companion && other.name.eq_ignore_ascii_case(name)
            };
            // Nobody says the name of a companion.
            if index.kind != IndexKind::Companion && (is_key || earlier.iter().any(is_taken)) {
                return Err(Error::already_exists(format!("index {name} of table {}", self.name))
                    .with_sqlstate("42P07"));
            }
            if index.id >= limits::MAX_INDEX_ID || earlier.iter().any(|other| other.id == index.id)
            {
                return Err(Error::limit(format!("index {name} has no id of its own")));
            }
            if index.columns.is_empty() || index.columns.len() > limits::MAX_INDEX_COLUMNS {
                let most = limits::MAX_INDEX_COLUMNS;
                return Err(Error::limit(format!(
                    "index {name} is over no column, or more than {most}"
                )));
            }
            let mut seen = Vec::with_capacity(index.columns.len());
            for id in &index.columns {
                if self.column_position(*id).is_none() {
                    let table = self.name.clone();
                    return Err(Error::constraint(format!(
                        "index {name} needs a column that table {table} has not"
                    ))
                    .with_sqlstate("2BP01")
                    .with_table(table)
                    .with_hint("drop the index first"));
                }
                if seen.contains(id) {
                    return Err(Error::constraint(format!("index {name} has a column twice"))
                        .with_sqlstate("42701"));
                }
                seen.push(*id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_code_and_keyword() {
        for kind in IndexKind::ALL.iter().copied() {
            let IndexTraits { code, keyword, .. } = kind.traits();
            assert_eq!(code & 1, 0, "{kind:?}");
            assert_eq!(IndexKind::of_code(code), Some(kind));
            assert_eq!(keyword.and_then(IndexKind::of_keyword), keyword.map(|_| kind));
        }
    }
}
