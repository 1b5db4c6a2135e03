//! `ALTER TABLE` and `TRUNCATE`: a table gets a new version; no row is rewritten.
//!
//! A [`Table`] value is one version of a table: it never changes its schema. The newest version keeps the one before it
//! as long as a snapshot may ask for it, so that a transaction goes on with the schema, and after `TRUNCATE` with the
//! rows, of its beginning. Altered versions share their partitions; a truncated table gets new ones.
//!
//! Whoever wrote to a version that is not the newest when he commits gets `conflict`: his rows would be of the wrong
//! shape, or in partitions nobody reads any more.

use crate::index::hash::table::{HashTable, KeySet};
use crate::record;
use crate::store::Store;
use crate::table::version::Table;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, IndexId, Result, TableSchema, Timestamp};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Store {
    /// Commit of the newest change of the catalog, visible or not.
    pub fn last_ddl(&self) -> Timestamp {
        self.last_ddl.load(Ordering::Acquire)
    }

    /// A table by the name it had at a timestamp, as it was then, without regard to ASCII case. One that was made
    /// later has today's name and the schema of its beginning, unless the name was another's then.
    pub fn table_at(&self, name: &str, at: Timestamp) -> Option<Arc<Table>> {
        let today = self.table(name);
        // Asked afterwards: whoever changes the catalog says so first.
        if self.last_ddl() <= at
            || today.as_ref().is_some_and(|table| table.made() <= at && table.since() <= at)
        {
            return today;
        }
        // It has another name now, had another shape then, or was not there.
        let there = self
            .tables()
            .into_iter()
            .filter(|table| table.made() <= at || plant::is(Bug::NameReuse));
        let mut versions = there.map(|table| table.version_at(at));
        let then = versions.find(|table| table.schema().name.eq_ignore_ascii_case(name));
        then.or_else(|| today.filter(|table| table.made() > at).map(|table| table.version_at(at)))
    }

    /// The table of a schema as it was at a timestamp. `not_found` when it was dropped since, `conflict` when its columns,
    /// indexes or name were others then. (One that was made later had no name.)
    pub fn table_of(&self, schema: &TableSchema, at: Timestamp) -> Result<Arc<Table>> {
        let newest = self.table_by_id(schema.id).map_err(|_| {
            Error::not_found(format!("table {}", schema.name)).with_sqlstate("42P01")
        })?;
        let table = newest.version_at(at);
        let known = table.schema();
        // On which unique keys there are the answers of upserts depend.
        let same_indexes = known
            .indexes
            .iter()
            .map(|index| index.id)
            .eq(schema.indexes.iter().map(|index| index.id));
        let same_name = known.name == schema.name || newest.made() > at;
        let is_same = same_name && known.same_columns(schema) && same_indexes;
        if is_same { Ok(table) } else { Err(table.superseded()) }
    }

    /// Names of the tables at a timestamp.
    pub fn table_names_at(&self, at: Timestamp) -> Vec<String> {
        let name = |table: &Arc<Table>| {
            let then = if table.made() <= at { table.version_at(at) } else { table.clone() };
            then.schema().name.clone()
        };
        let mut names: Vec<String> = self.tables().iter().map(name).collect();
        names.sort_unstable();
        names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        names
    }

    /// Gives a table another schema, made from its newest one: other names, more columns, fewer columns, another order.
    /// `conflict` when the table was changed since.
    pub fn alter_table(&self, table: &Arc<Table>, changed: TableSchema) -> Result<Arc<Table>> {
        self.alter(table, changed, None)
    }

    /// The same; new unique indexes need not be verified when nothing changed the table since `verified`.
    pub(crate) fn alter(
        &self,
        table: &Arc<Table>,
        mut changed: TableSchema,
        verified: Option<Timestamp>,
    ) -> Result<Arc<Table>> {
        self.check_open()?;
        let old = table.schema();
        changed.id = old.id;
        changed.version = old.version;
        if !changed.same_columns(old) {
            changed.version = old.version.checked_add(1).ok_or_else(|| {
                Error::limit(format!("table {} has been altered {} times", old.name, u16::MAX))
                    .with_hint("copy it into a new table")
            })?;
        }
        changed.check_indexes()?;
        changed.complete_indexes();
        let mut payload = record::begin(0);
        record::alter_table(&mut payload, &changed)?;
        let (from, to) = (old.name.to_ascii_lowercase(), changed.name.to_ascii_lowercase());
        let mut made = None;
        let prepare = |commit| {
            table.check_newest()?;
            let version = Arc::new(Table::altered(table, changed, commit));
            if version.indexes().iter().any(|index| table.index(index.schema.id).is_err()) {
                version.enter_all()?;
                if verified != Some(table.changed())
                    && !(verified.is_some() && plant::is(Bug::IndexLate))
                {
                    version.verify_new_indexes(table)?;
                }
                version.partitions().iter().for_each(|partition| partition.consider_indexing());
            }
            Ok(version)
        };
        self.commit_prepared_ddl(payload, prepare, |catalog, commit, version| {
            if from != to && (catalog.by_name.contains_key(&to) || catalog.views.contains_key(&to))
            {
                return Err(Error::already_exists(format!("table {}", version.schema().name))
                    .with_sqlstate("42P07"));
            }
            table.end_at(commit);
            version.set_previous(Some(table.clone()));
            self.discard_parts(table, &version, commit);
            catalog.by_name.remove(&from);
            catalog.by_name.insert(to.clone(), version.clone());
            catalog.by_id.insert(version.id(), version.clone());
            made = Some(version);
            Ok(())
        })?;
        made.ok_or_else(|| Error::not_found("the altered table"))
    }

    /// Takes all rows out of tables, in one commit. Transactions that began before go on to see them.
    pub fn truncate(&self, tables: &[Arc<Table>]) -> Result<()> {
        self.check_open()?;
        let mut payload = record::begin(0);
        tables.iter().for_each(|table| record::truncate(&mut payload, table.id()));
        self.commit_ddl(payload, |catalog, commit| {
            tables.iter().try_for_each(|table| table.check_newest())?;
            for table in tables {
                let version = Arc::new(Table::emptied(table, commit));
                table.end_at(commit);
                version.set_previous(Some(table.clone()));
                catalog.by_name.insert(version.schema().name.to_ascii_lowercase(), version.clone());
                catalog.by_id.insert(version.id(), version);
                self.discard_segments(table, commit);
            }
            Ok(())
        })
    }

    /// Ends all current segments of a table; their files go when no snapshot sees them.
    pub(crate) fn discard_segments(&self, table: &Table, commit: Timestamp) {
        let mut garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        for state in table.segments().iter().filter(|s| s.is_current()) {
            state.drop_at(commit);
            garbage.push(state.clone());
        }
        drop(garbage);
        for partition in table.partitions() {
            self.discard_tables(partition.segments().tables(), commit);
        }
    }

    /// Files of hash tables that are not the table's any more; they go when no snapshot reads them.
    pub(crate) fn discard_tables(&self, tables: &[Arc<HashTable>], commit: Timestamp) {
        let mut gone = self.gone_parts.lock().unwrap_or_else(PoisonError::into_inner);
        gone.extend(
            tables.iter().flat_map(|table| &table.files).map(|file| (commit, file.clone())),
        );
    }

    /// Parts and hash tables of indexes that a version of a table does not have any more. The hash tables go from its
    /// lists at once; the parts stay with their segments, for whoever sees the version before, and go with their files
    /// when no snapshot reads them.
    fn discard_parts(&self, old: &Table, new: &Table, commit: Timestamp) {
        let is_gone = |index: IndexId| old.index(index).is_ok() && new.index(index).is_err();
        let is_of_none =
            |hashes: &Arc<HashTable>| matches!(hashes.keys, KeySet::Index(id) if is_gone(id));
        let mut gone = self.gone_parts.lock().unwrap_or_else(PoisonError::into_inner);
        for state in new.segments() {
            gone.extend(state.part_files(is_gone).into_iter().map(|file| (commit, file)));
        }
        drop(gone);
        for partition in new.partitions() {
            let tables = partition.segments().tables().to_vec();
            let gone: Vec<_> = tables.into_iter().filter(is_of_none).collect();
            self.discard_tables(&gone, commit);
            partition.update_tables(|tables| tables.retain(|hashes| !is_of_none(hashes)));
        }
    }

    /// The newest version of a table; `not_found` when it was dropped.
    pub(crate) fn newest(&self, table: &Arc<Table>) -> Result<Arc<Table>> {
        if table.is_newest() { Ok(table.clone()) } else { self.table_by_id(table.id()) }
    }

    /// Forgets versions of tables that no snapshot from `oldest` on asks for.
    pub(crate) fn forget_versions(&self, oldest: Timestamp) {
        self.tables().iter().for_each(|table| table.forget_versions(oldest));
    }
}

impl Table {
    /// The version of this table at a timestamp; the oldest there is when it was made later.
    pub(crate) fn version_at(self: &Arc<Self>, at: Timestamp) -> Arc<Table> {
        let mut version = self.clone();
        while version.since() > at {
            match version.previous() {
                Some(previous) => version = previous,
                None => break,
            }
        }
        version
    }

    fn forget_versions(self: &Arc<Self>, oldest: Timestamp) {
        if self.previous().is_some() {
            self.version_at(oldest).set_previous(None);
        }
    }

    /// Fails when another version has taken the place of this one.
    pub(crate) fn check_newest(&self) -> Result<()> {
        if self.is_newest() {
            return Ok(());
        }
        let name = &self.schema().name;
        if self.is_dropped() {
            return Err(Error::not_found(format!("table {name}")).with_sqlstate("42P01"));
        }
        Err(self.superseded())
    }

    /// The error for work on a version that is not the newest any more.
    pub(crate) fn superseded(&self) -> Error {
        Error::conflict(format!(
            "table {} was altered or truncated by another transaction",
            self.schema().name
        ))
        .with_table(self.schema().name.clone())
        .with_hint("retry the transaction")
    }
}

impl crate::Transaction {
    /// A table by the name it had when the transaction began.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.store().table_at(name, self.snapshot())
    }

    /// The table of a schema, as it was when the transaction began. `not_found` when it was dropped since, `conflict`
    /// when its columns, indexes or name were others then: bind the statement again.
    pub fn table_of(&self, schema: &TableSchema) -> Result<Arc<Table>> {
        self.store().table_of(schema, self.snapshot())
    }
}
