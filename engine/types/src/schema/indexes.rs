//! The indexes of a table's schema: finding, completing and checking them.

use super::index::{IndexId, IndexKind, IndexSchema};
use super::table::{Column, TableSchema};
use crate::invariant::broken;
use crate::{Error, Result, limits};

impl TableSchema {
    /// Allocates the id of a new index.
    pub fn take_index_id(&mut self) -> IndexId {
        let above = self.indexes.iter().map(|index| index.id + 1).max().unwrap_or(0);
        let id = self.next_index_id.max(above);
        self.next_index_id = id + 1;
        id
    }

    /// The indexes that were declared.
    pub fn declared_indexes(&self) -> impl Iterator<Item = &IndexSchema> {
        self.indexes.iter().filter(|index| index.kind != IndexKind::Companion)
    }

    /// A declared index by name, without regard to ASCII case.
    pub fn index_by_name(&self, name: &str) -> Option<&IndexSchema> {
        self.declared_indexes().find(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The sets of columns, by position, in which no two rows have the same values: that of the
    /// primary key and those of unique indexes. Rows with a null in a set never conflict;
    /// `with_nulls` leaves out the sets that may hold one. Sets of computed columns are left out.
    pub fn unique_sets(&self, with_nulls: bool) -> impl Iterator<Item = Vec<usize>> {
        let primary = self.primary_key.iter().map(|key| key.columns.clone());
        let unique = self.indexes.iter().filter(|index| index.unique);
        let unique = unique.filter_map(|index| self.index_positions(index));
        let unique = unique.filter(|set| set.iter().all(|at| *at < self.columns.len()));
        let counts =
            move |set: &Vec<usize>| !with_nulls || !set.iter().any(|at| self.columns[*at].nullable);
        primary.chain(unique.filter(counts))
    }

    /// Adds a companion index for each column that indexes contain but that leads none of them, so
    /// that every column of an index can be looked up. Drops companions and computed
    /// columns that are no longer needed.
    /// Adds as many as the limits allow.
    pub fn complete_indexes(&mut self) {
        let declared: Vec<IndexSchema> = self.declared_indexes().cloned().collect();
        let leads =
            |column: &u32| declared.iter().any(|index| index.columns.first() == Some(column));
        let mut needed: Vec<(u32, String)> = Vec::new();
        for index in &declared {
            for column in index.columns.iter().skip(1) {
                if !leads(column) && needed.iter().all(|(known, _)| known != column) {
                    let of = self.key_position(*column).map_or("", |at| &self.key_column(at).name);
                    needed.push((*column, format!("{}.{of}", index.name)));
                }
            }
        }
        let is_needed =
            |index: &IndexSchema| needed.iter().any(|(column, _)| index.columns == [*column]);
        self.indexes.retain(|index| index.kind != IndexKind::Companion || is_needed(index));
        self.computed.retain(|column| declared.iter().any(|i| i.columns.contains(&column.id)));
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

    /// Position of the column of an index with an id: of the table, or computed.
    pub fn key_position(&self, id: u32) -> Option<usize> {
        self.columns.iter().chain(&self.computed).position(|column| column.id == id)
    }

    /// The column of an index at a position: of the table, or computed.
    pub fn key_column(&self, at: usize) -> &Column {
        match at.checked_sub(self.columns.len()) {
            None => &self.columns[at],
            Some(at) => &self.computed[at],
        }
    }

    /// Positions of an index's columns, in key order; `None` when one is missing.
    pub fn index_positions(&self, index: &IndexSchema) -> Option<Vec<usize>> {
        index.columns.iter().map(|id| self.key_position(*id)).collect()
    }

    /// Positions of the columns of one of the table's own indexes, in key order.
    pub fn key_positions(&self, index: &IndexSchema) -> Vec<usize> {
        let Some(positions) = self.index_positions(index) else {
            broken(format_args!("index {} of {} lacks a column", index.name, self.name))
        };
        positions
    }

    /// Checks that names and ids of the indexes differ, and that their columns exist.
    pub fn check_indexes(&self) -> Result<()> {
        if self.indexes.len() > limits::MAX_INDEXES {
            return Err(Error::limit(format!(
                "a table has at most {} indexes",
                limits::MAX_INDEXES
            )));
        }
        // Each index adds columns to those of the table in a segment.
        let places: usize = self.indexes.iter().map(|index| index.columns.len() + 2).sum();
        let places = places + self.computed.len();
        if places > 0 && self.columns.len() + places + 3 > limits::MAX_SEGMENT_COLUMNS {
            return Err(Error::limit(format!(
                "columns and indexes together exceed {} columns of storage",
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
            // The name of a companion is never looked up.
            if index.kind != IndexKind::Companion && (is_key || earlier.iter().any(is_taken)) {
                return Err(Error::already_exists(format!("index {name} of table {}", self.name))
                    .with_sqlstate("42P07"));
            }
            if index.id >= limits::MAX_INDEX_ID || earlier.iter().any(|other| other.id == index.id)
            {
                return Err(Error::limit(format!(
                    "index {name} has an id that is taken or too large"
                )));
            }
            if index.columns.is_empty() || index.columns.len() > limits::MAX_INDEX_COLUMNS {
                let most = limits::MAX_INDEX_COLUMNS;
                return Err(Error::limit(format!(
                    "index {name} has no column, or more than {most}"
                )));
            }
            let mut seen = Vec::with_capacity(index.columns.len());
            for id in &index.columns {
                if self.key_position(*id).is_none() {
                    let table = self.name.clone();
                    return Err(Error::constraint(format!(
                        "index {name} needs a column that table {table} does not have"
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
