//! Locks rows for writing: rows in memory through their node, rows in segments after moving them to
//! memory.

use crate::layout::rows::key_of;
use crate::read::view::RowLocator;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::hidden::SegmentRow;
use crate::transaction::moves::{Move, MovedRow};
use crate::transaction::write_set::LockedRow;
use nacre_rowstore::{Change, Row};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Value, invariant, key};
use std::sync::Arc;

/// Merges that may invalidate one move before it gives up. A merge takes far longer than an
/// attempt.
const MOVE_ATTEMPTS: usize = 8;

/// A locked row that is still in a segment.
pub(super) struct RowToMove<'a> {
    pub locked: LockedRow,
    /// Its content, if the caller has already read it.
    pub seen: Option<&'a [Value]>,
}

/// Locks rows that a transaction has seen, and moves those in segments to the rowstore. `seen` is
/// their content if already read, or empty.
pub(super) fn lock_rows(
    core: &mut Core,
    table: &Arc<Table>,
    locators: &[RowLocator],
    seen: &[&[Value]],
) -> Result<Vec<LockedRow>> {
    debug_assert!(
        seen.is_empty() || seen.len() == locators.len(),
        "{} rows are seen of {}",
        seen.len(),
        locators.len()
    );
    let mut locked = Vec::with_capacity(locators.len());
    let outcome = lock_each(core, table, locators, seen, &mut locked);
    if let Err(error) = outcome {
        for row in locked {
            core.writes_mut().keep_lock(table, row);
        }
        return Err(error);
    }
    invariant!(
        locked.len() == locators.len(),
        "{} of {} rows are locked",
        locked.len(),
        locators.len()
    );
    Ok(locked)
}

fn lock_each(
    core: &mut Core,
    table: &Arc<Table>,
    locators: &[RowLocator],
    seen: &[&[Value]],
    locked: &mut Vec<LockedRow>,
) -> Result<()> {
    let mut moves = Vec::new();
    for (at, locator) in locators.iter().enumerate() {
        let seen = seen.get(at).copied();
        let row = lock_one(core, table, locator, seen)?;
        debug_assert!(row.node.is_locked_by(core.writes().owner()), "row {at} is not locked");
        locked.push(row.clone());
        if !row.fresh {
            continue;
        }
        match row.node.newest() {
            Some(newest) if newest.content > core.at() && !plant::is(Bug::LostUpdate) => {
                return Err(core.conflict(table));
            }
            Some(newest) if matches!(newest.change, Change::Put(_)) => {}
            Some(newest) if matches!(newest.change, Change::Delete) => {
                return Err(core.conflict(table));
            }
            // No other transaction finds the row where it is.
            _ if row.hides.is_some_and(|row| core.own_segment(row.segment).is_some()) => {}
            _ => moves.push(RowToMove { locked: row, seen }),
        }
    }
    move_all(core, table, &moves)
}

/// Locks the node of one row.
fn lock_one(
    core: &mut Core,
    table: &Table,
    locator: &RowLocator,
    seen: Option<&[Value]>,
) -> Result<LockedRow> {
    let layout = table.layout();
    debug_assert!(
        seen.is_none_or(|seen| seen.len() == table.schema().columns.len()),
        "a row of {:?} values was seen",
        seen.map(<[Value]>::len)
    );
    match locator {
        RowLocator::Memory { partition, key } => {
            debug_assert!(
                table.partition_of(key).number() == *partition,
                "a row was seen in partition {partition}, which does not have it"
            );
            core.writes_mut().lock_node(table, table.partition(*partition), key)
        }
        RowLocator::Segment { partition, segment, row } => {
            let partition = table.partition(*partition);
            let listed = || partition.segment(*segment);
            let state = core.own_segment(*segment).or_else(listed);
            let state = state.ok_or_else(|| core.conflict(table))?;
            let key = match (seen, layout.key_columns()) {
                (Some(seen), Some(columns)) => key_of(columns, seen),
                _ => layout.key_of_segment_row(&state.segment, *row)?,
            };
            let key = layout.encode_key(&key)?;
            let hides = Some(SegmentRow { segment: *segment, row: *row });
            Ok(LockedRow { hides, ..core.writes_mut().lock_node(table, partition, &key)? })
        }
    }
}

/// Moves rows from segments to the rowstore, following them through concurrent merges.
pub(super) fn move_all(core: &mut Core, table: &Arc<Table>, rows: &[RowToMove<'_>]) -> Result<()> {
    debug_assert!(
        rows.iter().all(|row| row.locked.node.pending().is_none()),
        "a row that this transaction has changed is to be moved"
    );
    for _ in 0..MOVE_ATTEMPTS {
        if move_rows(core, table, rows)? {
            return Ok(());
        }
    }
    Err(core.conflict(table))
}

/// Whether a row has a key; any has in a table without a primary key.
fn has_key(table: &Table, key: &[u8], row: &Row) -> bool {
    let values = || table.layout().rows().decode(row);
    let encode = |columns| table.layout().encode_key(&key_of(columns, &values()));
    table.key_columns().is_none_or(|columns| encode(columns).is_ok_and(|own| own == *key))
}

/// Fails with the blocker if another transaction has claimed a row of a segment.
fn check_claims(core: &mut Core, table: &Table, state: &SegmentState, row: u32) -> Result<()> {
    let Some(blocker) = state.claims().blocker(core.writes().owner(), row) else { return Ok(()) };
    let name = &table.schema().name;
    let message = format!("a row of table {name} is locked by another transaction");
    Err(core.writes_mut().blocked_by(blocker, message))
}

/// The error for a row that no segment has any more: a conflict, once its deletion is durable.
pub(super) fn gone(
    core: &mut Core,
    table: &Table,
    partition: &Partition,
    key: &[Value],
) -> Result<Error> {
    check_deleted(core, table, partition, key)?;
    Ok(core.conflict(table))
}

/// Fails with the blocker while the deletion of a row with a key is not durable: a deleted row stays
/// claimed until then, so this transaction waits for the one that deletes it, like for any lock.
pub(super) fn check_deleted(
    core: &mut Core,
    table: &Table,
    partition: &Partition,
    key: &[Value],
) -> Result<()> {
    debug_assert!(
        std::ptr::eq(table.partition(partition.number()), partition),
        "a row of another table is looked up"
    );
    let (list, layout) = (partition.segments(), table.layout());
    for candidate in list.of_key(layout, &layout.encode_key(key)?)?.newest_first() {
        let state = &list[candidate.place];
        // The row was deleted before this looks for its claim: one that has none by now is deleted
        // for all.
        if state.claims().is_any()
            && let Some(row) = candidate.find(layout, state, key)?
        {
            check_claims(core, table, state, row)?;
        }
    }
    Ok(())
}

/// Moves rows from segments to the rowstore. This transaction has locked their nodes, so no other
/// moves them and flushes skip them. Returns `false` if a merge replaced one of the segments
/// meanwhile; some rows may then have been moved.
fn move_rows(core: &mut Core, table: &Arc<Table>, rows: &[RowToMove<'_>]) -> Result<bool> {
    // A move commits on its own, for all: not as a version that only this transaction knows.
    let found = core.writes().catalog().found(table.id());
    let found = found.filter(|found| found.shares_partitions(table) && !Arc::ptr_eq(found, table));
    let is_altered = found.is_some() && !plant::is(Bug::DdlMove);
    let table = found.filter(|_| is_altered).unwrap_or(table);
    let table = &core.manager().catalog().newest_for(table)?;
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    let layout = table.layout();
    let manager = core.shared_manager();
    let moves = manager.moves();
    let mut one = Move::new(table);
    for RowToMove { locked: LockedRow { partition, node, hides: hint, .. }, seen } in rows {
        debug_assert!(node.is_locked_by(core.writes().owner()), "a row is moved without its lock");
        if node.newest().is_some_and(|newest| matches!(newest.change, Change::Put(_))) {
            // An earlier attempt moved it.
            continue;
        }
        let number = *partition;
        let partition = table.partition(number);
        let hinted = hint.and_then(|SegmentRow { segment, row }| {
            let state = partition.segment(segment);
            state.filter(|s| s.is_current() && !s.is_deleted(row)).map(|s| (s, row))
        });
        let (state, row, seen) = match hinted {
            // What was seen has the columns of the transaction's version.
            Some((state, row)) => (state, row, seen.filter(|_| !is_altered)),
            None => {
                let key = key::decode(node.key(), &layout.key_types())?;
                let Some((state, row)) = partition.find_newest(layout, &key)? else {
                    return Err(gone(core, table, partition, &key)?);
                };
                // The row is no longer where it was seen. Moves, flushes and merges do not change
                // its content, but a bulk load may have replaced it.
                if state.content() > core.at() {
                    return Err(gone(core, table, partition, &key)?);
                }
                (state, row, None)
            }
        };
        check_claims(core, table, &state, row)?;
        let copy: Row = match seen {
            // Rows of segments never change.
            Some(values) => layout.rows().encode(values)?.into(),
            None => layout.rows().encode(&layout.segment_row(&state.segment, row, &all)?)?.into(),
        };
        debug_assert!(
            has_key(table, node.key(), &copy),
            "a row of table {} is moved under another key",
            table.schema().name
        );
        if !plant::is(Bug::IndexEntry) {
            table.enter(number, node.key(), &copy)?;
        }
        one.add(MovedRow { partition: number, state, row, node: node.clone(), copy });
        if moves.is_full(&one) {
            // Moves change no content, so they may be split.
            let full = std::mem::replace(&mut one, Move::new(table));
            if !moves.commit(full)? {
                return Ok(false);
            }
        }
    }
    if one.is_empty() { Ok(true) } else { moves.commit(one) }
}
