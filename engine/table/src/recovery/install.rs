//! Lets the changes that records make take effect: in a new catalog when the database is opened, or
//! in the catalog that readers use, for snapshots from a commit on.

use crate::catalog::contents::Contents;
use crate::catalog::tables::{discard_indexes, discard_segments, discard_tables};
use crate::layout::rules::CompileRules;
use crate::recovery::opened::{Opened, OpenedPartition, OpenedTable};
use crate::recovery::replay::{Replay, ReplayedTable};
use crate::segments::garbage::Garbage;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use nacre_rowstore::Change;
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Timestamp, invariant};
use std::sync::Arc;

/// When changes take effect.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// The commit from which on snapshots see them; 0 when the database is opened.
    pub at: Timestamp,
    /// The oldest snapshot in use.
    pub oldest: Timestamp,
}

/// Adds the index entries of rows in memory. Does nothing that a reader could notice.
///
/// # Errors
/// `corrupt` if a row does not fit its table.
pub(super) fn enter_rows(replay: &Replay, compile: Option<CompileRules>) -> Result<()> {
    replay.tables().try_for_each(|replayed| {
        let table = &replayed.table;
        // Entries may be of computed columns.
        table.layout().rules().compile_with(compile);
        // A record that alters a table names its indexes anew: their entries begin empty.
        match &replayed.base {
            Some(base) if Arc::ptr_eq(base, table) => enter_touched(replayed),
            _ => table.enter_all(),
        }
    })
}

fn enter_touched(replayed: &ReplayedTable) -> Result<()> {
    let table = &replayed.table;
    if table.indexes().is_empty() {
        return Ok(());
    }
    for (partition, node) in &replayed.touched {
        if let Some(Change::Put(row)) = node.newest().map(|version| version.change) {
            table.enter(*partition, node.key(), &table.layout().upgrade(row)?)?;
        }
    }
    Ok(())
}

/// The catalog with the tables and views that the records create, change and drop, as of a commit;
/// 0 when the database is opened.
///
/// # Errors
/// `corrupt` if the records give a name twice.
pub(super) fn contents_after(
    before: &Contents,
    replay: &Replay,
    at: Timestamp,
) -> Result<Contents> {
    let mut contents = before.clone();
    let bases = replay.tables().filter_map(|replayed| replayed.base.as_ref());
    bases.chain(replay.dropped()).for_each(|base| contents.take(base));
    replay.dropped().for_each(|base| contents.keep_dropped(base));
    for (name, view) in replay.views() {
        if contents.view(name).is_some() {
            contents.remove_view(name, at)?;
        }
        if let Some(view) = view {
            contents.add_view(Arc::new(view.clone()), false, at).map_err(taken_name)?;
        }
    }
    for replayed in replay.tables() {
        contents.put(&replayed.table).map_err(taken_name)?;
    }
    debug_assert!(
        replay.dropped().all(|base| contents.table_by_id(base.id()).is_none()),
        "a table that the log drops is in the catalog"
    );
    Ok(contents)
}

/// The error for a name that the log gives twice.
fn taken_name(error: Error) -> Error {
    Error::corrupt(format!("log: {}", error.message()))
}

/// Changes the tables, for snapshots from a moment on. Must be called under the commit lock if
/// there are readers.
pub(super) fn install(replay: &Replay, opened: Opened, garbage: &Garbage, moment: Moment) {
    debug_assert!(
        moment.at == 0 || moment.oldest < moment.at,
        "changes of commit {} take effect for snapshot {}",
        moment.at,
        moment.oldest
    );
    for (replayed, opened) in replay.tables().zip(opened.tables) {
        install_table(replayed, opened, garbage, moment);
    }
    for base in replay.dropped() {
        base.drop_at(moment.at);
        base.leave_agenda();
        discard_segments(garbage, base, moment.at);
    }
}

fn install_table(replayed: &ReplayedTable, opened: OpenedTable, garbage: &Garbage, moment: Moment) {
    let table = &replayed.table;
    debug_assert!(table.is_newest(), "an old version of table {} is read", table.schema().name);
    invariant!(
        opened.partitions.len() == table.partitions().len(),
        "table {} has {} partitions, and {} are changed",
        table.schema().name,
        table.partitions().len(),
        opened.partitions.len()
    );
    match &replayed.base {
        None => table.created_by(moment.at),
        Some(base) => {
            // Set first, so that a reader that sees a change also knows that it may be too new.
            base.set_changed(moment.at);
            base.set_cleared(moment.at);
        }
    }
    for (partition, opened) in table.partitions().iter().zip(opened.partitions) {
        install_partition(partition, opened, &replayed.dropped_hashes, garbage, moment);
    }
    let Some(base) = replayed.base.as_ref().filter(|base| !Arc::ptr_eq(base, table)) else {
        return;
    };
    table.replace(base, table.since());
    match table.shares_partitions(base) {
        true => discard_indexes(garbage, base, table, moment.at),
        false => {
            base.leave_agenda();
            discard_segments(garbage, base, moment.at);
        }
    }
}

fn install_partition(
    partition: &Partition,
    opened: OpenedPartition,
    dropped_hashes: &Set<u64>,
    garbage: &Garbage,
    moment: Moment,
) {
    let keeps_segments = opened.keeps_segments();
    let OpenedPartition { runs, moved, dropped, deleted, parts, hashes } = opened;
    parts.iter().for_each(|(state, file)| state.add_parts(file));
    // A reader that finds a row deleted looks again if the list has changed, so the list comes
    // first.
    if !keeps_segments {
        let ids: Set<u64> = dropped.iter().map(|state| state.id()).collect();
        partition.update_segments(|list| {
            list.drop_segments(&ids);
            list.remove(&moved);
            list.add_all(runs);
            parts.iter().for_each(|(state, _)| list.forget_directories(state.id()));
        });
    }
    dropped.iter().for_each(|state| state.drop_at(moment.at));
    if !deleted.is_empty() {
        partition.consider(Work::Deltas);
    }
    for (state, rows) in deleted.into_iter().filter(|_| !plant::is(Bug::FollowDeletes)) {
        state.delete(moment.at, rows, moment.oldest);
    }
    garbage.add_segments(dropped.into_iter());
    let list = partition.segments();
    let is_gone = |id: u64| dropped_hashes.contains(&id);
    let gone: Vec<_> = list.tables().iter().filter(|table| is_gone(table.id())).cloned().collect();
    if !gone.is_empty() || !hashes.is_empty() {
        discard_tables(garbage, &gone, moment.at);
        partition.update_tables(|tables| {
            tables.retain(|table| !is_gone(table.id()));
            tables.extend(hashes);
        });
    }
}
