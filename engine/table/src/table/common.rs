//! What all versions of a table have in common, until it is emptied.

use crate::table::gate::Gate;
use crate::table::journal::Journals;
use crate::table::reference_locks::ReferenceLocks;
use crate::table::reservations::Reservations;
use nacre_types::{Error, Result, TableSchema, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all versions of a table have in common.
#[derive(Default)]
pub(super) struct Common {
    changed: AtomicU64,
    cleared: AtomicU64,
    /// The journals of loads that are being published.
    pub journals: Arc<Journals>,
    /// Keys that transactions have reserved.
    pub reservations: Arc<Reservations>,
    /// Keys that rows refer to.
    pub reference_locks: Arc<ReferenceLocks>,
    /// Passed by each commit that changes the table.
    pub gate: Arc<Gate>,
    numbers: Mutex<Numbers>,
}

/// The numbers that changes of the schema have taken, committed or not: those from these on are free.
/// Two transactions that change a table at once number their columns and indexes differently, so that
/// neither takes what belongs to the other for its own.
#[derive(Default)]
struct Numbers {
    version: u32,
    column: u32,
    index: u32,
}

impl Common {
    /// Timestamp of the last commit that changed the table.
    pub fn changed(&self) -> Timestamp {
        self.changed.load(Ordering::Acquire)
    }

    /// Records a commit that changes the table.
    pub fn set_changed(&self, at: Timestamp) {
        let before = self.changed.fetch_max(at, Ordering::AcqRel);
        debug_assert!(before <= at, "commit {at} changes a table after commit {before} has");
    }

    /// Timestamp of the last commit that deleted rows of segments without a node for their keys.
    pub fn cleared(&self) -> Timestamp {
        self.cleared.load(Ordering::Acquire)
    }

    /// Records such a commit.
    pub fn set_cleared(&self, at: Timestamp) {
        let before = self.cleared.fetch_max(at, Ordering::AcqRel);
        debug_assert!(before < at, "commit {at} deletes rows after commit {before} has");
    }

    /// Numbers what a changed schema adds to that of the version it was made from, as no other change
    /// of the table does, and the schema itself if rows look different.
    ///
    /// # Errors
    /// `limit` if no number is left.
    pub fn number(&self, mut changed: TableSchema, old: &TableSchema) -> Result<TableSchema> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut next, is_same) = (old.clone(), changed.same_columns(old));
        let by_column = numbers.column.saturating_sub(next.take_column_id());
        let by_index = numbers.index.saturating_sub(next.take_index_id());
        let is_new_column = |id: u32| {
            let is_computed = old.computed.iter().any(|column| column.id == id);
            old.column_position(id).is_none() && !is_computed
        };
        let columns = changed.columns.iter_mut().chain(&mut changed.computed);
        for id in columns.map(|column| &mut column.id).filter(|id| is_new_column(**id)) {
            *id = id.saturating_add(by_column);
        }
        for index in &mut changed.indexes {
            if old.index_by_id(index.id).is_none() {
                index.id = index.id.saturating_add(by_index);
            }
            index.columns.iter_mut().filter(|id| is_new_column(**id)).for_each(|id| {
                *id = id.saturating_add(by_column);
            });
        }
        for key in &mut changed.foreign_keys {
            let refers_to_own = key.parent == 0;
            let referred = key.parent_columns.iter_mut().filter(|_| refers_to_own);
            let ids = key.columns.iter_mut().chain(referred);
            ids.filter(|id| is_new_column(**id)).for_each(|id| *id = id.saturating_add(by_column));
        }
        changed.next_column_id = changed.next_column_id.saturating_add(by_column);
        changed.next_index_id = changed.next_index_id.saturating_add(by_index);
        if !is_same {
            let above = numbers.version.max(u32::from(old.version) + 1);
            changed.version = u16::try_from(above).map_err(|_| too_often(&old.name))?;
            numbers.version = above + 1;
        }
        let mut next = changed.clone();
        numbers.column = numbers.column.max(next.take_column_id());
        numbers.index = numbers.index.max(next.take_index_id());
        debug_assert!(
            changed.version >= old.version,
            "version {} of a schema follows {}",
            changed.version,
            old.version
        );
        changed.check_indexes().map(|()| changed)
    }
}

/// The error for a table whose columns have been changed as often as can be.
pub(crate) fn too_often(table: &str) -> Error {
    Error::limit(format!("table {table} has been altered {} times", u16::MAX))
        .with_hint("copy it into a new table")
}
