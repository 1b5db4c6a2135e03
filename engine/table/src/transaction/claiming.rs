//! Deletes or replaces rows of a segment together. They are claimed where they are; those that a
//! merge or another transaction has moved since the snapshot are followed by their keys.

use crate::layout::table_layout::TableLayout;
use crate::load::bulk_update::BulkUpdate;
use crate::read::view::RowLocator;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::changes;
use crate::transaction::claimed::ClaimedRows;
use crate::transaction::core::Core;
use crate::transaction::locking::gone;
use nacre_types::hash::Map;
use nacre_types::walked::{self, Path};
use nacre_types::{Result, Value, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Merges that may overtake one claim before it gives up.
const ATTEMPTS: usize = 8;
/// Rows that are followed together. If another transaction has deleted rows, the first few of them
/// tell.
const FOLLOWED_TOGETHER: usize = 1 << 12;

/// Rows of a segment that a transaction sees.
#[derive(Clone, Copy)]
pub(super) struct SeenRows<'a> {
    pub partition: u32,
    pub segment: u64,
    pub rows: &'a RoaringBitmap,
}

/// Deletes the rows of a segment that a transaction sees there. If another transaction has one of
/// them, the caller rolls back to its savepoint and waits.
pub(super) fn delete(core: &mut Core, table: &Arc<Table>, seen: SeenRows<'_>) -> Result<u64> {
    let moved = claim_all(core, table, seen)?;
    changes::delete(core, table, &moved)?;
    Ok(seen.rows.len())
}

/// Replaces the rows of a segment that an update has written anew, as [`delete`] deletes them.
pub(super) fn replace(core: &mut Core, update: &mut BulkUpdate, place: (u32, u64)) -> Result<()> {
    let (table, rows) = (update.table().clone(), update.replaced(place));
    let (partition, segment) = place;
    let moved = claim_all(core, &table, SeenRows { partition, segment, rows: &rows })?;
    if update.rekeys() {
        // Their new rows need not be where the old ones are.
        return changes::delete(core, &table, &moved).map(|_| ());
    }
    let mut taken = Vec::new();
    let replaced = moved.iter().try_for_each(|locator| {
        let (row, values) = update.take_out(locator)?;
        taken.push(row);
        changes::update_row(core, &table, locator, &values)
    });
    if replaced.is_err() {
        // They may be in a segment when this is called again.
        update.put_back(&taken);
    }
    replaced
}

/// Claims rows of a segment, wherever merges have moved them, and hides them. Returns those that
/// have left the segments.
fn claim_all(core: &mut Core, table: &Arc<Table>, seen: SeenRows<'_>) -> Result<Vec<RowLocator>> {
    let _within = walked::within(Path::ManyDeleted);
    core.check_writes(table)?;
    debug_assert!(!seen.rows.is_empty(), "no row of segment {} is claimed", seen.segment);
    if core.own_segment(seen.segment).is_some() {
        core.writes_mut().hide(table, seen.segment, seen.rows.clone());
        return Ok(Vec::new());
    }
    let here = Found { segment: seen.segment, seen: seen.rows.iter().zip(seen.rows).collect() };
    let left = claim(core, table, seen, &here)?;
    let mut moved = Vec::new();
    if !left.is_empty() {
        follow(core, table, SeenRows { rows: &left, ..seen }, &mut moved)?;
    }
    Ok(moved)
}

/// Rows found in a segment.
struct Found {
    segment: u64,
    /// Where each row is, ascending, and where the snapshot has it.
    seen: Vec<(u32, u32)>,
}

/// Claims the rows that are where they were found. Returns those that have left, as the snapshot
/// has them.
fn claim(
    core: &mut Core,
    table: &Arc<Table>,
    seen: SeenRows<'_>,
    found: &Found,
) -> Result<RoaringBitmap> {
    let wanted: RoaringBitmap = found.seen.iter().map(|(row, _)| *row).collect();
    let turn = core.commits().lock();
    // A commit in progress lists its segments under the lock, so this one is committed.
    let state = table.partition(seen.partition).segment(found.segment);
    let Some(state) = state.filter(|state| state.is_current()) else {
        return Ok(found.seen.iter().map(|(_, seen)| *seen).collect());
    };
    let rows = &wanted - &*state.all_deleted();
    let claimed = match rows.is_empty() {
        true => Ok(()),
        false => state.claims().claim(core.writes().owner(), &rows),
    };
    drop(turn);
    if let Err(blocker) = claimed {
        let message =
            format!("a row of table {} is locked by another transaction", table.schema().name);
        return Err(core.writes_mut().blocked_by(blocker, message));
    }
    let (mut hidden, mut left) = (RoaringBitmap::new(), RoaringBitmap::new());
    for (row, seen) in &found.seen {
        match rows.contains(*row) {
            true => hidden.insert(*seen),
            false => left.insert(*seen),
        };
    }
    if !rows.is_empty() {
        core.writes_mut().leave(ClaimedRows {
            table: table.clone(),
            partition: seen.partition,
            state,
            rows,
            seen_in: seen.segment,
            seen: hidden,
        });
    }
    Ok(left)
}

/// Claims rows that have left the segment in which the snapshot has them, and adds those that are in
/// no segment to `moved`.
fn follow(
    core: &mut Core,
    table: &Arc<Table>,
    seen: SeenRows<'_>,
    moved: &mut Vec<RowLocator>,
) -> Result<()> {
    let mut rows = seen.rows.iter();
    loop {
        let some: RoaringBitmap = rows.by_ref().take(FOLLOWED_TOGETHER).collect();
        if some.is_empty() {
            return Ok(());
        }
        moved.extend(follow_some(core, table, seen, some)?);
    }
}

fn follow_some(
    core: &mut Core,
    table: &Arc<Table>,
    seen: SeenRows<'_>,
    mut left: RoaringBitmap,
) -> Result<Vec<RowLocator>> {
    let mut moved = Vec::new();
    walked::walk(Path::ManyFollowed);
    for _ in 0..ATTEMPTS {
        let (found, missing) = find(core, table, SeenRows { rows: &left, ..seen })?;
        left.clear();
        for found in &found {
            left |= claim(core, table, seen, found)?;
        }
        moved.extend(missing);
        if left.is_empty() {
            return Ok(moved);
        }
    }
    Err(core.conflict(table))
}

/// Whether a row that was found in a segment was changed after the snapshot: a load may have
/// replaced it, or a change in memory may have been flushed since.
fn is_changed(
    core: &Core,
    layout: &TableLayout,
    partition: &Partition,
    state: &SegmentState,
    key: &[Value],
) -> Result<bool> {
    debug_assert!(
        state.created() > core.at(),
        "segment {} is in the snapshot, but its row is looked up by its key",
        state.id()
    );
    if state.content() > core.at() {
        return Ok(true);
    }
    // Kept as long as a snapshot is older than the change.
    let node = partition.rowstore().get(&layout.encode_key(key)?);
    Ok(node.and_then(|node| node.newest()).is_some_and(|newest| newest.content > core.at()))
}

/// Where rows are now: the segments that have them, and the locators of those that are in none.
fn find(
    core: &mut Core,
    table: &Table,
    seen: SeenRows<'_>,
) -> Result<(Vec<Found>, Vec<RowLocator>)> {
    let SeenRows { partition: number, segment, rows } = seen;
    let (partition, layout) = (table.partition(number), table.layout());
    let old = partition.segment(segment).ok_or_else(|| core.conflict(table))?;
    let (mut found, mut missing): (Map<u64, Found>, _) = (Map::default(), Vec::new());
    for row in rows {
        let key = layout.key_of_segment_row(&old.segment, row)?;
        match partition.find_newest(layout, &key)? {
            Some((state, _)) if is_changed(core, layout, partition, &state, &key)? => {
                return Err(gone(core, table, partition, &key)?);
            }
            Some((state, now)) => {
                let segment = state.id();
                let found = found.entry(segment);
                found.or_insert_with(|| Found { segment, seen: Vec::new() }).seen.push((now, row));
            }
            None => missing.push(RowLocator::Segment { partition: number, segment, row }),
        }
    }
    let mut found: Vec<Found> = found.into_values().collect();
    found.sort_unstable_by_key(|found| found.segment);
    found.iter_mut().for_each(|found| found.seen.sort_unstable());
    let placed: usize = found.iter().map(|found| found.seen.len()).sum();
    invariant!(
        placed + missing.len() == rows.len() as usize,
        "{placed} of {} rows are found, and {} are not",
        rows.len(),
        missing.len()
    );
    Ok((found, missing))
}
