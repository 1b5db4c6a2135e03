//! Unique values in a bulk load: none may be there twice, in the load or beside it.
//!
//! The load's own parts are walked in key order. Like for primary keys that happens once without a lock, and again
//! under the commit lock when the table was changed meanwhile; what transactions hold is looked at under the lock only,
//! after the load's segments are listed, so that whoever claims a value meets them or is met.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::layout::rows;
use crate::load::bulk_load::OnDuplicate;
use crate::load::common_keys as common;
use crate::read::probe::{KeyRange, live_keys, positions, rows_of_candidate};
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Change, Node};
use nacre_types::hash::hash_bytes;
use nacre_types::{Error, ErrorKind, Reason, Result, Value, key, limits};
use std::sync::Arc;

/// The rows of one segment of a load, in the order of an index.
struct Walk<'a> {
    index: &'a Index,
    part: Arc<Part>,
    next: usize,
    /// Keys of the positions before `next`, the least one last.
    keys: Vec<Vec<u8>>,
}

impl Walk<'_> {
    fn fill(&mut self) -> Result<()> {
        let rows = self.part.file.rows();
        if !self.keys.is_empty() || self.next == rows {
            return Ok(());
        }
        let count = limits::BLOCK_ROWS.min(rows - self.next);
        let column = |at: &usize| self.part.file.decode(*at, self.next, count).map(Arc::new);
        let columns = self.part.keys.iter().map(column).collect::<Result<_>>()?;
        self.keys = self.index.encode_rows(&Batch::new(columns, count))?;
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
            index.schema.name
        ))
    };
    file.part(index.schema.id).ok_or_else(missing)
}

/// Fails when a unique value is in these segments of a load twice. They have parts of all indexes.
pub(crate) fn check_inside(table: &Table, files: &[SegmentState]) -> Result<()> {
    for index in table.indexes().iter().filter(|index| index.schema.unique) {
        let walk =
            |file| Ok(Walk { index, part: part_of(index, file)?, next: 0, keys: Vec::new() });
        let mut walks: Vec<Walk<'_>> = files.iter().map(walk).collect::<Result<_>>()?;
        let mut last: Option<Vec<u8>> = None;
        loop {
            walks.iter_mut().try_for_each(Walk::fill)?;
            let least = walks
                .iter_mut()
                .filter(|walk| !walk.keys.is_empty())
                .min_by(|a, b| a.keys.last().cmp(&b.keys.last()));
            let Some(key) = least.and_then(|walk| walk.keys.pop()) else { break };
            if last.as_ref() == Some(&key) && !index.may_repeat(&key) {
                return Err(index.duplicate(table, &key));
            }
            last = Some(key);
        }
    }
    Ok(())
}

/// Fails when a unique value of the load is in one of these segments of the table, listed by partition.
pub(crate) fn check_segments(
    table: &Table,
    lists: &[Arc<SegmentList>],
    files: &[SegmentState],
) -> Result<()> {
    for index in table.indexes().iter().filter(|index| index.schema.unique) {
        for list in lists {
            files.iter().try_for_each(|file| check_file(table, index, list, files, file))?;
        }
    }
    Ok(())
}

/// The same of one file of the load and the segments of a partition.
fn check_file(
    table: &Table,
    index: &Index,
    list: &SegmentList,
    files: &[SegmentState],
    file: &SegmentState,
) -> Result<()> {
    let is_own =
        |state: &SegmentState| files.iter().any(|file| file.segment.id() == state.segment.id());
    let new_part = part_of(index, file)?;
    let new = new_part.sorted_keys();
    let duplicate = |at: usize| Err(index.duplicate(table, &index.encode(&new.at(at)?)?));
    // Segments with so many rows that each of the load's keys is looked up by itself.
    let mut large = vec![false; list.len()];
    for (place, state) in
        list.iter().enumerate().filter(|(_, state)| state.is_current() && !is_own(state))
    {
        let Some(old_part) = state.part(index.schema.id) else {
            check_unindexed(table, index, state, &new_part)?;
            continue;
        };
        let old = old_part.sorted_keys();
        if common::is_few(&new, new.file.rows(), old.file.rows()) {
            large[place] = common::overlap(&old, &new)?.is_some();
            continue;
        }
        common::each_common(&old, &new, &mut |old_at, new_at| match state
            .is_deleted(old_part.row(old_at)?)
        {
            true => Ok(()),
            false => duplicate(new_at),
        })?;
    }
    if !large.contains(&true) {
        return Ok(());
    }
    let directory = list.of_index(index);
    for at in 0..new.file.rows() {
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
            let rows = rows_of_candidate(table, index, state, &range, hash, candidate)?;
            if rows.iter().any(|row| !state.is_deleted(*row)) {
                return duplicate(at);
            }
        }
    }
    Ok(())
}

/// The same of a segment without a part of the index: its keys are read once.
fn check_unindexed(
    table: &Table,
    index: &Index,
    old: &SegmentState,
    new: &Arc<Part>,
) -> Result<()> {
    let known = live_keys(table, index, old)?;
    let mut walk = Walk { index, part: new.clone(), next: 0, keys: Vec::new() };
    loop {
        walk.fill()?;
        let Some(key) = walk.keys.pop() else { return Ok(()) };
        if !index.may_repeat(&key) && known.binary_search(&key).is_ok() {
            return Err(index.duplicate(table, &key));
        }
    }
}

/// Fails when a unique value of the load is in memory, or held by a transaction.
pub(crate) fn check_memory(table: &Table, files: &[SegmentState]) -> Result<()> {
    for index in table.indexes().iter().filter(|index| index.schema.unique) {
        let is_loaded = |key: &[u8]| -> Result<bool> {
            if index.may_repeat(key) {
                return Ok(false);
            }
            let range = KeyRange::equal(key::decode(key, &index.types)?);
            for file in files {
                let (start, end) =
                    positions(&*part_of(index, file)?, &range, Some(hash_bytes(key)))?;
                if start < end {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let mut given: Vec<Arc<Node>> = Vec::new();
        index.memory.given.range_after(None, usize::MAX, &mut given);
        for node in given {
            if node.is_locked() && is_loaded(node.key())? {
                return Err(held(table));
            }
        }
        for partition in table.partitions() {
            each_entry(index, partition, &[], None, |entry| {
                if has_row(table, index, partition, entry.row_key(), entry.index_key())?
                    && is_loaded(entry.index_key())?
                {
                    return Err(index.duplicate(table, entry.index_key()));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn has_row(
    table: &Table,
    index: &Index,
    partition: &Partition,
    row_key: &[u8],
    index_key: &[u8],
) -> Result<bool> {
    let newest = partition.rowstore.get(row_key).and_then(|node| node.newest());
    match newest.map(|version| version.change) {
        Some(Change::Put(row)) => index.has_key(table, &row, index_key),
        _ => Ok(false),
    }
}

/// Loads rows in their order through one transaction, each as if it were inserted alone. Durable like every load.
pub(crate) fn one_by_one(
    store: &Arc<Store>,
    table: &Arc<Table>,
    on_duplicate: OnDuplicate,
    batches: &[Batch],
) -> Result<u64> {
    let mut transaction = store.begin()?;
    // Rows that a newer version of the table wrote cannot be read by this one.
    table.check_newest()?;
    let mut loaded = 0;
    for batch in batches {
        for row in 0..batch.rows {
            let values = rows::values_of(batch, row);
            let savepoint = transaction.savepoint();
            let gone = match on_duplicate {
                OnDuplicate::Replace => transaction.delete_conflicting(table, &values).map(drop),
                _ => Ok(()),
            };
            match gone.and_then(|()| transaction.insert_row(table, &values)) {
                Ok(()) => loaded += 1,
                Err(error)
                    if on_duplicate == OnDuplicate::Skip
                        && error.reason() == Some(Reason::DuplicateKey) =>
                {
                    transaction.rollback_to(savepoint);
                }
                Err(error) if error.kind() == ErrorKind::LockTimeout => return Err(held(table)),
                Err(error) => return Err(error),
            }
        }
    }
    // Rows may have been skipped for others whose commit the log refused.
    store.log.check_usable()?;
    if loaded == 0 {
        // What all of them were skipped for has to be as durable as a row that is loaded.
        store.sync_log()?;
    } else {
        transaction.commit_strictly()?;
    }
    Ok(loaded)
}

fn held(table: &Table) -> Error {
    let name = &table.schema().name;
    Error::conflict(format!(
        "a unique value of the load is locked by another transaction in table {name}"
    ))
}
