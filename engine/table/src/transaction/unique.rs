//! Writes rows of indexed tables: maintains index entries and enforces unique values.
//!
//! Assigning a unique value locks the value until the transaction ends, and then checks for another
//! row that currently has it. Removing a unique value locks only the row: a transaction that wants
//! the value finds the row and waits for it. Either way there is a lock holder to wait for.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::rows_of_candidate;
use crate::index::range::{KeyRange, successor};
use crate::read::reader::Reader;
use crate::read::view::RowLocator;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::reservations::ReservedKeys;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::locking::gone;
use crate::transaction::write_set::LockedRow;
use nacre_rowstore::{Blocker, Change, Node, Row, Visible};
use nacre_types::hash::hash_bytes;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, IndexId, Reason, Result, Value, key, row};
use std::sync::Arc;

/// The row being written, identified by partition and key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OwnRow<'a> {
    partition: u32,
    key: &'a [u8],
}

/// The location of a visible row, and its values.
pub(super) type Located = (RowLocator, Vec<Value>);

/// A unique value that a transaction wants to assign.
#[derive(Clone, Copy)]
struct WantedValue<'a> {
    table: &'a Table,
    index: &'a Index,
    key: &'a [u8],
    values: &'a [Value],
    /// The row that the value is for; it does not conflict with itself.
    own: Option<OwnRow<'a>>,
}

/// Writes a locked row's new content. On an error the lock is kept and released with the statement.
pub(super) fn write_row(
    core: &mut Core,
    table: &Arc<Table>,
    locked: LockedRow,
    row: Row,
) -> Result<()> {
    debug_assert!(
        row::version(&row) == Some(table.schema().version),
        "a row is written that is not of version {} of its schema",
        table.schema().version
    );
    if !table.indexes().is_empty()
        && let Err(error) = index_row(core, table, &locked, &row)
    {
        // Some of its index entries may have been added.
        table.leave(locked.partition, &locked.node, &row);
        core.writes_mut().keep_lock(table, locked);
        return Err(error);
    }
    core.writes_mut().write(table, locked, Change::Put(row));
    Ok(())
}

/// Claims a row's unique values and adds its index entries.
fn index_row(core: &mut Core, table: &Arc<Table>, locked: &LockedRow, row: &Row) -> Result<()> {
    debug_assert!(
        locked.node.is_locked_by(core.writes().owner()),
        "a row is indexed without its lock"
    );
    let own = OwnRow { partition: locked.partition, key: locked.node.key() };
    for (at, index) in table.indexes().iter().enumerate() {
        let index_key = index.key_of(table.layout(), row)?;
        if !index.may_repeat(&index_key) && !has_now(table, index, &locked.node, &index_key)? {
            claim(core, table, at, &index_key, own)?;
        }
        index.entries(locked.partition).insert(&index_key, locked.node.key())?;
    }
    Ok(())
}

/// Whether the new content changes the row's unique values, so that old values must be removed
/// before new ones are added.
pub(super) fn changes_unique(table: &Table, node: &Node, row: &Row) -> Result<bool> {
    debug_assert!(node.is_locked(), "a row is compared that others may change");
    for index in table.unique_indexes() {
        if !has_now(table, index, node, &index.key_of(table.layout(), row)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a row locked by this transaction already has an index key.
fn has_now(table: &Table, index: &Index, node: &Node, index_key: &[u8]) -> Result<bool> {
    debug_assert!(node.is_locked(), "others may change a row that is asked for its value");
    match node.pending().or_else(|| node.newest().map(|version| version.change)) {
        Some(Change::Put(row)) => table.has_key(index, &row, index_key),
        _ => Ok(false),
    }
}

/// Locks a unique value and ensures that no other row has it.
fn claim(
    core: &mut Core,
    table: &Arc<Table>,
    at: usize,
    index_key: &[u8],
    own: OwnRow<'_>,
) -> Result<()> {
    let index = &table.indexes()[at];
    core.writes_mut().lock_claim(table, own.partition, at, index_key)?;
    let values = key::decode(index_key, index.types())?;
    debug_assert!(
        !values.iter().any(Value::is_null),
        "nulls are claimed as a value of index {}",
        index.name()
    );
    let wanted = WantedValue { table, index, key: index_key, values: &values, own: Some(own) };
    for partition in table.partitions() {
        probe(core, partition, wanted)?;
    }
    let has = |keys: &dyn ReservedKeys| keys.has_value(index, index_key);
    if let Some(holder) = table.reservations().blocker_of(core.writes().owner(), has)? {
        return Err(blocked_by(core, wanted, holder));
    }
    if core.writes().own_segments().is_some() && find_own(core, wanted)? {
        return Err(duplicate(wanted));
    }
    // No row has the value now, but if one has it in this snapshot, the transaction would see two.
    if table.changed() > core.at()
        && let Some((locator, _)) = find(core, wanted)?
    {
        return Err(taken_away(core, table, &locator)?);
    }
    Ok(())
}

/// The error for a unique value that a row has lost since the snapshot. If the commit that took it
/// away is not durable yet, this transaction waits for that one, like for any lock.
fn taken_away(core: &mut Core, table: &Table, locator: &RowLocator) -> Result<Error> {
    debug_assert!(table.changed() > core.at(), "a row has lost a value, and nothing has changed");
    let (partition, key) = match locator {
        RowLocator::Memory { partition, key } => {
            (table.partition(*partition), key::decode(key, &table.layout().key_types())?)
        }
        RowLocator::Segment { partition, segment, row } => {
            let partition = table.partition(*partition);
            let state = partition.segment(*segment).ok_or_else(|| core.conflict(table))?;
            (partition, table.layout().key_of_segment_row(&state.segment, *row)?)
        }
    };
    let node = partition.rowstore().get(&table.layout().encode_key(&key)?);
    let visible = core.commits().snapshots().visible();
    let is_undurable = |node: &Arc<Node>| node.newest().is_some_and(|v| v.commit > visible);
    if let Some(holder) = node.filter(is_undurable).and_then(|node| node.blocker())
        && !Arc::ptr_eq(holder.owner(), core.writes().owner())
    {
        let name = &table.schema().name;
        let message = format!("a row of table {name} is locked by another transaction");
        return Err(core.writes_mut().blocked_by(holder, message));
    }
    gone(core, table, partition, &key)
}

fn blocked_by(core: &mut Core, wanted: WantedValue<'_>, holder: Blocker) -> Error {
    let (table, index) = (&wanted.table.schema().name, wanted.index.name());
    let message =
        format!("a value of index {index} of table {table} is locked by another transaction");
    core.writes_mut().blocked_by(holder, message)
}

fn duplicate(wanted: WantedValue<'_>) -> Error {
    wanted.index.duplicate(&wanted.table.schema().name, wanted.key)
}

/// Fails if a row of a partition has a unique value, or may have it because another transaction's
/// change is not committed. Rows can move between memory and segments concurrently, so this
/// searches memory first, then segments, and follows each row that has left one of them.
fn probe(core: &mut Core, partition: &Partition, wanted: WantedValue<'_>) -> Result<()> {
    let WantedValue { table, index, key, values, own } = wanted;
    debug_assert!(
        index.is_unique() && !index.may_repeat(key),
        "a value of index {} may occur twice",
        index.name()
    );
    let mut row_keys: Vec<Vec<u8>> = Vec::new();
    let end = successor(key.to_vec());
    each_entry(index, partition.number(), key, end.as_deref(), |entry| {
        row_keys.push(entry.row_key().to_vec());
        Ok(())
    })?;
    for row_key in &row_keys {
        if own == Some(OwnRow { partition: partition.number(), key: row_key }) {
            continue;
        }
        if let Some(node) = partition.rowstore().get(row_key) {
            meet(core, wanted, &node)?;
        }
    }
    if plant::is(Bug::UniqueSkip) {
        return Ok(());
    }
    let range = KeyRange::equal(values.to_vec());
    let hash = Some(hash_bytes(key));
    loop {
        let list = partition.segments();
        for candidate in list.of_index(index).candidates(key)?.newest_first() {
            let state = &list[candidate.place];
            if !state.is_current() {
                continue;
            }
            for row in rows_of_candidate(table.layout(), index, state, &range, hash, candidate)? {
                meet_in_segment(core, partition, wanted, state, row)?;
            }
        }
        // Rows merged, or moved and flushed, since the list was read may be in segments that the
        // list does not have.
        if Arc::ptr_eq(&list, &partition.segments()) {
            return Ok(());
        }
    }
}

/// Fails if a row in memory has a unique value.
fn meet(core: &mut Core, wanted: WantedValue<'_>, node: &Node) -> Result<()> {
    let own = node.is_locked_by(core.writes().owner());
    let change = if own { node.pending() } else { None };
    let Some(Change::Put(row)) = change.or_else(|| node.newest().map(|version| version.change))
    else {
        return Ok(());
    };
    if !wanted.table.has_key(wanted.index, &row, wanted.key)? {
        return Ok(());
    }
    match node.blocker().filter(|_| !own) {
        Some(holder) => Err(blocked_by(core, wanted, holder)),
        None => Err(duplicate(wanted)),
    }
}

/// Fails if a segment row with the unique value exists, or has moved to memory and still has the
/// value.
fn meet_in_segment(
    core: &mut Core,
    partition: &Partition,
    wanted: WantedValue<'_>,
    state: &Arc<SegmentState>,
    row: u32,
) -> Result<()> {
    debug_assert!((row as usize) < state.segment.rows(), "row {row} of a segment");
    let layout = wanted.table.layout();
    let row_key = layout.encode_key(&layout.key_of_segment_row(&state.segment, row)?)?;
    if wanted.own == Some(OwnRow { partition: partition.number(), key: &row_key }) {
        return Ok(());
    }
    let owner = core.writes().owner().clone();
    // While a flush or load commits, its listed segments contain rows that are still in memory or
    // no longer exist.
    let is_here = |node: &Arc<Node>| {
        node.is_locked_by(&owner) && node.pending().is_some()
            || matches!(
                node.newest().map(|version| version.change),
                Some(Change::Put(_) | Change::Delete)
            )
    };
    let mut settled = state.created() <= core.commits().snapshots().visible();
    loop {
        let is_deleted = state.is_deleted(row);
        let is_leaving = state.claims().is_own(&owner, row);
        match partition.rowstore().get(&row_key) {
            Some(node) if is_deleted || is_here(&node) => return meet(core, wanted, &node),
            None if is_deleted => return Ok(()),
            _ if is_leaving => return Ok(()),
            node => {
                let blocker = node.and_then(|node| node.blocker());
                let other = blocker.filter(|blocker| !Arc::ptr_eq(blocker.owner(), &owner));
                if let Some(holder) = other {
                    return Err(blocked_by(core, wanted, holder));
                }
            }
        }
        if let Some(holder) = state.claims().blocker(&owner, row) {
            return Err(blocked_by(core, wanted, holder));
        }
        // The commit that listed it may fail, or exclude the row; another one has its number then.
        if !partition.lists(state) {
            return Ok(());
        }
        if settled {
            return Err(duplicate(wanted));
        }
        core.commits().settled();
        settled = true;
    }
}

/// The location and values of the visible row with these values in all columns of an index; the
/// first one if the index is not unique. Nulls never match.
pub(super) fn locate(
    core: &Core,
    table: &Table,
    index: IndexId,
    values: &[Value],
) -> Result<Option<Located>> {
    let index = table.index(index)?;
    if values.len() != index.types().len() {
        return Err(Error::type_error("key has the wrong number of values"));
    }
    if values.iter().any(Value::is_null) {
        return Ok(None);
    }
    let key = index.encode(values)?;
    find(core, WantedValue { table, index, key: &key, values, own: None })
}

/// The visible row with a value, other than the row being written.
fn find(core: &Core, wanted: WantedValue<'_>) -> Result<Option<Located>> {
    debug_assert!(
        wanted.values.len() == wanted.index.types().len(),
        "{} values of index {} are looked up",
        wanted.values.len(),
        wanted.index.name()
    );
    core.read(wanted.table, |reader| {
        for partition in wanted.table.partitions() {
            if let Some(found) = find_in_memory(partition, wanted, reader)? {
                return Ok(Some(found));
            }
            if let Some(found) = find_in_segments(partition, wanted, reader)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    })
}

/// Whether a segment that the transaction has written has a row with a value, other than the row
/// being written.
fn find_own(core: &Core, wanted: WantedValue<'_>) -> Result<bool> {
    core.read(wanted.table, |reader| {
        for partition in wanted.table.partitions() {
            if let Some((RowLocator::Segment { segment, .. }, _)) =
                find_in_segments(partition, wanted, reader)?
                && core.own_segment(segment).is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn find_in_memory(
    partition: &Partition,
    wanted: WantedValue<'_>,
    reader: &Reader<'_>,
) -> Result<Option<Located>> {
    let WantedValue { table, index, key, own, .. } = wanted;
    let number = partition.number();
    let end = successor(key.to_vec());
    let mut found = None;
    each_entry(index, number, key, end.as_deref(), |entry| {
        let row = OwnRow { partition: number, key: entry.row_key() };
        if found.is_some() || own == Some(row) {
            return Ok(());
        }
        let Some(node) = partition.rowstore().get(entry.row_key()) else { return Ok(()) };
        if let Visible::Row(row) = reader.visible(&node)
            && table.has_key(index, &row, key)?
        {
            let locator = RowLocator::Memory { partition: number, key: node.key().clone() };
            let layout = table.layout();
            found = Some((locator, layout.rows().decode(&layout.upgrade(row)?)));
        }
        Ok(())
    })?;
    Ok(found)
}

fn find_in_segments(
    partition: &Partition,
    wanted: WantedValue<'_>,
    reader: &Reader<'_>,
) -> Result<Option<Located>> {
    let WantedValue { table, index, key, values, own } = wanted;
    let (layout, number) = (table.layout(), partition.number());
    let range = KeyRange::equal(values.to_vec());
    let hash = Some(hash_bytes(key));
    let list = reader.segments(table, partition);
    for candidate in list.of_index(index).candidates(key)?.newest_first() {
        let state = &list[candidate.place];
        if !state.exists_at(reader.at) {
            continue;
        }
        let id = state.id();
        for row in rows_of_candidate(table.layout(), index, state, &range, hash, candidate)? {
            if state.is_deleted_at(row, reader.at) || (reader.hides)(id, row) {
                continue;
            }
            if let Some(own) = own {
                let row_key =
                    layout.encode_key(&layout.key_of_segment_row(&state.segment, row)?)?;
                if own == (OwnRow { partition: number, key: &row_key }) {
                    continue;
                }
            }
            let all: Vec<usize> = (0..table.schema().columns.len()).collect();
            let locator = RowLocator::Segment { partition: number, segment: id, row };
            return Ok(Some((locator, layout.segment_row(&state.segment, row, &all)?)));
        }
    }
    Ok(None)
}

/// The error for a duplicate; a `conflict` if the transaction does not see the other row.
pub(super) fn explain_duplicate(
    core: &Core,
    table: &Table,
    row: &[Value],
    error: Error,
) -> Result<Error> {
    debug_assert!(
        error.reason() == Some(Reason::DuplicateKey),
        "{error} is explained as a duplicate"
    );
    let is_named = |index: &&Index| error.key() == Some(index.name());
    let Some(index) = table.indexes().iter().find(is_named) else {
        return Ok(core.conflict(table));
    };
    let values = table.layout().key_values(index.columns(), row)?;
    let seen = locate(core, table, index.id(), &values)?;
    Ok(if seen.is_some() { error } else { core.conflict(table) })
}
