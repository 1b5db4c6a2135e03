//! What a transaction does for foreign keys: which tables it has to look at, and locks of keys.

use crate::table::reference_locks::LockedKeys;
use crate::table::version::Table;
use crate::transaction::core::Core;
use crate::transaction::ddl;
use crate::transaction::step::{Rekeyed, Step};
use nacre_types::plant::{self, Bug};
use nacre_types::{Result, TableId};
use std::sync::Arc;

/// Keys from which on all of a table are locked.
const MANY: usize = 1 << 14;

/// The tables of rows that were written after the first steps, of those with references.
pub(super) fn touched(core: &Core, first: usize) -> impl Iterator<Item = &Arc<Table>> {
    let tables = core.writes().steps_from(first).iter().filter_map(Step::table);
    tables.filter(|table| table.schema().has_references())
}

/// These tables, each once, as the transaction sees them.
pub(super) fn tables(core: &Core, first: usize) -> Vec<Arc<Table>> {
    let mut ids: Vec<TableId> = touched(core, first).map(|table| table.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    debug_assert!(ids.is_sorted_by(|a, b| a < b), "a table is looked at twice");
    ids.into_iter().filter_map(|id| ddl::table_by_id(core, id)).collect()
}

/// The rows of a table that have got other keys.
pub(super) fn rekeyed(core: &Core, first: usize, table: TableId) -> impl Iterator<Item = &Rekeyed> {
    let noted = core.writes().steps_from(first).iter().filter_map(move |step| match step {
        Step::Rekeyed { table: of, rows } if *of == table => Some(rows),
        _ => None,
    });
    noted.flatten()
}

/// Locks keys of a table.
pub(super) fn lock(
    core: &mut Core,
    table: &Table,
    keys: Vec<Vec<u8>>,
    is_alone: bool,
) -> Result<()> {
    debug_assert!(!table.is_temporary(), "rows refer to those of a temporary table");
    debug_assert!(table.schema().is_referred_to(), "a key is locked that no row refers to");
    if plant::is(Bug::FkRace) {
        return Ok(());
    }
    let keys = match keys.len() < MANY {
        true => LockedKeys::Some(keys),
        false => LockedKeys::All,
    };
    match table.reference_locks().lock(core.writes().owner(), keys, is_alone) {
        Ok(held) => {
            core.writes_mut().hold(held);
            Ok(())
        }
        Err(blocker) => {
            let name = &table.schema().name;
            let message = format!("a key of table {name} is locked by another transaction");
            Err(core.writes_mut().blocked_by(blocker, message))
        }
    }
}
