//! `CREATE INDEX` and `DROP INDEX`. Like every schema change, each creates a new version of the
//! table.
//!
//! An index is usable from the commit that creates it: rows in memory are indexed while the gate of
//! the table is closed, and segments without an index part are scanned until background work has built
//! one. A transaction that wrote to the previous version fails with `conflict` when it commits, or
//! enters its rows then, so the index never misses a row.

use crate::catalog::registry::Catalog;
use crate::catalog::tables::{self, Altered};
use crate::table::version::Table;
use nacre_types::{Error, IndexSchema, Result, TableSchema, invariant};
use std::sync::Arc;

/// Creates an index and returns the version of the table that has it. The index gets a new id.
/// `constraint` if it is unique and two rows have the same values; `conflict` if the table was
/// changed since.
pub(crate) fn create(
    catalog: &Catalog,
    table: &Arc<Table>,
    mut index: IndexSchema,
) -> Result<Arc<Table>> {
    let mut changed: TableSchema = (**table.schema()).clone();
    index.id = changed.take_index_id();
    invariant!(!table.has_index(index.id), "the id of index {} is taken", index.name);
    changed.indexes.push(index);
    tables::alter(catalog, table, changed)
}

/// Drops an index by name and returns the version of the table without it. `conflict` if the table
/// was changed since.
pub(crate) fn remove(catalog: &Catalog, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
    tables::alter(catalog, table, without(table.schema(), name)?)
}

/// Drops indexes by name, each once, or none of them. `conflict` if one of their tables was changed
/// since.
pub(crate) fn remove_all(catalog: &Catalog, indexes: &[(Arc<Table>, String)]) -> Result<()> {
    catalog.commits().check_writable()?;
    let mut changes: Vec<(&Arc<Table>, TableSchema)> = Vec::new();
    for (table, name) in indexes {
        match changes.iter_mut().find(|(known, _)| known.id() == table.id()) {
            Some((_, changed)) => *changed = without(changed, name)?,
            None => changes.push((table, without(table.schema(), name)?)),
        }
    }
    debug_assert!(
        changes.iter().all(|(table, changed)| changed.indexes.len() < table.indexes().len()),
        "a table is changed and loses no index"
    );
    let altered = changes.into_iter().map(|(table, changed)| Altered::new(table, changed));
    tables::alter_all(catalog, &altered.collect::<Result<Vec<_>>>()?)
}

/// The schema without an index.
pub(crate) fn without(schema: &TableSchema, name: &str) -> Result<TableSchema> {
    let Some(id) = schema.index_by_name(name).map(|index| index.id) else {
        return Err(Error::not_found(format!("index {name} of table {}", schema.name))
            .with_sqlstate("42704"));
    };
    let mut changed = schema.clone();
    changed.indexes.retain(|index| index.id != id);
    debug_assert!(
        changed.indexes.len() + 1 == schema.indexes.len(),
        "index {name} is not the only one with id {id}"
    );
    Ok(changed)
}
