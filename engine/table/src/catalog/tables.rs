//! `CREATE TABLE`, `DROP TABLE`, `ALTER TABLE` and `TRUNCATE`. A change creates a new version of
//! the table; no row is rewritten.
//!
//! A transaction that wrote to a version that is no longer the newest when it commits fails with
//! `conflict`: its rows would have the wrong columns, or be in partitions that are no longer read.

use crate::catalog::contents::Contents;
use crate::catalog::registry::Catalog;
use crate::catalog::verify::{self, Committed};
use crate::index::hash::table::HashTable;
use crate::record::{self, KeySet};
use crate::segments::garbage::Garbage;
use crate::table::agenda::Work;
use crate::table::common::too_often;
use crate::table::version::Table;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, IndexId, Result, TableSchema, Timestamp, invariant};
use std::sync::Arc;

/// Creates a table with a new id.
pub(crate) fn create(catalog: &Catalog, schema: TableSchema) -> Result<Arc<Table>> {
    let table = catalog.new_table(schema)?;
    let mut payload = record::begin(0);
    record::create_table(&mut payload, table.schema())?;
    catalog.commit(payload, |contents, commit| contents.add(&table, commit))?;
    Ok(table)
}

/// Like [`create`]. A table with the name is dropped in the same commit. `conflict` if another one
/// got the name meanwhile.
pub(crate) fn replace(catalog: &Catalog, schema: TableSchema) -> Result<Arc<Table>> {
    let Some(old) = catalog.table(&schema.name) else { return create(catalog, schema) };
    let table = catalog.new_table(schema)?;
    let mut payload = record::begin(0);
    record::drop_table(&mut payload, old.id());
    record::create_table(&mut payload, table.schema())?;
    catalog.commit(payload, |contents, commit| {
        drop_replaced(catalog.garbage(), contents, &old, &table, commit)?;
        contents.add(&table, commit)
    })?;
    Ok(table)
}

/// Drops the table whose name a new one gets in the same commit. `conflict` if it was dropped or
/// renamed since.
pub(crate) fn drop_replaced(
    garbage: &Garbage,
    contents: &mut Contents,
    old: &Arc<Table>,
    new: &Table,
    commit: Timestamp,
) -> Result<()> {
    debug_assert!(old.id() != new.id(), "table {} replaces itself", new.schema().name);
    let Some(newest) = contents.table_by_id(old.id()).cloned() else {
        return Err(old.superseded());
    };
    if !newest.schema().name.eq_ignore_ascii_case(&new.schema().name) {
        return Err(old.superseded());
    }
    newest.drop_at(commit);
    contents.remove(&newest);
    discard_segments(garbage, &newest, commit);
    Ok(())
}

/// Drops tables with all their contents, or none of them. Transactions that still read them
/// continue; writes to them fail.
pub(crate) fn drop_all(catalog: &Catalog, tables: &[Arc<Table>]) -> Result<()> {
    catalog.commits().check_writable()?;
    let tables = once_each(tables);
    if tables.is_empty() {
        return Ok(());
    }
    let mut payload = record::begin(0);
    tables.iter().for_each(|table| record::drop_table(&mut payload, table.id()));
    catalog.commit(payload, |contents, commit| {
        let newest =
            |table: &Arc<Table>| match contents.table_by_id(table.id()) {
                Some(newest) => Ok(newest.clone()),
                None => Err(Error::not_found(format!("table {}", table.schema().name))
                    .with_sqlstate("42P01")),
            };
        for table in tables.iter().map(newest).collect::<Result<Vec<_>>>()? {
            table.drop_at(commit);
            contents.remove(&table);
            discard_segments(catalog.garbage(), &table, commit);
        }
        Ok(())
    })
}

/// Removes all rows of tables, in one commit. Transactions that began before still see them.
pub(crate) fn truncate(catalog: &Catalog, tables: &[Arc<Table>]) -> Result<()> {
    catalog.commits().check_writable()?;
    let tables = once_each(tables);
    let mut payload = record::begin(0);
    tables.iter().for_each(|table| record::truncate(&mut payload, table.id()));
    catalog.commit(payload, |contents, commit| {
        tables.iter().try_for_each(|table| table.check_newest())?;
        for table in &tables {
            let version = Arc::new(Table::emptied(table, commit));
            contents.replace(table, &version)?;
            version.replace(table, commit);
            discard_segments(catalog.garbage(), table, commit);
        }
        Ok(())
    })
}

/// Changes a table's schema, given one derived from its newest schema: renamed, added, dropped or
/// reordered columns. `conflict` if the table was changed since.
pub(crate) fn alter(
    catalog: &Catalog,
    table: &Arc<Table>,
    changed: TableSchema,
) -> Result<Arc<Table>> {
    catalog.commits().check_writable()?;
    changed.check_indexes()?;
    let is_stricter = verify::is_stricter(&changed, table.schema());
    let mut indexes = changed.indexes.iter();
    let adds_unique = indexes.any(|index| index.unique && !table.has_index(index.id));
    let seen = settled_change(catalog, table);
    if !is_stricter && !adds_unique {
        return alter_verified(catalog, table, changed, Some(seen));
    }
    // Verify without a lock first, which suffices if nothing is written meanwhile. The snapshot
    // keeps the segments being read from being removed after a merge or a truncation.
    let pinned = catalog.commits().snapshots().take();
    let trial = Table::altered(table, numbered(changed.clone(), table.schema())?, 0);
    trial.layout().rules().compile_with(catalog.compiler());
    let rows = if is_stricter { verify::all_rows(&trial, &Committed) } else { Ok(()) };
    let keys = || match adds_unique {
        true => trial.enter_all().and_then(|()| verify::new_indexes(&trial, table, &Committed)),
        false => Ok(()),
    };
    let outcome = rows.and_then(|()| keys());
    // A row that is written meanwhile may be seen although it is undone, or counted twice; then the
    // lock decides. A table truncated meanwhile has no rows that could conflict.
    if outcome.is_err() && table.is_newest() && settled_change(catalog, table) == seen {
        outcome?;
    }
    drop(pinned);
    alter_verified(catalog, table, changed, Some(seen))
}

/// A changed schema with the number of its version: the next one if rows look different.
pub(crate) fn numbered(mut changed: TableSchema, old: &TableSchema) -> Result<TableSchema> {
    changed.id = old.id;
    changed.version = old.version;
    if !changed.same_columns(old) {
        changed.version = old.version.checked_add(1).ok_or_else(|| too_often(&old.name))?;
    }
    debug_assert!(
        changed.version == old.version || changed.version == old.version + 1,
        "version {} of a schema follows {}",
        changed.version,
        old.version
    );
    Ok(changed)
}

/// A changed schema as the next version of a table has it: with companions of its indexes, and with
/// numbers that no other change of the table has.
pub(crate) fn completed(mut changed: TableSchema, old: &Table) -> Result<TableSchema> {
    (changed.id, changed.version) = (old.id(), old.schema().version);
    changed.check_indexes()?;
    changed.complete_indexes();
    let numbered = old.number(changed)?;
    debug_assert!(numbered.id == old.id(), "a changed table becomes table {}", numbered.id);
    Ok(numbered)
}

/// The last commit that changed a table. Read under the commit lock: during a commit, the table's
/// rows and its change timestamp may disagree.
pub(crate) fn settled_change(catalog: &Catalog, table: &Table) -> Timestamp {
    let _turn = catalog.commits().lock();
    table.changed()
}

/// Like [`alter`]. New unique indexes and rules need no verification if the table has not changed
/// since commit `verified`.
pub(crate) fn alter_verified(
    catalog: &Catalog,
    table: &Arc<Table>,
    mut changed: TableSchema,
    verified: Option<Timestamp>,
) -> Result<Arc<Table>> {
    catalog.commits().check_writable()?;
    changed = completed(changed, table)?;
    let mut payload = record::begin(0);
    record::alter_table(&mut payload, &changed)?;
    let prepare = |commit| {
        table.check_newest()?;
        let version = Arc::new(Table::altered(table, changed, commit));
        if verify::is_stricter(version.schema(), table.schema())
            && verified != Some(table.changed())
        {
            version.layout().rules().compile_with(catalog.compiler());
            verify::all_rows(&version, &Committed)?;
        }
        if version.indexes().iter().any(|index| !table.has_index(index.id())) {
            version.enter_all()?;
            if verified != Some(table.changed())
                && !(verified.is_some() && plant::is(Bug::IndexLate))
            {
                verify::new_indexes(&version, table, &Committed)?;
            }
            version.consider(Work::IndexParts);
        }
        Ok(version)
    };
    let mut made = None;
    catalog.commit_prepared(payload, prepare, |contents, commit, version| {
        contents.replace(table, &version)?;
        version.replace(table, commit);
        discard_indexes(catalog.garbage(), table, &version, commit);
        made = Some(version);
        Ok(())
    })?;
    invariant!(made.is_some(), "table {} was altered and has no new version", table.schema().name);
    made.ok_or_else(|| table.superseded())
}

/// The tables by id, each once.
fn once_each(tables: &[Arc<Table>]) -> Vec<Arc<Table>> {
    let mut tables = tables.to_vec();
    tables.sort_by_key(|table| table.id());
    tables.dedup_by_key(|table| table.id());
    tables
}

/// Ends all segments of a table. Their files are removed once no snapshot needs them.
pub(crate) fn discard_segments(garbage: &Garbage, table: &Table, commit: Timestamp) {
    debug_assert!(!table.is_newest(), "segments of table {} are dropped", table.schema().name);
    let current = table.segments().into_iter().filter(|state| state.is_current());
    garbage.add_segments(current.inspect(|state| state.drop_at(commit)));
    for partition in table.partitions() {
        discard_tables(garbage, partition.segments().tables(), commit);
    }
}

/// Discards the files of dropped hash tables. They are removed once no snapshot needs them.
pub(crate) fn discard_tables(garbage: &Garbage, tables: &[Arc<HashTable>], commit: Timestamp) {
    garbage.add_files(commit, tables.iter().flat_map(|table| table.files()).cloned());
}

/// Discards the data of indexes that a new version of a table dropped. Hash tables leave the lists
/// immediately. Index parts stay with their segments for readers of the old version, until no
/// snapshot reads it.
pub(crate) fn discard_indexes(garbage: &Garbage, old: &Table, new: &Table, commit: Timestamp) {
    debug_assert!(new.shares_partitions(old), "a new version of a table has other partitions");
    let is_gone = |index: IndexId| old.has_index(index) && !new.has_index(index);
    let is_of_gone =
        |hashes: &Arc<HashTable>| matches!(hashes.keys(), KeySet::Index(id) if is_gone(id));
    for state in new.segments() {
        garbage.add_files(commit, state.part_files(is_gone).into_iter());
    }
    for partition in new.partitions() {
        let list = partition.segments();
        let gone: Vec<_> = list.tables().iter().filter(|t| is_of_gone(t)).cloned().collect();
        discard_tables(garbage, &gone, commit);
        partition.update_tables(|tables| tables.retain(|hashes| !is_of_gone(hashes)));
    }
}
