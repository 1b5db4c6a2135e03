//! Assigns new keys and unique values to many rows: reserves them, and makes sure that no other row
//! has one of them.
//!
//! The old rows are claimed or deleted before. Rows of segments are compared with the new rows as
//! those of a bulk load are. Each row in memory is looked up among the new ones.

use crate::index::definition::Index;
use crate::load::bulk_update::{BulkUpdate, Compared};
use crate::load::staged::LoadedRow;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::unique::{self, write_row};
use nacre_rowstore::{Blocker, Change, Key, Node};
use nacre_types::walked::{self, Path};
use nacre_types::{Error, ErrorKind, Result, invariant, key, limits};
use std::sync::{Arc, Mutex, PoisonError};

/// Rounds after which one is done while the table's gate is closed.
const MAX_ROUNDS: usize = 16;

/// Checks and reserves the new keys of an update. A row whose key has a deleted row in memory is
/// written there instead. If another transaction is in the way, the caller rolls back to its
/// savepoint and waits. May be called again after that.
pub(super) fn reserve(core: &mut Core, update: &mut BulkUpdate) -> Result<()> {
    let _within = walked::within(Path::ManyRekeyed);
    let table = update.table().clone();
    core.check_writes(&table)?;
    debug_assert!(update.rekeys(), "keys are reserved for an update that changes none");
    update.take_all_back();
    let reserved = update.reserve(core.writes().owner());
    reserved.map_err(|holder| blocked_by(core, &table, holder))?;
    let mut compared = Compared::default();
    for round in 0.. {
        // What is in memory is looked at in each round, so others might overtake it for ever.
        let _closed = (round >= MAX_ROUNDS).then(|| table.gate().close());
        let lists = {
            // A commit in progress lists its segments under the lock, so these are committed.
            let _turn = core.commits().lock();
            lists(core, &table)
        };
        // Segments first: a row that moves to memory meanwhile is found in one of them. One that is
        // flushed meanwhile changes the lists.
        check_segments(core, update, &mut compared, &lists)?;
        check_memory(core, update)?;
        if lists.iter().zip(self::lists(core, &table)).all(|(a, b)| Arc::ptr_eq(a, &b)) {
            break;
        }
    }
    check_snapshot(core, update)
}

/// The segments of each partition, those of the transaction included.
fn lists(core: &Core, table: &Table) -> Vec<Arc<SegmentList>> {
    let own = core.writes().own_segments();
    let list = |partition: &Partition| match own {
        Some(own) => own.list(table, partition),
        None => partition.segments(),
    };
    let lists: Vec<Arc<SegmentList>> = table.partitions().iter().map(list).collect();
    debug_assert!(!lists.is_empty(), "table {} has no partition", table.schema().name);
    lists
}

fn blocked_by(core: &mut Core, table: &Table, holder: Blocker) -> Error {
    let message =
        format!("a key of table {} is locked by another transaction", table.schema().name);
    core.writes_mut().blocked_by(holder, message)
}

fn check_segments(
    core: &mut Core,
    update: &BulkUpdate,
    compared: &mut Compared,
    lists: &[Arc<SegmentList>],
) -> Result<()> {
    let table = update.table();
    let (owner, hidden) = (core.writes().owner(), core.writes().hidden());
    let met: Mutex<Option<Blocker>> = Mutex::default();
    let leaving = |state: &SegmentState, row: u32| {
        if state.claims().is_own(owner, row) || hidden.contains(table, state.id(), row) {
            return Ok(true);
        }
        let claimed = state.claims().blocker(owner, row);
        let Some(blocker) = claimed.or(holder_of(core, table, state, row)?) else {
            return Ok(false);
        };
        *met.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocker);
        Err(Error::new(ErrorKind::LockTimeout, "a row is locked by another transaction"))
    };
    let outcome = update.compare(compared, lists, &leaving);
    match met.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(blocker) => Err(blocked_by(core, &table.clone(), blocker)),
        None => outcome,
    }
}

/// The other transaction that has locked a row of a segment.
fn holder_of(
    core: &Core,
    table: &Table,
    state: &SegmentState,
    row: u32,
) -> Result<Option<Blocker>> {
    debug_assert!((row as usize) < state.segment.rows(), "row {row} of segment {}", state.id());
    let layout = table.layout();
    let key = layout.encode_key(&layout.key_of_segment_row(&state.segment, row)?)?;
    let node = table.partition_of(&key).rowstore().get(&key);
    Ok(node.and_then(|node| other_holder(core, &node)))
}

fn other_holder(core: &Core, node: &Node) -> Option<Blocker> {
    let owner = core.writes().owner();
    node.blocker().filter(|blocker| !Arc::ptr_eq(blocker.owner(), owner))
}

/// A row in memory, and the new rows that have its primary key.
struct MetRow {
    partition: u32,
    node: Arc<Node>,
    same: Vec<LoadedRow>,
}

fn check_memory(core: &mut Core, update: &mut BulkUpdate) -> Result<()> {
    let table = update.table().clone();
    let mut met = Vec::new();
    for index in table.unique_indexes() {
        check_claims(core, update, index)?;
    }
    for partition in table.partitions() {
        let number = partition.number();
        let mut failed = None;
        partition.try_each_node(|node| {
            let same = update.rows_with_key(number, node.key())?;
            if !same.is_empty() {
                met.push(MetRow { partition: number, node: node.clone(), same });
            }
            failed = failed.take().or(check_values(core, update, node)?);
            Ok(())
        })?;
        if let Some(blocker) = failed {
            return Err(blocked_by(core, &table, blocker));
        }
    }
    met.into_iter().try_for_each(|row| resolve(core, update, row))
}

/// Fails if another transaction has assigned one of the new values.
fn check_claims(core: &mut Core, update: &BulkUpdate, index: &Index) -> Result<()> {
    debug_assert!(index.is_unique(), "values of index {} are claimed", index.name());
    let mut after: Option<Key> = None;
    let mut claims = Vec::new();
    loop {
        claims.clear();
        index.claims().range_after(after.as_deref(), limits::BLOCK_ROWS, &mut claims);
        let Some(last) = claims.last() else { return Ok(()) };
        after = Some(last.key().clone());
        for claim in &claims {
            if let Some(holder) = other_holder(core, claim)
                && !update.rows_with_value(index, claim.key())?.is_empty()
            {
                return Err(blocked_by(core, update.table(), holder));
            }
        }
    }
}

/// Fails if a row in memory has one of the new values. Returns the other transaction that has locked
/// such a row, and may be about to change it.
fn check_values(core: &Core, update: &BulkUpdate, node: &Arc<Node>) -> Result<Option<Blocker>> {
    let table = update.table();
    let own = node.is_locked_by(core.writes().owner());
    let pending = if own { node.pending() } else { None };
    let Some(Change::Put(row)) = pending.or_else(|| node.newest().map(|newest| newest.change))
    else {
        return Ok(None);
    };
    let row = table.layout().upgrade(row)?;
    for index in table.unique_indexes() {
        let value = index.key_of(table.layout(), &row)?;
        if index.may_repeat(&value) || update.rows_with_value(index, &value)?.is_empty() {
            continue;
        }
        return match other_holder(core, node) {
            Some(holder) => Ok(Some(holder)),
            None => Err(index.duplicate(&table.schema().name, &value)),
        };
    }
    Ok(None)
}

/// Locks the node of a new row's key, and writes the row there if the row that had the key is deleted:
/// what is in memory hides what is in a segment.
fn resolve(core: &mut Core, update: &mut BulkUpdate, met: MetRow) -> Result<()> {
    let table = update.table().clone();
    let MetRow { partition, node, same } = met;
    let locked = core.writes_mut().lock_node(&table, table.partition(partition), node.key())?;
    debug_assert!(
        same.iter().all(|row| update
            .rows_with_key(partition, node.key())
            .map_or(true, |rows| rows.contains(row))),
        "a new row does not have the key of the row in memory that it met"
    );
    let (pending, newest) = (locked.node.pending(), locked.node.newest());
    let is_newer =
        pending.is_none() && newest.as_ref().is_some_and(|newest| newest.content > core.at());
    let refused = match pending.or(newest.map(|newest| newest.change)) {
        _ if is_newer => core.conflict(&table),
        Some(Change::Put(_)) => {
            let values = key::decode(node.key(), &table.layout().key_types())?;
            table.layout().duplicate(&values)
        }
        Some(Change::Delete) => {
            invariant!(same.len() == 1, "{} new rows have one key", same.len());
            let values = update.take(same[0])?;
            let row = table.layout().encode_row(&values)?;
            return write_row(core, &table, locked, row);
        }
        Some(Change::Flushed) | None => {
            core.writes_mut().keep_lock(&table, locked);
            return Ok(());
        }
    };
    core.writes_mut().keep_lock(&table, locked);
    Err(refused)
}

/// Fails with a `conflict` if a row that the transaction sees, and that another has deleted since, has
/// one of the new keys: the transaction would see it twice.
fn check_snapshot(core: &Core, update: &BulkUpdate) -> Result<()> {
    debug_assert!(update.has_reserved(), "keys that others may assign are checked");
    let table = update.table();
    if table.key_columns().is_some() && table.cleared() > core.at() {
        update.each_row(&mut |partition, segment, row| {
            let layout = table.layout();
            let key = layout.key_of_segment_row(segment, row)?;
            let encoded = layout.encode_key(&key)?;
            debug_assert!(table.partition_of(&encoded).number() == partition, "a row is misplaced");
            match core.find(table, &key, &encoded)? {
                Some(_) => Err(core.conflict(table)),
                None => Ok(()),
            }
        })?;
    }
    if table.changed() <= core.at() {
        return Ok(());
    }
    for index in table.unique_indexes() {
        update.each_row(&mut |_, segment, row| {
            let values = table.layout().segment_key(segment, row, index.columns())?;
            match unique::locate(core, table, index.id(), &values)? {
                Some(_) => Err(core.conflict(table)),
                None => Ok(()),
            }
        })?;
    }
    Ok(())
}
