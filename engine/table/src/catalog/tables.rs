//! `CREATE TABLE`, `DROP TABLE`, `ALTER TABLE` and `TRUNCATE`. A change creates a new version of
//! the table; no row is rewritten.
//!
//! A transaction that wrote to a version that is no longer the newest when it commits fails with
//! `conflict`: its rows would have the wrong columns, or be in partitions that are no longer read.

use crate::catalog::contents::Contents;
use crate::catalog::registry::Catalog;
use crate::catalog::to_verify::{Committed, ToVerify, VerifiedRows};
use crate::catalog::verify;
use crate::index::hash::table::HashTable;
use crate::record::{self, KeySet};
use crate::segments::garbage::Garbage;
use crate::table::agenda::Work;
use crate::table::gate::Gates;
use crate::table::version::Table;
use nacre_rowstore::Node;
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, IndexId, Result, TableSchema, Timestamp};
use std::sync::Arc;

/// How often the rows committed meanwhile are verified before the table's gate is closed.
const MAX_ROUNDS: usize = 8;
/// Rows that are few enough to be verified while the gate is closed.
const REST: usize = 1 << 13;

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
    check_alone(&newest)?;
    newest.drop_at(commit);
    contents.remove(&newest);
    discard_segments(garbage, &newest, commit);
    Ok(())
}

/// Fails with a `conflict` if a table has got foreign keys, or others that refer to it: it is dropped by a
/// transaction that tells the others.
fn check_alone(table: &Table) -> Result<()> {
    debug_assert!(table.is_newest(), "an old version of table {} is dropped", table.id());
    if table.schema().has_references() { Err(table.superseded()) } else { Ok(()) }
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
        let newest = tables.iter().map(newest).collect::<Result<Vec<_>>>()?;
        newest.iter().try_for_each(|table| check_alone(table))?;
        for table in newest {
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

/// A table, and the version that takes its place.
pub(crate) struct Altered {
    old: Arc<Table>,
    pub new: Arc<Table>,
}

impl Altered {
    /// The version of a table with a schema that is derived from the table's.
    pub fn new(old: &Arc<Table>, changed: TableSchema) -> Result<Altered> {
        let changed = completed(changed, old)?;
        let new = Arc::new(Table::altered(old, changed, old.since()));
        debug_assert!(new.shares_partitions(old), "table {} loses its rows", old.id());
        Ok(Altered { old: old.clone(), new })
    }
}

/// Changes a table's schema, given one derived from its newest schema: renamed, added, dropped or
/// reordered columns. `conflict` if the table was changed since.
pub(crate) fn alter(
    catalog: &Catalog,
    table: &Arc<Table>,
    changed: TableSchema,
) -> Result<Arc<Table>> {
    catalog.commits().check_writable()?;
    let altered = Altered::new(table, changed)?;
    alter_all(catalog, std::slice::from_ref(&altered))?;
    Ok(altered.new)
}

/// Changes the schemas of tables in one commit. Each table comes once. `conflict` if one was changed
/// since.
///
/// What all rows must satisfy is verified beside writers first. The rows that were committed meanwhile
/// are verified while the gates of their tables are closed, and never under the commit lock.
pub(crate) fn alter_all(catalog: &Catalog, altered: &[Altered]) -> Result<()> {
    debug_assert!(
        altered.iter().map(|a| a.old.id()).collect::<Set<_>>().len() == altered.len(),
        "a table is altered twice by one commit"
    );
    let mut payload = record::begin(0);
    altered.iter().try_for_each(|a| record::alter_table(&mut payload, a.new.schema()))?;
    let asking = || altered.iter().filter(|a| verify::asks_more(&a.new, &a.old));
    let mut verified = Vec::new();
    for Altered { old, new } in asking() {
        new.layout().rules().compile_with(catalog.compiler());
        verified.push(verify_beside(catalog, old, new)?);
    }
    let gates: Vec<_> = asking().map(|a| a.old.gate()).collect();
    let _closed = Gates::take(std::iter::empty(), &gates);
    for (Altered { old, new }, verified) in asking().zip(verified) {
        verify_rest(catalog, old, new, verified)?;
    }
    let prepare = |_| altered.iter().try_for_each(|a| a.old.check_newest());
    catalog.commit_prepared(payload, prepare, |contents, commit, ()| {
        altered.iter().try_for_each(|a| install(catalog, contents, a, commit))
    })
}

/// Puts a new version of a table in the place of the old one.
fn install(
    catalog: &Catalog,
    contents: &mut Contents,
    Altered { old, new }: &Altered,
    commit: Timestamp,
) -> Result<()> {
    new.begin_at(commit);
    contents.replace(old, new)?;
    new.replace(old, commit);
    discard_indexes(catalog.garbage(), old, new, commit);
    if verify::adds_index(new, old) {
        new.consider(Work::IndexParts);
    }
    Ok(())
}

/// Verifies the rows of a table for a new version of it, beside writers. Returns the commit up to
/// which they satisfy it; 0 if that is not known.
fn verify_beside(catalog: &Catalog, table: &Arc<Table>, version: &Table) -> Result<Timestamp> {
    let mut verified = 0;
    for _ in 0..MAX_ROUNDS {
        let settled = catalog.commits().settled();
        let rows = match verify_since(catalog, table, version, verified) {
            Ok(rows) => rows,
            Err(error) if table.is_newest() && settled_change(catalog, table) <= settled => {
                return Err(error);
            }
            // A row that is written meanwhile may be seen although it is undone, or counted twice;
            // then the last look decides. A table truncated meanwhile has no rows that could conflict.
            Err(_) => break,
        };
        verified = settled;
        // A key of a unique index is compared with those of all rows each time.
        if rows <= REST || verify::adds_unique(version, table) {
            break;
        }
    }
    Ok(verified)
}

/// Verifies what was committed since. Must be called while the table's gate is closed.
fn verify_rest(
    catalog: &Catalog,
    table: &Arc<Table>,
    version: &Table,
    verified: Timestamp,
) -> Result<()> {
    table.check_newest()?;
    let changed = table.changed();
    if verified == 0 || changed > verified {
        verify_since(catalog, table, version, verified)?;
    }
    debug_assert!(table.changed() == changed, "commit {} has passed a gate", table.changed());
    Ok(())
}

/// Verifies the rows that were committed after a commit, all of them after commit 0, and enters those
/// in memory in new indexes. Returns how many were looked at for rules.
fn verify_since(
    catalog: &Catalog,
    table: &Arc<Table>,
    version: &Table,
    since: Timestamp,
) -> Result<usize> {
    // The snapshot keeps the segments being read from being removed after a merge or a truncation.
    let _pinned = catalog.commits().snapshots().take();
    let to_verify = ToVerify { rows: &Committed, since, memory: catalog.statement_memory() };
    if verify::adds_index(version, table) {
        let row = |node: &Node| to_verify.has_node(node).then(|| Committed.row(node)).flatten();
        version.enter_rows(&row)?;
    }
    if since > 0 && plant::is(Bug::IndexLate) {
        return Ok(0);
    }
    verify::verify(version, table, to_verify)
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
