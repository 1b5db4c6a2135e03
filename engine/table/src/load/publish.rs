//! Publishes a load: all its rows become visible in one commit, or none.
//!
//! If the load also creates its table, the same commit creates it: after a crash both exist or
//! neither, and a transaction that begins later sees both. A transaction that began earlier can
//! look the table up, as any new table, and sees it empty. During the load the table is in no
//! catalog, so nothing else reads it or keeps its files from being removed.

use crate::load::duplicates::{Replaced, ReplacedNode, ReplacedRows};
use crate::load::duplicates::{resolve_outside, resolve_rowstores};
use crate::load::loaded::{Loaded, OnDuplicate};
use crate::load::loader::Loader;
use crate::load::locks::HeldLocks;
use crate::load::unique;
use crate::record::{self, NewSegment};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_rowstore::{Change, Version};
use nacre_types::{Result, Timestamp, invariant};
use std::sync::Arc;

/// Whether a log record may name the files of a load, so that they must not be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// They belong to the load.
    Load,
    /// They belong to the table, even if the sync fails.
    Table,
}

/// Publishes the rows of a load into its table. `ownership` is updated even on an error.
pub(super) fn into_table(
    loader: &Loader,
    table: &Arc<Table>,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    ownership: &mut Ownership,
) -> Result<()> {
    debug_assert!(!files.is_empty(), "a load of no rows is published");
    let (seen, lists) = {
        let _turn = loader.commits().lock();
        (table.changed(), lists(table))
    };
    // First phase, without a lock.
    let replaced = resolve_outside(table, on_duplicate, files, &lists)?;
    unique::check_segments(table, &lists, &unlisted(table, files))?;
    let load = Publication { loader, table, on_duplicate, files };
    load.publish(seen, replaced, ownership)
}

/// A load about to be published into its table.
struct Publication<'a> {
    loader: &'a Loader,
    table: &'a Arc<Table>,
    on_duplicate: OnDuplicate,
    files: &'a mut [Loaded],
}

impl Publication<'_> {
    /// `seen` is the commit that had last changed the table before the first phase, which found
    /// `replaced`.
    fn publish(
        mut self,
        seen: Timestamp,
        replaced: Replaced,
        ownership: &mut Ownership,
    ) -> Result<()> {
        let (loader, table) = (self.loader, self.table);
        let mut turn = loader.commits().lock();
        let commit = turn.next();
        table.check_newest()?;
        // List the segments before searching the rowstore again: a concurrent insert then either
        // has its lock already or finds the new rows.
        let states: Vec<Arc<SegmentState>> =
            self.files.iter().map(|file| file.state(commit, loader.files())).collect();
        list(table, self.files, &states);
        let appended = self.resolve_finally(seen, replaced).and_then(|(replaced, held)| {
            let payload = self.record(commit, &replaced)?;
            Ok((turn.append(&payload)?, replaced, held))
        });
        let (committed, replaced, held) = match appended {
            Ok(appended) => appended,
            Err(error) => {
                unlist(table, self.files);
                return Err(error);
            }
        };
        debug_assert!(
            committed.commit == commit,
            "a load of commit {commit} is logged as {}",
            committed.commit
        );
        let oldest = loader.commits().snapshots().oldest();
        for (file, added) in self.files.iter().zip(&states) {
            debug_assert!(
                added.deleted_rows() <= file.rejected.len(),
                "{} rows are deleted of which {} were rejected",
                added.deleted_rows(),
                file.rejected.len()
            );
            if added.deleted_rows() != file.rejected.len() {
                added.delete(commit, file.rejected.clone(), commit);
            }
        }
        for ReplacedNode { node, .. } in &replaced.nodes {
            // The key's row is now in one of the new segments: changed and moved, not deleted.
            node.push_version(Version { commit, content: commit, change: Change::Flushed });
        }
        drop(held);
        for ReplacedRows { state, rows, .. } in replaced.rows.values() {
            state.delete(commit, rows.clone(), oldest);
        }
        table.set_changed(commit);
        *ownership = Ownership::Table;
        drop(turn);
        loader.commits().settle_strictly(committed)
    }

    /// Second phase, under the commit lock: repeats everything if the table was changed, otherwise
    /// only the search in memory, and locks the rows to replace.
    fn resolve_finally(
        &mut self,
        seen: Timestamp,
        mut replaced: Replaced,
    ) -> Result<(Replaced, HeldLocks)> {
        let (table, on_duplicate) = (self.table, self.on_duplicate);
        invariant!(
            table.changed() >= seen,
            "a table changed by commit {seen} was last changed by {}",
            table.changed()
        );
        if table.changed() != seen {
            let lists = lists(table);
            replaced = resolve_outside(table, on_duplicate, self.files, &lists)?;
            unique::check_segments(table, &lists, &unlisted(table, self.files))?;
        } else {
            replaced.nodes.clear();
            if table.key_columns().is_some() {
                resolve_rowstores(table, on_duplicate, self.files, &mut replaced)?;
            }
        }
        unique::check_memory(table, &unlisted(table, self.files))?;
        let owner = self.loader.transactions().new_owner();
        let held = HeldLocks::lock(&replaced.nodes, owner, table)?;
        Ok((replaced, held))
    }

    fn record(&self, commit: Timestamp, replaced: &Replaced) -> Result<Vec<u8>> {
        let table = self.table;
        debug_assert!(
            replaced.rows.values().all(|one| !one.rows.is_empty()),
            "no row of a segment is replaced"
        );
        let place = |partition| table.place(table.partition(partition));
        let mut payload = record::begin(commit);
        for ReplacedNode { partition, node } in &replaced.nodes {
            record::delete(&mut payload, place(*partition), node.key());
        }
        for ReplacedRows { partition, state, rows } in replaced.rows.values() {
            record::delete_rows(&mut payload, place(*partition), state.id(), rows)?;
        }
        add_segments(&mut payload, table, self.files)?;
        Ok(payload)
    }
}

/// Publishes a new table and the rows of a load, or neither. `ownership` is updated even on an
/// error.
pub(super) fn with_table(
    loader: &Loader,
    table: &Arc<Table>,
    files: &[Loaded],
    ownership: &mut Ownership,
) -> Result<()> {
    debug_assert!(
        table.created() == 0 && files.iter().all(|file| file.rejected.is_empty()),
        "table {} is not new, or rows of it were rejected",
        table.schema().name
    );
    let mut payload = record::begin(0);
    record::create_table(&mut payload, table.schema())?;
    add_segments(&mut payload, table, files)?;
    loader.catalog().commit(payload, |contents, commit| {
        contents.add(table, commit)?;
        let states: Vec<Arc<SegmentState>> =
            files.iter().map(|file| file.state(commit, loader.files())).collect();
        list(table, files, &states);
        table.set_changed(commit);
        *ownership = Ownership::Table;
        Ok(())
    })
}

/// The segments of each partition.
fn lists(table: &Table) -> Vec<Arc<SegmentList>> {
    table.partitions().iter().map(Partition::segments).collect()
}

/// The load's segments as if they belonged to the table; empty if there is no index to check.
pub(super) fn unlisted(table: &Table, files: &[Loaded]) -> Vec<SegmentState> {
    if !table.has_unique_index() {
        return Vec::new();
    }
    files.iter().map(Loaded::unlisted_state).collect()
}

/// Lists the states of a load's files in their partitions.
fn list(table: &Table, files: &[Loaded], states: &[Arc<SegmentState>]) {
    invariant!(
        files.len() == states.len()
            && files.iter().all(|file| (file.partition as usize) < table.partitions().len()),
        "{} segments of {} files are listed",
        states.len(),
        files.len()
    );
    for partition in table.partitions() {
        let own = files.iter().zip(states).filter(|(file, _)| file.partition == partition.number());
        partition.update_segments(|list| list.extend(own.map(|(_, state)| state.clone())));
    }
}

/// Removes a load's files from the lists of their partitions.
fn unlist(table: &Table, files: &[Loaded]) {
    let is_own = |state: &SegmentState| files.iter().any(|file| file.segment.id() == state.id());
    for partition in table.partitions() {
        partition.update_segments(|list| list.retain(|state| !is_own(state)));
    }
    debug_assert!(
        !table.segments().iter().any(|state| is_own(state)),
        "a segment of a refused load is still listed"
    );
}

/// Appends the load's segments to a record.
fn add_segments(payload: &mut Vec<u8>, table: &Table, files: &[Loaded]) -> Result<()> {
    let mut added = 0;
    for partition in table.partitions() {
        let own = files.iter().filter(|file| file.partition == partition.number());
        let segments: Vec<NewSegment> = own
            .map(|file| NewSegment { id: file.segment.id(), deleted: file.rejected.clone() })
            .collect();
        if !segments.is_empty() {
            record::add_segments(payload, table.place(partition), &segments)?;
        }
        added += segments.len();
    }
    invariant!(added == files.len(), "{added} of {} segments of a load are logged", files.len());
    Ok(())
}
