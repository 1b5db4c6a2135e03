//! Writes rows under primary keys that may exist: locks first, then looks up, each once for a whole
//! batch.
//!
//! While its key is locked, a row does not change: no other transaction writes it, and tasks that
//! move rows between memory and segments skip it. So the lookup still holds when the row is
//! written, and a free key needs no second check.

use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::row_key::RowKey;
use crate::table::version::Table;
use crate::transaction::changes::{Deferred, check_reserved, update_one, write_deferred};
use crate::transaction::core::Core;
use crate::transaction::hidden::SegmentRow;
use crate::transaction::locking::{RowToMove, move_all};
use crate::transaction::unique::{explain_duplicate, write_row};
use crate::transaction::write_set::LockedRow;
use nacre_rowstore::{Change, Visible};
use nacre_types::plant::{self, Bug};
use nacre_types::{Reason, Result, Value, invariant};
use std::sync::Arc;

/// The existing row of a key, if any.
pub(super) type OldRow = Option<Vec<Value>>;
/// The new row of a key; `None` leaves the key unchanged.
pub(super) type NewRow = Option<Vec<Value>>;

/// A locked existing key, with its old and new row.
struct Replacement {
    locked: LockedRow,
    old: Vec<Value>,
    new: Vec<Value>,
}

/// The keys of a batch, locked one after the other.
pub(super) struct LockedKeys {
    /// Each with the key's position in the batch.
    rows: Vec<(usize, LockedRow)>,
    /// Indexed by position in the batch.
    olds: Vec<OldRow>,
    /// The error that prevented locking all keys, if any.
    outcome: Result<()>,
}

impl LockedKeys {
    /// The existing rows of the keys, by position in the batch, or the error that prevented
    /// locking.
    pub fn olds(&self) -> Result<&[OldRow]> {
        debug_assert!(
            self.rows.len() <= self.olds.len(),
            "{} of {} keys are locked",
            self.rows.len(),
            self.olds.len()
        );
        self.outcome.as_ref().map(|()| self.olds.as_slice()).map_err(Clone::clone)
    }
}

/// Locks distinct primary keys and reads their existing rows. An invisible change by another
/// transaction is a `conflict`. The caller must always pass the result to [`write`], which keeps or
/// releases the locks.
pub(super) fn lock(core: &mut Core, table: &Arc<Table>, keys: &[RowKey]) -> LockedKeys {
    let mut locked = LockedKeys {
        rows: Vec::with_capacity(keys.len()),
        olds: vec![None; keys.len()],
        outcome: Ok(()),
    };
    locked.outcome = lock_keys(core, table, keys, &mut locked);
    invariant!(
        locked.outcome.is_err() || locked.rows.len() == keys.len(),
        "{} of {} keys are locked",
        locked.rows.len(),
        keys.len()
    );
    locked
}

/// Writes the new row of each locked key, or keeps the locks after an error.
pub(super) fn write(
    core: &mut Core,
    table: &Arc<Table>,
    mut locked: LockedKeys,
    decided: Result<Vec<NewRow>>,
) -> Result<()> {
    let keys = locked.olds.len();
    let (mut news, mut failed) = match decided {
        Ok(news) => {
            invariant!(
                news.len() == keys && locked.outcome.is_ok(),
                "{} rows are decided for {keys} keys, or not all keys are locked",
                news.len()
            );
            (news, Ok(()))
        }
        Err(error) => (vec![None; keys], Err(error)),
    };
    let (mut fresh, mut taken) = (Vec::new(), Vec::new());
    let mut released = false;
    for (at, row) in locked.rows {
        debug_assert!(
            row.node.is_locked_by(core.writes().owner()),
            "a key is written without its lock"
        );
        match (news[at].take(), locked.olds[at].take()) {
            (Some(new), Some(old)) => taken.push(Replacement { locked: row, old, new }),
            (Some(new), None) => fresh.push((row, new)),
            (None, _) if failed.is_ok() => released |= core.writes().release(table, &row),
            (None, _) => core.writes_mut().keep_lock(table, row),
        }
    }
    for (row, new) in fresh {
        match failed {
            Ok(()) => failed = insert_locked(core, table, row, &new),
            Err(_) => core.writes_mut().keep_lock(table, row),
        }
    }
    if failed.is_ok() {
        failed = check_and_move(core, table, &taken);
    }
    let mut deferred = Deferred::default();
    for Replacement { locked, new, .. } in taken {
        match failed {
            Ok(()) => failed = update_one(core, table, locked, new, &mut deferred),
            Err(_) => core.writes_mut().keep_lock(table, locked),
        }
    }
    let written = failed.and_then(|()| write_deferred(core, table, deferred));
    if released {
        core.writes().wake_waiters();
    }
    written
}

/// Locks keys in key order: neighbouring keys are found close together, and two batches with the
/// same keys cannot deadlock.
fn lock_keys(
    core: &mut Core,
    table: &Arc<Table>,
    keys: &[RowKey],
    locked: &mut LockedKeys,
) -> Result<()> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by(|a, b| keys[*a].encoded().cmp(keys[*b].encoded()));
    debug_assert!(
        order.windows(2).all(|pair| keys[pair[0]].encoded() != keys[pair[1]].encoded()),
        "a batch has a key twice"
    );
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    for at in order {
        let partition = table.partition_of(keys[at].encoded());
        let row = core.writes_mut().lock_node(table, partition, keys[at].encoded())?;
        locked.rows.push((at, row.clone()));
        debug_assert!(**row.node.key() == *keys[at].encoded(), "the lock of another key is taken");
        check_reserved(core, table, partition, keys[at].encoded())?;
        let (old, hides) = meet_key(core, table, partition, &keys[at], &row, &all)?;
        debug_assert!(
            old.as_ref().is_none_or(|old| old.len() == all.len()),
            "a row of table {} has not {} values",
            table.schema().name,
            all.len()
        );
        locked.olds[at] = old;
        if let Some((_, row)) = locked.rows.last_mut() {
            row.hides = hides;
        }
    }
    Ok(())
}

/// The existing row of a locked key, and its segment location in the snapshot.
fn meet_key(
    core: &Core,
    table: &Table,
    partition: &Partition,
    key: &RowKey,
    locked: &LockedRow,
    all: &[usize],
) -> Result<(OldRow, Option<SegmentRow>)> {
    debug_assert!(
        locked.node.is_locked_by(core.writes().owner()),
        "a key is looked up without its lock"
    );
    let (layout, node) = (table.layout(), &locked.node);
    let is_newer = locked.fresh && node.newest().is_some_and(|newest| newest.content > core.at());
    if is_newer && !plant::is(Bug::LostUpdate) {
        return Err(core.conflict(table));
    }
    match node.visible(core.at(), Some(core.writes().owner())) {
        Visible::Row(row) => Ok((Some(layout.rows().decode(&layout.upgrade(row)?)), None)),
        Visible::Deleted => Ok((None, None)),
        Visible::Elsewhere => match probe_key(core, table, partition, key)? {
            Some((state, row)) => Ok((
                Some(layout.segment_row(&state.segment, row, all)?),
                Some(SegmentRow { segment: state.id(), row }),
            )),
            None => Ok((None, None)),
        },
    }
}

/// The segment location of a key in the snapshot. If there is none, ensures that no other
/// transaction has inserted the key since.
fn probe_key(
    core: &Core,
    table: &Table,
    partition: &Partition,
    key: &RowKey,
) -> Result<Option<(Arc<SegmentState>, u32)>> {
    debug_assert!(
        std::ptr::eq(table.partition_of(key.encoded()), partition),
        "a key is looked up in partition {}",
        partition.number()
    );
    let at = core.at();
    if let Some(own) = core.own_row(table, partition, key.values())? {
        return Ok(Some(own));
    }
    loop {
        let list = partition.segments();
        let (mut left_out, mut is_newer) = (false, false);
        for candidate in list.of_key(table.layout(), key.encoded())?.newest_first() {
            let state = &list[candidate.place];
            let (is_seen, is_current) = (state.exists_at(at), state.is_current());
            left_out |= !is_current;
            if !is_seen && !is_current {
                continue;
            }
            let Some(row) = candidate.find(table.layout(), state, key.values())? else { continue };
            if is_seen && !state.is_deleted_at(row, at) {
                // A row that this transaction deletes stays in its segment until the commit.
                let is_own = core.writes().hidden().contains(table, state.id(), row);
                return Ok((!is_own).then(|| (state.clone(), row)));
            }
            let is_deleted = state.is_deleted(row);
            left_out |= is_deleted;
            is_newer |= is_current && !is_deleted;
        }
        if is_newer {
            return Err(core.conflict(table));
        }
        // A merge may have moved the row to a segment that was not in the list, and deleted it here.
        if !left_out || Arc::ptr_eq(&list, &partition.segments()) {
            return Ok(None);
        }
    }
}

/// Inserts a row under a locked, free key. Other unique values may still conflict.
fn insert_locked(
    core: &mut Core,
    table: &Arc<Table>,
    locked: LockedRow,
    values: &[Value],
) -> Result<()> {
    let row = match table.layout().encode_row(values) {
        Ok(row) => row,
        Err(error) => {
            core.writes_mut().keep_lock(table, locked);
            return Err(error);
        }
    };
    // Under another key the row would not be found.
    debug_assert!(
        table.row_key(values).is_ok_and(|key| *key.encoded() == **locked.node.key()),
        "a row is inserted under the key of another"
    );
    match write_row(core, table, locked, row) {
        Err(error) if error.reason() == Some(Reason::DuplicateKey) => {
            Err(explain_duplicate(core, table, values, error)?)
        }
        done => done,
    }
}

/// Checks new rows, and moves the rows they replace into memory.
fn check_and_move(core: &mut Core, table: &Arc<Table>, taken: &[Replacement]) -> Result<()> {
    let mut moves = Vec::new();
    for Replacement { locked, old, new } in taken {
        table.check_row(new)?;
        debug_assert!(old.len() == new.len(), "{} values replace {}", new.len(), old.len());
        let newest = locked.node.newest();
        let is_here = newest.is_some_and(|newest| matches!(newest.change, Change::Put(_)));
        let is_own = locked.hides.is_some_and(|row| core.own_segment(row.segment).is_some());
        if locked.node.pending().is_none() && !is_here && !is_own {
            moves.push(RowToMove { locked: locked.clone(), seen: Some(old.as_slice()) });
        }
    }
    move_all(core, table, &moves)
}
