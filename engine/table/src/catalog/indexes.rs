//! `CREATE INDEX` and `DROP INDEX`: a new version of the table, like every change of a schema.
//!
//! An index answers from the commit that creates it: rows in memory are entered under the commit lock,
//! and segments without a part of it are read whole until background work has built one. A transaction
//! that wrote to the version before fails with `conflict` when it commits, so no row is missing from
//! the index.

use crate::catalog::registry::Catalog;
use crate::catalog::{tables, verify};
use crate::table::version::Table;
use nacre_types::{Error, IndexSchema, Result, TableSchema, Timestamp};
use std::sync::Arc;

/// Creates an index and returns the version of the table that has it. The index's id is replaced by a
/// new one. `constraint` if it is unique and two rows have the same values; `conflict` if the table
/// was changed since.
pub(crate) fn create(
    catalog: &Catalog,
    table: &Arc<Table>,
    mut index: IndexSchema,
) -> Result<Arc<Table>> {
    catalog.commits().check_open()?;
    let mut changed: TableSchema = (**table.schema()).clone();
    index.id = changed.take_index_id();
    let is_unique = index.unique;
    changed.indexes.push(index);
    changed.check_indexes()?;
    let seen = settled_change(catalog, table);
    if is_unique {
        // Verified without a lock first, which is enough if nothing is written meanwhile. The snapshot
        // keeps the segments that are read from being removed after a merge or a truncation.
        let pinned = catalog.commits().snapshots().take();
        let trial = Table::altered(table, changed.clone(), 0);
        let outcome = trial.enter_all().and_then(|()| verify::new_indexes(&trial, table));
        // A row written meanwhile may have been met twice: then the check under the lock decides. A
        // table truncated meanwhile has no rows to object to.
        if outcome.is_err() && table.is_newest() && settled_change(catalog, table) == seen {
            outcome?;
        }
        drop(pinned);
    }
    tables::alter_verified(catalog, table, changed, Some(seen))
}

/// The last commit that changed a table, read while no commit is under way: during one, rows may be
/// there already that the table does not account for, or the other way round.
fn settled_change(catalog: &Catalog, table: &Table) -> Timestamp {
    let _turn = catalog.commits().lock();
    table.changed()
}

/// Drops an index by name and returns the version of the table without it. `conflict` if the table was
/// changed since.
pub(crate) fn remove(catalog: &Catalog, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
    catalog.commits().check_open()?;
    let mut changed: TableSchema = (**table.schema()).clone();
    let Some(id) = changed.index_by_name(name).map(|index| index.id) else {
        return Err(Error::not_found(format!("index {name} of table {}", changed.name))
            .with_sqlstate("42704"));
    };
    changed.indexes.retain(|index| index.id != id);
    tables::alter(catalog, table, changed)
}
