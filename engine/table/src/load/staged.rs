//! The files of a load that are not in the table yet, as keys are looked up in them.

use crate::index::definition::Index;
use crate::index::lookup::rows_of_candidate;
use crate::index::range::KeyRange;
use crate::load::loaded::Loaded;
use crate::record::RunPlace;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::reservations::ReservedKeys;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::hash::{Map, hash_bytes};
use nacre_types::{Error, Result, Value, invariant, key};
use std::sync::Arc;

/// A row of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoadedRow {
    /// The number of the file, in the order they were written.
    pub file: usize,
    pub row: u32,
}

/// The files of a load, by partition.
pub(super) struct Staged {
    lists: Vec<SegmentList>,
    /// The numbers of the files, by the numbers that the store gave them.
    numbers: Map<u64, usize>,
}

impl Staged {
    /// Lists the files of a load in these runs.
    pub fn new(table: &Table, files: &[Loaded], runs: &[RunPlace]) -> Staged {
        debug_assert!(files.len() == runs.len(), "{} files of a load are in runs", files.len());
        let mut lists: Vec<SegmentList> =
            table.partitions().iter().map(|_| SegmentList::default()).collect();
        for (file, run) in files.iter().zip(runs) {
            lists[file.partition as usize].add(*run, vec![Arc::new(file.unlisted_state())]);
        }
        let numbers: Map<u64, usize> =
            (0..).zip(files).map(|(at, file)| (file.segment.id(), at)).collect();
        invariant!(numbers.len() == files.len(), "two of {} files have one number", files.len());
        Staged { lists, numbers }
    }

    fn number_of(&self, state: &SegmentState) -> usize {
        let number = self.numbers.get(&state.id());
        invariant!(number.is_some(), "segment {} is not of the load", state.id());
        number.copied().unwrap_or_default()
    }

    /// Whether a segment is one of the files.
    pub fn is_own(&self, state: &SegmentState) -> bool {
        self.numbers.contains_key(&state.id())
    }

    /// The rows of the load with an encoded primary key.
    pub fn with_key(&self, table: &Table, partition: u32, key: &[u8]) -> Result<Vec<LoadedRow>> {
        let layout = table.layout();
        if self.lists[partition as usize].is_empty() || table.key_columns().is_none() {
            return Ok(Vec::new());
        }
        let values = key::decode(key, &layout.key_types())?;
        self.rows_of(table, partition, (&values, key))
    }

    /// The row with a key, which may be a hidden row number, of files that have each key once.
    pub fn row(&self, table: &Table, partition: u32, key: &[Value]) -> Result<Option<LoadedRow>> {
        let rows = self.rows_of(table, partition, (key, &table.layout().encode_key(key)?))?;
        debug_assert!(rows.len() < 2, "a key is in the files {} times", rows.len());
        Ok(rows.first().copied())
    }

    fn rows_of(
        &self,
        table: &Table,
        partition: u32,
        (values, encoded): (&[Value], &[u8]),
    ) -> Result<Vec<LoadedRow>> {
        let (layout, mut rows) = (table.layout(), Vec::new());
        let list = &self.lists[partition as usize];
        if list.is_empty() {
            return Ok(rows);
        }
        for candidate in list.of_key(layout, encoded)?.newest_first() {
            let state = &list[candidate.place];
            let (file, row) = (self.number_of(state), candidate.find(layout, state, values)?);
            rows.extend(row.map(|row| LoadedRow { file, row }));
        }
        Ok(rows)
    }

    /// The rows of the load with a unique value.
    pub fn with_value(&self, table: &Table, index: &Index, key: &[u8]) -> Result<Vec<LoadedRow>> {
        debug_assert!(!index.may_repeat(key), "a value of index {} may repeat", index.name());
        let (range, hash) = (KeyRange::equal(key::decode(key, index.types())?), hash_bytes(key));
        let mut rows = Vec::new();
        for list in &self.lists {
            for candidate in list.of_index(index).candidates(key)?.newest_first() {
                let (state, layout) = (&list[candidate.place], table.layout());
                let file = self.number_of(state);
                let found = rows_of_candidate(layout, index, state, &range, Some(hash), candidate)?;
                rows.extend(found.into_iter().map(|row| LoadedRow { file, row }));
            }
        }
        Ok(rows)
    }
}

/// The keys of files, for others to look up.
pub(super) struct StagedKeys {
    pub staged: Arc<Staged>,
    pub table: Arc<Table>,
}

impl ReservedKeys for StagedKeys {
    fn has_key(&self, partition: u32, key: &[u8]) -> Result<bool> {
        Ok(!self.staged.with_key(&self.table, partition, key)?.is_empty())
    }

    fn has_value(&self, index: &Index, key: &[u8]) -> Result<bool> {
        Ok(!self.staged.with_value(&self.table, index, key)?.is_empty())
    }
}

/// The part of an index of a load's file, which has parts of all indexes.
pub(super) fn part_of(index: &Index, file: &SegmentState) -> Result<Arc<Part>> {
    invariant!(file.created() > 0, "file {} of a load has no beginning", file.id());
    let missing = || {
        let (name, index) = (file.segment.name(), index.name());
        Error::corrupt(format!("segment {name} has no part of index {index}"))
    };
    file.part(index.id()).ok_or_else(missing)
}
