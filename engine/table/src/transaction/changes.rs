//! Inserting, replacing and deleting rows.

use crate::layout::rows::key_of;
use crate::layout::table_layout::TableLayout;
use crate::read::view::RowLocator;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::reservations::ReservedKeys;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::locking::{check_deleted, gone, lock_rows};
use crate::transaction::unique::{self, changes_unique, explain_duplicate, write_row};
use crate::transaction::write_set::LockedRow;
use nacre_column::Batch;
use nacre_rowstore::{Change, Row};
use nacre_types::plant::{self, Bug};
use nacre_types::{Reason, Result, Value, invariant};
use std::sync::Arc;

/// Inserts rows given in table order. Fails on the first existing key; the caller then rolls back
/// to its savepoint.
pub(super) fn insert(core: &mut Core, table: &Arc<Table>, batch: &Batch) -> Result<u64> {
    let compact;
    let batch = if batch.selection.is_some() {
        compact = batch.clone().compact();
        &compact
    } else {
        batch
    };
    core.check_writes(table)?;
    table.check_batch(batch)?;
    for row in 0..batch.rows {
        insert_values(core, table, &batch.row(row))?;
    }
    Ok(batch.rows as u64)
}

/// Inserts one row given in table order.
pub(super) fn insert_row(core: &mut Core, table: &Arc<Table>, values: &[Value]) -> Result<()> {
    core.check_writes(table)?;
    table.check_row(values)?;
    insert_values(core, table, values)
}

/// Inserts a row whose key this transaction does not see. If the key or a unique value is taken,
/// another transaction was faster: a `conflict`, which a retry resolves.
pub(super) fn insert_absent(core: &mut Core, table: &Arc<Table>, values: &[Value]) -> Result<()> {
    match insert_row(core, table, values) {
        Err(error) if error.reason() == Some(Reason::DuplicateKey) => {
            Err(explain_duplicate(core, table, values, error)?)
        }
        done => done,
    }
}

fn insert_values(core: &mut Core, table: &Arc<Table>, values: &[Value]) -> Result<()> {
    debug_assert!(
        values.len() == table.schema().columns.len(),
        "a row of {} values is inserted",
        values.len()
    );
    let encoded = table.layout().encode_row(values)?;
    match table.key_columns() {
        None => insert_numbered(core, table, values, encoded),
        Some(columns) => insert_unique(core, table, &key_of(columns, values), encoded),
    }
}

/// Inserts a row of a table without a primary key under a new number.
fn insert_numbered(core: &mut Core, table: &Arc<Table>, values: &[Value], row: Row) -> Result<()> {
    let partition = table.partition_for(values)?;
    for number in partition.reserve_row_numbers(1) {
        let key = TableLayout::encode_row_number(number);
        debug_assert!(
            table.partition_of(&key).number() == partition.number(),
            "row number {number} is not of partition {}",
            partition.number()
        );
        let locked = core.writes_mut().lock_node(table, partition, &key)?;
        // It would take the place of another row.
        invariant!(
            locked.fresh && locked.node.newest().is_none(),
            "row number {number} of table {} is given out twice",
            table.schema().name
        );
        write_row(core, table, locked, row.clone())?;
    }
    Ok(())
}

fn insert_unique(core: &mut Core, table: &Arc<Table>, key: &[Value], row: Row) -> Result<()> {
    let encoded = table.layout().encode_key(key)?;
    let partition = table.partition_of(&encoded);
    let locked = core.writes_mut().lock_node(table, partition, &encoded)?;
    debug_assert!(
        !locked.fresh || locked.node.pending().is_none(),
        "a row that was not locked has a change"
    );
    if let Err(error) = check_reserved(core, table, partition, &encoded) {
        core.writes_mut().keep_lock(table, locked);
        return Err(error);
    }
    let probed = match (locked.node.pending(), locked.node.newest()) {
        (Some(change), _) => Ok(matches!(change, Change::Put(_))),
        (None, Some(newest)) => match newest.change {
            Change::Put(_) => Ok(true),
            Change::Delete if newest.content > core.at() => Err(core.conflict(table)),
            Change::Delete => Ok(false),
            Change::Flushed => is_in_segments(core, table, partition, key),
        },
        (None, None) => is_in_segments(core, table, partition, key),
    };
    let refused = match probed {
        // No row has the key now, but a load or a deletion of many rows may have deleted one that
        // the snapshot has.
        Ok(false) if table.cleared() > core.at() => match locate(core, table, key) {
            // Nor has the snapshot, but the deletion may not be durable.
            Ok(None) => match check_deleted(core, table, partition, key) {
                Ok(()) => return write_row(core, table, locked, row),
                Err(blocked) => blocked,
            },
            Ok(Some(_)) => gone(core, table, partition, key).unwrap_or_else(|blocked| blocked),
            Err(error) => error,
        },
        Ok(false) => return write_row(core, table, locked, row),
        Ok(true) => table.layout().duplicate(key),
        Err(error) => error,
    };
    core.writes_mut().keep_lock(table, locked);
    Err(refused)
}

/// Fails with the blocker if another transaction has reserved a key. The key must be locked.
pub(super) fn check_reserved(
    core: &mut Core,
    table: &Table,
    partition: &Partition,
    key: &[u8],
) -> Result<()> {
    let reservations = table.reservations();
    let has = |keys: &dyn ReservedKeys| keys.has_key(partition.number(), key);
    match reservations.blocker_of(core.writes().owner(), has)? {
        Some(blocker) => {
            let name = &table.schema().name;
            let message = format!("a key of table {name} is locked by another transaction");
            Err(core.writes_mut().blocked_by(blocker, message))
        }
        None => Ok(()),
    }
}

/// Whether a segment currently holds the row of a key that this transaction has locked.
fn is_in_segments(
    core: &mut Core,
    table: &Table,
    partition: &Partition,
    key: &[Value],
) -> Result<bool> {
    debug_assert!(
        key.len() == table.layout().key_types().len(),
        "a key of {} values is looked up",
        key.len()
    );
    if core.own_row(table, partition, key)?.is_some() {
        return Ok(true);
    }
    let mut before: Option<Arc<SegmentState>> = None;
    loop {
        let Some((state, row)) = partition.find_newest(table.layout(), key)? else {
            return Ok(false);
        };
        if state.claims().is_own(core.writes().owner(), row) {
            return Ok(false);
        }
        if let Some(blocker) = state.claims().blocker(core.writes().owner(), row) {
            let name = &table.schema().name;
            let message = format!("a row of table {name} is locked by another transaction");
            return Err(core.writes_mut().blocked_by(blocker, message));
        }
        let again = before.is_some_and(|before| Arc::ptr_eq(&before, &state));
        let is_settled = again || state.created() <= core.commits().snapshots().visible();
        // A commit that fails takes the segment back; another one has its number then.
        if is_settled && partition.lists(&state) {
            return Ok(true);
        }
        // The segment's commit is still in progress and may fail, or exclude the row.
        core.commits().settled();
        before = Some(state);
    }
}

/// Replaces one row by another with the same key, given in table order.
pub(super) fn update_row(
    core: &mut Core,
    table: &Arc<Table>,
    locator: &RowLocator,
    values: &[Value],
) -> Result<()> {
    core.check_writes(table)?;
    table.check_row(values)?;
    let row = table.layout().encode_row(values)?;
    debug_assert!(
        matches!(locator, RowLocator::Segment { .. })
            || has_key_of(table, locator, values).unwrap_or(false),
        "a row is replaced by one with another key"
    );
    lock_rows(core, table, std::slice::from_ref(locator), &[])?
        .into_iter()
        .try_for_each(|locked| write_row(core, table, locked, row.clone()))
}

/// Whether values have the key that a row in memory has; any do in a table without a primary key.
fn has_key_of(table: &Table, locator: &RowLocator, values: &[Value]) -> Result<bool> {
    match (table.key_columns(), locator) {
        (Some(columns), RowLocator::Memory { key, .. }) => {
            Ok(table.layout().encode_key(&key_of(columns, values))? == **key)
        }
        _ => Ok(true),
    }
}

/// Replaces rows. `new_rows` holds whole rows in table order, one per locator. A row's key and
/// partition may change.
pub(super) fn update(
    core: &mut Core,
    table: &Arc<Table>,
    locators: &[RowLocator],
    new_rows: &Batch,
) -> Result<u64> {
    debug_assert!(
        new_rows.selection.is_none() && new_rows.rows == locators.len(),
        "{} new rows for {} locators",
        new_rows.rows,
        locators.len()
    );
    core.check_writes(table)?;
    table.check_batch(new_rows)?;
    let locked = lock_rows(core, table, locators, &[])?;
    let mut new_rows = (0..new_rows.rows).map(|row| new_rows.row(row));
    update_locked(core, table, locked, &mut new_rows)
}

/// Like [`update`], for rows whose current content the caller has already read in this transaction,
/// so that moving them need not read it again.
pub(super) fn update_seen(
    core: &mut Core,
    table: &Arc<Table>,
    locators: &[RowLocator],
    seen: &[&[Value]],
    new_rows: Vec<Vec<Value>>,
) -> Result<u64> {
    debug_assert!(
        seen.len() == locators.len() && new_rows.len() == locators.len(),
        "{} rows seen and {} new for {} locators",
        seen.len(),
        new_rows.len(),
        locators.len()
    );
    core.check_writes(table)?;
    new_rows.iter().try_for_each(|row| table.check_row(row))?;
    let locked = lock_rows(core, table, locators, seen)?;
    update_locked(core, table, locked, &mut new_rows.into_iter())
}

/// Writes the new values of locked rows.
fn update_locked(
    core: &mut Core,
    table: &Arc<Table>,
    rows: Vec<LockedRow>,
    new_rows: &mut dyn Iterator<Item = Vec<Value>>,
) -> Result<u64> {
    let count = rows.len() as u64;
    let mut deferred = Deferred::default();
    let mut failed = Ok(());
    for (locked, values) in rows.into_iter().zip(&mut *new_rows) {
        match failed {
            Ok(()) => failed = update_one(core, table, locked, values, &mut deferred),
            // The lock is released with the transaction's other locks.
            Err(_) => core.writes_mut().keep_lock(table, locked),
        }
    }
    failed?;
    invariant!(new_rows.next().is_none(), "{count} rows are locked, and more are to be written");
    write_deferred(core, table, deferred)?;
    Ok(count)
}

/// Updated rows whose old version is removed first, and whose new version is written after all old
/// ones are gone, so that `set id = id + 1` works.
#[derive(Default)]
pub(super) struct Deferred {
    /// Rows with a new key: the key values and the row.
    rekeyed: Vec<(Vec<Value>, Row)>,
    /// Rows without a primary key that move to another partition: values and row.
    renumbered: Vec<(Vec<Value>, Row)>,
    /// Rows with changed unique values.
    staying: Vec<(LockedRow, Row)>,
}

/// Writes the deferred rows.
pub(super) fn write_deferred(
    core: &mut Core,
    table: &Arc<Table>,
    deferred: Deferred,
) -> Result<()> {
    for (key, row) in deferred.rekeyed {
        insert_unique(core, table, &key, row)?;
    }
    for (values, row) in deferred.renumbered {
        insert_numbered(core, table, &values, row)?;
    }
    for (locked, row) in deferred.staying {
        write_row(core, table, locked, row)?;
    }
    Ok(())
}

/// Writes a locked row's new values, or removes the old ones and defers the write. On an error the
/// lock is kept.
pub(super) fn update_one(
    core: &mut Core,
    table: &Arc<Table>,
    locked: LockedRow,
    values: Vec<Value>,
    deferred: &mut Deferred,
) -> Result<()> {
    debug_assert!(
        locked.node.is_locked_by(core.writes().owner()),
        "a row is updated without its lock"
    );
    match plan_update(table, &locked, values, deferred) {
        Ok(Some(row)) => write_row(core, table, locked, row),
        Ok(None) => {
            core.writes_mut().write(table, locked, Change::Delete);
            Ok(())
        }
        Err(error) => {
            core.writes_mut().keep_lock(table, locked);
            Err(error)
        }
    }
}

/// The row to write immediately; `None` if it is deferred.
fn plan_update(
    table: &Table,
    locked: &LockedRow,
    values: Vec<Value>,
    deferred: &mut Deferred,
) -> Result<Option<Row>> {
    debug_assert!(
        values.len() == table.schema().columns.len(),
        "a row of {} values is written",
        values.len()
    );
    let layout = table.layout();
    let row = layout.encode_row(&values)?;
    if let Some(columns) = layout.key_columns() {
        let key = key_of(columns, &values);
        if layout.encode_key(&key)? != **locked.node.key() {
            deferred.rekeyed.push((key, row));
            return Ok(None);
        }
    } else if !table.may_stay(locked.partition, &values)? {
        deferred.renumbered.push((values, row));
        return Ok(None);
    }
    if changes_unique(table, &locked.node, &row)? {
        let again = LockedRow { fresh: false, hides: None, ..locked.clone() };
        deferred.staying.push((again, row));
        return Ok(None);
    }
    Ok(Some(row))
}

/// Deletes rows.
pub(super) fn delete(core: &mut Core, table: &Arc<Table>, locators: &[RowLocator]) -> Result<u64> {
    core.check_writes(table)?;
    for locked in lock_rows(core, table, locators, &[])? {
        core.writes_mut().write(table, locked, Change::Delete);
    }
    Ok(locators.len() as u64)
}

/// The visible rows that have the same primary key, or one of the same unique values, as a row to be
/// written, each once.
pub(super) fn conflicting(core: &Core, table: &Table, row: &[Value]) -> Result<Vec<RowLocator>> {
    debug_assert!(
        row.len() == table.schema().columns.len(),
        "a row of {} values is to be written",
        row.len()
    );
    let mut found: Vec<RowLocator> = Vec::new();
    if let Some(columns) = table.key_columns() {
        let key = key_of(columns, row);
        let encoded = table.layout().encode_wanted_key(&key)?;
        let same = core.find(table, &key, &encoded)?;
        found.extend(same.map(|(partition, same)| RowLocator::of(partition, &same)));
    }
    for index in table.unique_indexes() {
        let values = table.layout().key_values(index.columns(), row)?;
        if let Some((locator, _)) = unique::locate(core, table, index.id(), &values)?
            && !found.contains(&locator)
        {
            found.push(locator);
        }
    }
    Ok(found)
}

/// Locks rows until the transaction ends, without changing them. Moves rows in segments as for an
/// update, so that every writer finds the lock.
pub(super) fn lock(core: &mut Core, table: &Arc<Table>, locators: &[RowLocator]) -> Result<()> {
    core.check_writes(table)?;
    if plant::is(Bug::WriteSkewAllowed) {
        return Ok(());
    }
    for locked in lock_rows(core, table, locators, &[])? {
        core.writes_mut().keep_lock(table, locked);
    }
    Ok(())
}

/// The location and values of the visible row with a key.
pub(super) fn locate(core: &Core, table: &Table, key: &[Value]) -> Result<Option<unique::Located>> {
    let encoded = table.layout().encode_wanted_key(key)?;
    let Some((partition, found)) = core.find(table, key, &encoded)? else { return Ok(None) };
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    let values = found.values(table, &all)?;
    debug_assert!(
        table.key_columns().is_none_or(|columns| key_of(columns, &values).len() == key.len()),
        "a row was found by {} values of its key",
        key.len()
    );
    Ok(Some((RowLocator::of(partition, &found), values)))
}
