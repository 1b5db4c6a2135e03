//! The segments of a partition after one change, with lookup structures over all of them.
//!
//! A list is immutable: its holder sees the same segments throughout. The directories for finding a
//! key's segments ([`Directory`]) are built on first use and dropped with the list. A list does not
//! say which of its segments a snapshot sees.

use crate::index::candidates::Candidates;
use crate::index::definition::Index;
use crate::index::directory::Directory;
use crate::index::hash::table::HashTable;
use crate::layout::table_layout::TableLayout;
use crate::record::KeySet;
use crate::segments::state::SegmentState;
use nacre_types::hash::{Set, hash_bytes};
use nacre_types::{IndexId, Result, invariant};
use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// A list with fewer segments has no directory for the primary key; all segments are candidates.
const FEW: usize = 4;

/// Segments in the order they were added.
#[derive(Default)]
pub struct SegmentList {
    states: Vec<Arc<SegmentState>>,
    /// Hash tables of all key sets. They may cover segments that are not in the list.
    tables: Vec<Arc<HashTable>>,
    primary: OnceLock<Directory>,
    /// Whether any segment has a key filter.
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
    /// Creates a list of distinct segments.
    pub(crate) fn new(states: Vec<Arc<SegmentState>>, tables: Vec<Arc<HashTable>>) -> SegmentList {
        let is_filtered = states.iter().any(|state| state.has_key_filter());
        let ids: Set<u64> = states.iter().map(|state| state.id()).collect();
        invariant!(ids.len() == states.len(), "a segment is listed twice");
        SegmentList { states, tables, is_filtered, ..SegmentList::default() }
    }

    /// The hash tables of the primary key and of indexes.
    pub(crate) fn tables(&self) -> &[Arc<HashTable>] {
        &self.tables
    }

    /// The hash tables of one key set.
    pub(crate) fn tables_of(&self, keys: KeySet) -> impl Iterator<Item = &Arc<HashTable>> {
        self.tables.iter().filter(move |table| table.keys() == keys)
    }

    /// The segments that may hold the row of an encoded key.
    pub(crate) fn of_key(&self, layout: &TableLayout, key: &[u8]) -> Result<Candidates> {
        let tables = || self.tables_of(KeySet::Primary).cloned().collect::<Vec<_>>();
        let make = || Directory::of_primary_key(layout, self, &tables());
        let found = match self.states.len() < FEW {
            true => Candidates::all(self.states.len()),
            false => self.primary.get_or_init(make).candidates(key)?,
        };
        debug_assert!(
            found.newest_first().all(|candidate| candidate.place < self.states.len()),
            "a key may be in a segment that is not listed"
        );
        Ok(if self.is_filtered { found.with_hash(hash_bytes(key)) } else { found })
    }

    /// The directory for the keys of an index.
    pub(crate) fn of_index(&self, index: &Index) -> Arc<Directory> {
        let id = index.id();
        let known = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, directory)) = known.iter().find(|(known, _)| *known == id) {
            return directory.clone();
        }
        drop(known);
        let tables: Vec<Arc<HashTable>> = self.tables_of(KeySet::Index(id)).cloned().collect();
        let made = Arc::new(Directory::of_index(index, self, &tables));
        debug_assert!(
            tables.iter().all(|table| table.keys() == KeySet::Index(id)),
            "a hash table of other keys is asked for those of index {id}"
        );
        let mut known = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| *known != id);
        known.push((id, made.clone()));
        made
    }
}
