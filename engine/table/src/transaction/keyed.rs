//! Writing rows under primary keys that may be taken: lock first, then look, once each for a whole
//! batch.
//!
//! While its key is locked a row stays as it is: no other transaction changes it, and tasks that move
//! rows between memory and segments skip locked keys. So what is found then still holds when the row
//! is written, and a key that is free needs no second look.

use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::row_key::RowKey;
use crate::table::version::Table;
use crate::transaction::changes::{Deferred, update_one, write_deferred};
use crate::transaction::core::Core;
use crate::transaction::hidden::SegmentRow;
use crate::transaction::locking::{RowToMove, move_all};
use crate::transaction::unique::{explain_duplicate, write_row};
use crate::transaction::write_set::LockedRow;
use nacre_rowstore::{Change, Visible};
use nacre_types::plant::{self, Bug};
use nacre_types::{Reason, Result, Value, invariant};
use std::sync::Arc;

/// The row of a key, if there is one.
pub(super) type OldRow = Option<Vec<Value>>;
/// The row that a key shall have; `None` leaves it as it is.
pub(super) type NewRow = Option<Vec<Value>>;

/// A locked key that has a row, and the row it shall have.
struct Replacement {
    locked: LockedRow,
    old: Vec<Value>,
    new: Vec<Value>,
}

/// The keys of a batch, locked one after the other.
pub(super) struct LockedKeys {
    /// With the key's position in the batch.
    rows: Vec<(usize, LockedRow)>,
    /// By position in the batch.
    olds: Vec<OldRow>,
    /// Whether all are locked.
    outcome: Result<()>,
}

impl LockedKeys {
    /// The rows that have the keys, by position in the batch; or why not all keys could be locked.
    pub fn olds(&self) -> Result<&[OldRow]> {
        self.outcome.as_ref().map(|()| self.olds.as_slice()).map_err(Clone::clone)
    }
}

/// Locks primary keys, no two the same, and reads the rows that have them. A change of another
/// transaction that this one does not see is a `conflict`. The caller passes what it gets to [`write`]
/// in any case: that keeps or releases the locks.
pub(super) fn lock(core: &mut Core, table: &Arc<Table>, keys: &[RowKey]) -> LockedKeys {
    let mut locked = LockedKeys {
        rows: Vec::with_capacity(keys.len()),
        olds: vec![None; keys.len()],
        outcome: Ok(()),
    };
    locked.outcome = lock_keys(core, table, keys, &mut locked);
    locked
}

/// Writes the row that each locked key shall have, or keeps the locks after an error.
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

/// Locks keys in their order: neighbours are found near each other, and two batches with the same keys
/// do not wait for each other.
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
        let (old, hides) = meet_key(core, table, partition, &keys[at], &row, &all)?;
        locked.olds[at] = old;
        if let Some((_, row)) = locked.rows.last_mut() {
            row.hides = hides;
        }
    }
    Ok(())
}

/// The row that has a locked key, and where in a segment the snapshot sees it.
fn meet_key(
    core: &Core,
    table: &Table,
    partition: &Partition,
    key: &RowKey,
    locked: &LockedRow,
    all: &[usize],
) -> Result<(OldRow, Option<SegmentRow>)> {
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

/// Where in segments the snapshot sees a key. If it does not, makes sure that no other transaction has
/// added the key since.
fn probe_key(
    core: &Core,
    table: &Table,
    partition: &Partition,
    key: &RowKey,
) -> Result<Option<(Arc<SegmentState>, u32)>> {
    let at = core.at();
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
            if is_seen
                && !state.is_deleted_at(row, at)
                && !core.writes().hidden().contains(table, state.id(), row)
            {
                return Ok(Some((state.clone(), row)));
            }
            is_newer |= is_current && !state.is_deleted(row);
        }
        if is_newer {
            return Err(core.conflict(table));
        }
        // A merge since the list was read may have moved the row to a segment not in the list.
        if !left_out || Arc::ptr_eq(&list, &partition.segments()) {
            return Ok(None);
        }
    }
}

/// Inserts a row under a locked key that is free. Other unique values may be taken.
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
    match write_row(core, table, locked, row) {
        Err(error) if error.reason() == Some(Reason::DuplicateKey) => {
            Err(explain_duplicate(core, table, values, error)?)
        }
        done => done,
    }
}

/// Checks new rows, and moves the rows they replace into memory.
fn check_and_move(core: &Core, table: &Arc<Table>, taken: &[Replacement]) -> Result<()> {
    let mut moves = Vec::new();
    for Replacement { locked, old, new } in taken {
        table.schema().check_row(new)?;
        let newest = locked.node.newest();
        let is_here = newest.is_some_and(|newest| matches!(newest.change, Change::Put(_)));
        if locked.node.pending().is_none() && !is_here {
            moves.push(RowToMove { locked: locked.clone(), seen: Some(old.as_slice()) });
        }
    }
    move_all(core, table, &moves)
}
