//! The segments of a partition as one change of them left them, with what is derived from all of them together.
//!
//! A list never changes: whoever has one looks at the same segments all the time. What finds the segments that may hold
//! a key ([`Directory`]) is made for a list when it is first asked for, and goes with it. A list does not say which of
//! its segments a snapshot sees.

use crate::index::definition::Index;
use crate::index::directory::{Candidates, Directory};
use crate::index::hash::table::{HashTable, KeySet};
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_types::hash::hash_bytes;
use nacre_types::{IndexId, Result};
use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Fewer segments than these are looked at one after the other.
const FEW: usize = 4;

/// Segments in the order in which they came.
#[derive(Default)]
pub struct SegmentList {
    states: Vec<Arc<SegmentState>>,
    /// Of all sets of keys. They may cover segments that are not in the list.
    tables: Vec<Arc<HashTable>>,
    primary: OnceLock<Directory>,
    /// Whether any segment has a filter of its rows' keys.
    is_filtered: bool,
    indexes: RwLock<Vec<(IndexId, Arc<Directory>)>>,
}

impl Deref for SegmentList {
    type Target = [Arc<SegmentState>];

    fn deref(&self) -> &[Arc<SegmentState>] {
        &self.states
    }
}

impl SegmentList {
    /// A list of these.
    pub(crate) fn new(states: Vec<Arc<SegmentState>>, tables: Vec<Arc<HashTable>>) -> SegmentList {
        let is_filtered = states.iter().any(|state| state.key_filter().is_some());
        SegmentList { states, tables, is_filtered, ..SegmentList::default() }
    }

    /// The hash tables of the primary key and of indexes.
    pub(crate) fn tables(&self) -> &[Arc<HashTable>] {
        &self.tables
    }

    /// Those of one set of keys.
    pub(crate) fn tables_of(&self, keys: KeySet) -> impl Iterator<Item = &Arc<HashTable>> {
        self.tables.iter().filter(move |table| table.keys == keys)
    }

    /// The segments that may hold the row of a key, which is encoded.
    pub(crate) fn of_key(&self, table: &Table, key: &[u8]) -> Result<Candidates> {
        let tables = || self.tables_of(KeySet::Primary).cloned().collect::<Vec<_>>();
        let make = || Directory::of_primary_key(table, self, &tables());
        let found = match self.states.len() < FEW {
            true => Candidates::all(self.states.len()),
            false => self.primary.get_or_init(make).candidates(key)?,
        };
        Ok(if self.is_filtered { found.with_hash(hash_bytes(key)) } else { found })
    }

    /// What finds the segments that may hold a key of an index.
    pub(crate) fn of_index(&self, index: &Index) -> Arc<Directory> {
        let id = index.schema.id;
        let known = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, directory)) = known.iter().find(|(known, _)| *known == id) {
            return directory.clone();
        }
        drop(known);
        let tables: Vec<Arc<HashTable>> = self.tables_of(KeySet::Index(id)).cloned().collect();
        let made = Arc::new(Directory::of_index(index, self, &tables));
        let mut known = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| *known != id);
        known.push((id, made.clone()));
        made
    }
}
