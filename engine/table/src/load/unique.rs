//! Unique values in a bulk load: none may occur twice, in the load or between the load and the
//! table.
//!
//! Walks the load's own index parts in key order. As for primary keys, this happens once without a
//! lock, and again under the commit lock if the table changed meanwhile. Values claimed by
//! transactions are checked only under the lock, after the load's segments are listed, so a
//! transaction that claims a value either sees the segments or is seen.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::{live_keys, positions, rows_of_candidate};
use crate::index::range::KeyRange;
use crate::load::common_keys::{each_common, is_few, overlap};
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Change, Node};
use nacre_types::hash::hash_bytes;
use nacre_types::{Error, Result, Value, invariant, key, limits};
use std::sync::Arc;

/// A walk through the keys of one index part, in order.
struct PartWalk<'a> {
    index: &'a Index,
    part: Arc<Part>,
    next: usize,
    /// Remaining keys of the last block before `next`, least one last.
    keys: Vec<Vec<u8>>,
}

impl PartWalk<'_> {
    /// Reads the next block if all keys have been taken.
    fn fill(&mut self) -> Result<()> {
        let rows = self.part.file().rows();
        if !self.keys.is_empty() || self.next == rows {
            return Ok(());
        }
        let count = limits::BLOCK_ROWS.min(rows - self.next);
        let column = |at: &usize| self.part.file().decode(*at, self.next, count).map(Arc::new);
        let columns = self.part.keys().iter().map(column).collect::<Result<_>>()?;
        self.keys = self.index.encode_rows(&Batch::new(columns, count))?;
        invariant!(
            self.keys.len() == count,
            "{} of {count} keys of index {}",
            self.keys.len(),
            self.index.name()
        );
        debug_assert!(
            self.keys.is_sorted(),
            "keys of a part of index {} are out of order",
            self.index.name()
        );
        self.keys.reverse();
        self.next += count;
        Ok(())
    }
}

fn part_of(index: &Index, file: &SegmentState) -> Result<Arc<Part>> {
    let missing = || {
        Error::corrupt(format!(
            "segment {} has no part of index {}",
            file.segment.name(),
            index.name()
        ))
    };
    file.part(index.id()).ok_or_else(missing)
}

/// Fails if a unique value occurs twice in a load's segments, which must have parts of all indexes.
pub(crate) fn check_inside(table: &Table, files: &[SegmentState]) -> Result<()> {
    for index in table.unique_indexes() {
        let walk =
            |file| Ok(PartWalk { index, part: part_of(index, file)?, next: 0, keys: Vec::new() });
        let mut walks: Vec<PartWalk<'_>> = files.iter().map(walk).collect::<Result<_>>()?;
        let mut last: Option<Vec<u8>> = None;
        loop {
            walks.iter_mut().try_for_each(PartWalk::fill)?;
            let least = walks
                .iter_mut()
                .filter(|walk| !walk.keys.is_empty())
                .min_by(|a, b| a.keys.last().cmp(&b.keys.last()));
            let Some(key) = least.and_then(|walk| walk.keys.pop()) else { break };
            debug_assert!(
                last.as_ref().is_none_or(|last| *last <= key),
                "keys of a load are not walked in order"
            );
            if last.as_ref() == Some(&key) && !index.may_repeat(&key) {
                return Err(index.duplicate(&table.schema().name, &key));
            }
            last = Some(key);
        }
    }
    Ok(())
}

/// Fails if a unique value of the load is in one of these segments of the table. `lists` is indexed
/// by partition.
pub(crate) fn check_segments(
    table: &Table,
    lists: &[Arc<SegmentList>],
    files: &[SegmentState],
) -> Result<()> {
    debug_assert!(
        lists.len() == table.partitions().len(),
        "{} lists of {} partitions",
        lists.len(),
        table.partitions().len()
    );
    for index in table.unique_indexes() {
        for list in lists {
            files.iter().try_for_each(|file| check_file(table, index, list, files, file))?;
        }
    }
    Ok(())
}

/// Like [`check_segments`], for one file of the load and the segments of one partition.
fn check_file(
    table: &Table,
    index: &Index,
    list: &SegmentList,
    files: &[SegmentState],
    file: &SegmentState,
) -> Result<()> {
    let is_own = |state: &SegmentState| files.iter().any(|file| file.id() == state.id());
    debug_assert!(is_own(file), "a file is not among those of its load");
    let new_part = part_of(index, file)?;
    let new = new_part.sorted_keys();
    let duplicate =
        |at: usize| Err(index.duplicate(&table.schema().name, &index.encode(&new.at(at)?)?));
    // Segments large enough that each of the load's keys is looked up individually.
    let mut large = vec![false; list.len()];
    for (place, state) in
        list.iter().enumerate().filter(|(_, state)| state.is_current() && !is_own(state))
    {
        let Some(old_part) = state.part(index.id()) else {
            check_unindexed(table, index, state, &new_part)?;
            continue;
        };
        let old = old_part.sorted_keys();
        if is_few(&new, new.len(), old.len()) {
            large[place] = overlap(&old, &new)?.is_some();
            continue;
        }
        each_common(
            &old,
            &new,
            &mut |old_at, new_at| match state.is_deleted(old_part.row(old_at)?) {
                true => Ok(()),
                false => duplicate(new_at),
            },
        )?;
    }
    if !large.contains(&true) {
        return Ok(());
    }
    let directory = list.of_index(index);
    for at in 0..new.len() {
        let key = new.at(at)?;
        if key.iter().any(Value::is_null) {
            continue;
        }
        let encoded = index.encode(&key)?;
        let (range, hash) = (KeyRange::equal(key), Some(hash_bytes(&encoded)));
        for candidate in
            directory.candidates(&encoded)?.newest_first().filter(|found| large[found.place])
        {
            let state = &list[candidate.place];
            let rows = rows_of_candidate(table.schema(), index, state, &range, hash, candidate)?;
            if rows.iter().any(|row| !state.is_deleted(*row)) {
                return duplicate(at);
            }
        }
    }
    Ok(())
}

/// Like [`check_file`], for a segment without a part of the index: its keys are read once.
fn check_unindexed(
    table: &Table,
    index: &Index,
    old: &SegmentState,
    new: &Arc<Part>,
) -> Result<()> {
    debug_assert!(old.part(index.id()).is_none(), "segment {} has a part", old.id());
    let known = live_keys(table.schema(), index, old)?;
    let mut walk = PartWalk { index, part: new.clone(), next: 0, keys: Vec::new() };
    loop {
        walk.fill()?;
        let Some(key) = walk.keys.pop() else { return Ok(()) };
        if !index.may_repeat(&key) && known.binary_search(&key).is_ok() {
            return Err(index.duplicate(&table.schema().name, &key));
        }
    }
}

/// Fails if a unique value of the load is in memory, or claimed by a transaction.
pub(crate) fn check_memory(table: &Table, files: &[SegmentState]) -> Result<()> {
    for index in table.unique_indexes() {
        let is_loaded = |key: &[u8]| -> Result<bool> {
            if index.may_repeat(key) {
                return Ok(false);
            }
            let range = KeyRange::equal(key::decode(key, index.types())?);
            for file in files {
                let (start, end) =
                    positions(&*part_of(index, file)?, &range, Some(hash_bytes(key)))?;
                if start < end {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let mut claims: Vec<Arc<Node>> = Vec::new();
        index.claims().range_after(None, usize::MAX, &mut claims);
        for node in claims {
            if node.is_locked() && is_loaded(node.key())? {
                return Err(claimed_by_another(table));
            }
        }
        for partition in table.partitions() {
            each_entry(index, partition.number(), &[], None, |entry| {
                if has_row(table, index, partition, entry.row_key(), entry.index_key())?
                    && is_loaded(entry.index_key())?
                {
                    return Err(index.duplicate(&table.schema().name, entry.index_key()));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Whether the newest version of a row in memory has an index key.
fn has_row(
    table: &Table,
    index: &Index,
    partition: &Partition,
    row_key: &[u8],
    index_key: &[u8],
) -> Result<bool> {
    let newest = partition.rowstore().get(row_key).and_then(|node| node.newest());
    match newest.map(|version| version.change) {
        Some(Change::Put(row)) => table.has_key(index, &row, index_key),
        _ => Ok(false),
    }
}

/// The error for a unique value that another transaction has claimed.
pub(super) fn claimed_by_another(table: &Table) -> Error {
    let name = &table.schema().name;
    Error::conflict(format!(
        "a unique value of the load is locked by another transaction in table {name}"
    ))
}
