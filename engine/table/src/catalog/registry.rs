//! The catalog: looks up tables and views, now and as of a snapshot, and commits changes.

use crate::catalog::contents::Contents;
use crate::commit::commits::Commits;
use crate::environment::Environment;
use crate::layout::rules::CompileRules;
use crate::record::{self, Place};
use crate::segments::garbage::Garbage;
use crate::statement_memory::StatementMemory;
use crate::table::agenda::{Agenda, Work};
use crate::table::version::Table;
use nacre_types::{
    Error, FIRST_TEMPORARY_TABLE, Result, TableId, TableSchema, Timestamp, ViewSchema, invariant,
    limits,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// The catalog. Changes are made by [`tables`](crate::catalog::tables),
/// [`indexes`](crate::catalog::indexes) and [`views`](crate::catalog::views).
pub(crate) struct Catalog {
    contents: RwLock<Contents>,
    agenda: Arc<Agenda>,
    /// Commit of the newest change, visible or not.
    last_ddl: AtomicU64,
    next_table: AtomicU64,
    next_temporary: AtomicU64,
    /// Partitions of a new table whose shard key does not specify a number; 0 for the number of
    /// tasks the host runs at once.
    partitions: usize,
    environment: Arc<Environment>,
    commits: Arc<Commits>,
    garbage: Garbage,
    /// Tables of transactions that may not have committed.
    uncommitted: Mutex<Vec<Weak<Table>>>,
}

impl Catalog {
    /// Creates a catalog with recovered contents. Table ids from `next_table` on are free.
    pub fn new(
        contents: Contents,
        next_table: TableId,
        partitions: usize,
        environment: Arc<Environment>,
        commits: Arc<Commits>,
        garbage: Garbage,
    ) -> Catalog {
        debug_assert!(
            contents.tables().all(|table| table.id() < next_table),
            "a table has an id from {next_table} on"
        );
        Catalog {
            agenda: contents.agenda().clone(),
            contents: RwLock::new(contents),
            last_ddl: AtomicU64::new(0),
            next_table: AtomicU64::new(u64::from(next_table)),
            next_temporary: AtomicU64::new(0),
            partitions,
            environment,
            commits,
            garbage,
            uncommitted: Mutex::default(),
        }
    }

    /// The memory that verifying rows takes its share of.
    pub fn statement_memory(&self) -> &StatementMemory {
        self.environment.statement_memory()
    }

    /// The commit pipeline for catalog changes.
    pub fn commits(&self) -> &Arc<Commits> {
        &self.commits
    }

    /// Collects dropped segments and files for removal.
    pub fn garbage(&self) -> &Garbage {
        &self.garbage
    }

    /// What background work its tables may have.
    pub fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    /// The newest version of the table at a place, and the number of its partition; `None` if it is
    /// gone.
    pub fn at_place(&self, place: Place) -> Option<(Arc<Table>, u32)> {
        self.read(|contents| contents.at_place(place))
    }

    /// Takes work of a kind off the agenda, by partition and as far as the caller asks, because it
    /// looks for that work now.
    pub fn take_works(&self, work: Work) -> impl Iterator<Item = (Arc<Table>, u32)> {
        self.agenda.places(work).into_iter().filter_map(move |place| self.take_work(work, place))
    }

    /// Takes work of a kind off the agenda. Returns the newest version of its table and the number
    /// of the partition; `None` if it needs none, or the table is gone.
    pub fn take_work(&self, work: Work, place: Place) -> Option<(Arc<Table>, u32)> {
        // In one look at the contents: a version, or rows, that come after it note their work again.
        self.read(|contents| {
            let found = contents.at_place(place);
            let Some((table, number)) = &found else {
                self.agenda.remove(work, place);
                return None;
            };
            debug_assert!(table.is_newest(), "work of {place:?} is taken for an old version");
            if table.partition(*number).take_need(work) { found } else { None }
        })
    }

    /// Reads the contents. `look` must not commit anything.
    pub fn read<T>(&self, look: impl FnOnce(&Contents) -> T) -> T {
        look(&self.contents.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        change(&mut self.contents.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether readers can proceed without waiting for a change.
    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        self.contents.try_read().is_ok()
    }

    /// All tables, by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.read(|contents| contents.tables().cloned().collect())
    }

    /// Looks up a table by name, ignoring ASCII case.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.read(|contents| contents.table(name).cloned())
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Result<Arc<Table>> {
        self.read(|contents| contents.table_by_id(id).cloned())
            .ok_or_else(|| Error::not_found(format!("table with id {id}")).with_sqlstate("42P01"))
    }

    /// The newest version of a table; `not_found` if it was dropped.
    pub fn newest(&self, table: &Arc<Table>) -> Result<Arc<Table>> {
        if table.is_newest() { Ok(table.clone()) } else { self.table_by_id(table.id()) }
    }

    /// The version of a table that takes rows which are written to this one now. `conflict` if none
    /// does.
    pub fn newest_for(&self, table: &Arc<Table>) -> Result<Arc<Table>> {
        if table.is_newest() {
            return Ok(table.clone());
        }
        let newest = self.table_by_id(table.id()).ok();
        newest.filter(|newest| newest.takes_rows_of(table)).ok_or_else(|| table.superseded())
    }

    /// All views, by name.
    pub fn views(&self) -> Vec<Arc<ViewSchema>> {
        self.read(|contents| contents.views().cloned().collect())
    }

    /// Looks up a view by name, ignoring ASCII case.
    pub fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        self.read(|contents| contents.view(name).cloned())
    }

    /// Commit of the newest change of the catalog, visible or not.
    pub fn last_ddl(&self) -> Timestamp {
        self.last_ddl.load(Ordering::Acquire)
    }

    /// The table that a name stands for at a timestamp, in its version at that time, ignoring ASCII
    /// case.
    pub fn table_at(&self, name: &str, at: Timestamp) -> Option<Arc<Table>> {
        self.read(|contents| contents.table_at(name, at))
    }

    /// The table with an id at a timestamp, in its version at that time.
    pub fn table_by_id_at(&self, id: TableId, at: Timestamp) -> Option<Arc<Table>> {
        self.read(|contents| contents.table_by_id_at(id, at))
    }

    /// The table with this schema, in its version at a timestamp. `not_found` if it did not exist
    /// then, `conflict` if its columns, indexes or name were different.
    pub fn table_of(&self, schema: &TableSchema, at: Timestamp) -> Result<Arc<Table>> {
        let Some(table) = self.table_by_id_at(schema.id, at) else {
            return Err(Error::not_found(format!("table {}", schema.name)).with_sqlstate("42P01"));
        };
        if table.is_of(schema) { Ok(table) } else { Err(table.superseded()) }
    }

    /// Names of the tables at a timestamp.
    pub fn table_names_at(&self, at: Timestamp) -> Vec<String> {
        let name = |table: Arc<Table>| table.schema().name.clone();
        let mut names: Vec<String> =
            self.read(|contents| contents.tables_at(at).map(name).collect());
        names.sort_unstable();
        names
    }

    /// The view that a name stands for at a timestamp, ignoring ASCII case.
    pub fn view_at(&self, name: &str, at: Timestamp) -> Option<Arc<ViewSchema>> {
        self.read(|contents| contents.view_at(name, at).cloned())
    }

    /// All views at a timestamp, by name.
    pub fn views_at(&self, at: Timestamp) -> Vec<Arc<ViewSchema>> {
        let mut views: Vec<Arc<ViewSchema>> =
            self.read(|contents| contents.views_at(at).cloned().collect());
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        debug_assert!(
            views.windows(2).all(|pair| pair[0].name != pair[1].name),
            "two views have one name at {at}"
        );
        views
    }

    /// All tables, and those that were dropped and that a snapshot may see.
    pub fn kept_tables(&self) -> Vec<Arc<Table>> {
        self.read(|contents| contents.kept_tables().cloned().collect())
    }

    /// Drops versions of tables, dropped tables and views that no snapshot from `oldest` on can
    /// read.
    pub fn forget_versions(&self, oldest: Timestamp) {
        debug_assert!(
            oldest <= self.commits.snapshots().visible(),
            "versions before {oldest} are forgotten, which is not visible"
        );
        if self.read(|contents| contents.has_forgettable(oldest)) {
            self.write(|contents| contents.forget(oldest));
        }
        for id in self.agenda.take_altered() {
            // A change from here on notes the table again.
            let Ok(table) = self.table_by_id(id) else { continue };
            table.forget_versions(oldest);
            if table.previous().is_some() {
                self.agenda.add_altered(id);
            }
        }
    }

    /// The next free table id.
    pub fn next_table_id(&self) -> TableId {
        let next = self.next_table.load(Ordering::Relaxed);
        // The greatest id stands for none.
        TableId::try_from(next).unwrap_or(TableId::MAX)
    }

    /// Creates a table with a new id, without adding it to the catalog. Sets the number of
    /// partitions if the shard key does not specify one.
    pub fn new_table(&self, mut schema: TableSchema) -> Result<Arc<Table>> {
        self.commits.check_writable()?;
        schema.check_shard_key()?;
        schema.check_indexes()?;
        schema.complete_indexes();
        if let Some(shard) = schema.shard_key.as_mut().filter(|s| s.partitions == 0) {
            let wanted = match self.partitions {
                0 => self.environment.width(),
                wanted => wanted,
            };
            shard.partitions = wanted.clamp(1, limits::MAX_PARTITIONS) as u32;
        }
        schema.id = match schema.is_temporary() {
            true => self.temporary_id(),
            false => {
                let id = self.next_table.fetch_add(1, Ordering::Relaxed);
                let id = TableId::try_from(id).ok().filter(|id| *id < FIRST_TEMPORARY_TABLE);
                let most = FIRST_TEMPORARY_TABLE - 1;
                id.ok_or_else(|| Error::limit(format!("{most} tables have been created")))?
            }
        };
        debug_assert!(
            schema.shard_key.as_ref().is_none_or(|shard| shard.partitions > 0),
            "table {} has no partitions",
            schema.name
        );
        Ok(Arc::new(Table::new(schema)))
    }

    /// An id for a temporary table. One that comes again belonged to a table that is long gone.
    fn temporary_id(&self) -> TableId {
        let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
        let id = FIRST_TEMPORARY_TABLE + (number % u64::from(FIRST_TEMPORARY_TABLE - 1)) as TableId;
        debug_assert!(id >= FIRST_TEMPORARY_TABLE, "{id} is the id of a table of all sessions");
        id
    }

    /// Like [`Catalog::new_table`], for a table that exists for one transaction only. Its rows in
    /// memory count.
    pub fn new_uncommitted(&self, schema: TableSchema) -> Result<Arc<Table>> {
        let table = self.new_table(schema)?;
        debug_assert!(
            self.table_by_id(table.id()).is_err(),
            "the id {} of a new table is that of another",
            table.id()
        );
        self.compile_rules(&table);
        self.enlist_uncommitted(&table);
        Ok(table)
    }

    /// Counts the rows of a table that is not in the catalog yet.
    pub fn enlist_uncommitted(&self, table: &Arc<Table>) {
        debug_assert!(table.is_newest(), "an old version is counted as one that is new");
        debug_assert!(
            table.previous().is_none(),
            "table {} is in no catalog and has replaced another version",
            table.schema().name
        );
        let mut known = self.uncommitted.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        known.push(Arc::downgrade(table));
        table.enlist(&self.agenda);
    }

    /// The tables that may be in no catalog yet, and whose rows count.
    pub fn uncommitted(&self) -> Vec<Arc<Table>> {
        let known = self.uncommitted.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = known.iter().filter_map(Weak::upgrade);
        let is_known = |table: &Arc<Table>| {
            self.table_by_id(table.id()).is_ok_and(|known| known.shares_partitions(table))
        };
        tables.filter(|table| !is_known(table)).collect()
    }

    /// The compiler of the rules of tables.
    pub fn compiler(&self) -> Option<CompileRules> {
        self.read(Contents::compiler)
    }

    /// Gives a version of a table the compiler of its rules.
    pub fn compile_rules(&self, table: &Table) {
        table.layout().rules().compile_with(self.compiler());
    }

    /// Notes that a commit of a transaction changes the contents, before anything shows it. Must be
    /// called under the commit lock.
    pub fn announce(&self, commit: Timestamp) {
        // The number of a commit whose record was not written is that of the next one.
        debug_assert!(self.last_ddl() <= commit, "commit {commit} changes an older catalog");
        debug_assert!(
            commit > self.commits.snapshots().visible(),
            "commit {commit} is visible before it changes the catalog"
        );
        self.last_ddl.store(commit, Ordering::Release);
    }

    /// Changes the contents as [announced](Catalog::announce).
    pub fn change<T>(&self, commit: Timestamp, change: impl FnOnce(&mut Contents) -> T) -> T {
        debug_assert!(self.last_ddl() == commit, "commit {commit} changes the catalog unannounced");
        self.write(change)
    }

    /// Notes that a commit which is followed changes the contents, before anything shows it. Must be
    /// called under the commit lock. Returns the contents for [`Catalog::end_change`].
    pub fn begin_change(&self, contents: Contents, commit: Timestamp) -> Contents {
        debug_assert!(self.last_ddl() < commit, "commit {commit} changes the catalog twice");
        debug_assert!(
            commit > self.commits.snapshots().visible(),
            "commit {commit} is visible before the catalog follows it"
        );
        self.last_ddl.store(commit, Ordering::Release);
        contents
    }

    /// Replaces the contents by those after a commit which is followed.
    pub fn end_change(&self, contents: Contents) {
        debug_assert!(
            contents.tables().all(|table| table.is_newest()),
            "an old version of a table is in the catalog"
        );
        debug_assert!(
            contents.tables().all(|table| table.created() <= self.last_ddl()),
            "a table is in the catalog before the commit that creates it"
        );
        self.write(|known| *known = contents);
    }

    /// Notes that table ids below this one are taken.
    pub fn saw_tables(&self, next: TableId) {
        self.next_table.fetch_max(u64::from(next), Ordering::Relaxed);
        debug_assert!(self.next_table_id() >= next, "a table id below {next} is given out again");
    }

    /// Commits a change of the catalog and waits until it is durable: DDL is always strict.
    pub fn commit(
        &self,
        payload: Vec<u8>,
        apply: impl FnOnce(&mut Contents, Timestamp) -> Result<()>,
    ) -> Result<()> {
        self.commit_prepared(payload, |_| Ok(()), |contents, commit, ()| apply(contents, commit))
    }

    /// Like [`Catalog::commit`]. `prepare` does slow work under the commit lock, which prevents
    /// catalog changes but not lookups.
    pub fn commit_prepared<T>(
        &self,
        mut payload: Vec<u8>,
        prepare: impl FnOnce(Timestamp) -> Result<T>,
        apply: impl FnOnce(&mut Contents, Timestamp, T) -> Result<()>,
    ) -> Result<()> {
        // The append must not fail after the catalog has changed, so its length check comes first:
        // readers can go on meanwhile, and none sees a version without a record.
        nacre_log::check_length(payload.len())?;
        debug_assert!(
            record::timestamp(&payload) == Some(0),
            "a change of the catalog is stamped already"
        );
        let mut turn = self.commits.lock();
        let commit = turn.next();
        // What it has verified may have taken long.
        self.commits.check_open()?;
        self.commits.log().check_usable()?;
        debug_assert!(
            commit > self.commits.snapshots().visible(),
            "commit {commit} is visible before it is written"
        );
        let prepared = prepare(commit)?;
        invariant!(
            self.last_ddl() <= commit,
            "commit {commit} changes the catalog after commit {} has",
            self.last_ddl()
        );
        // Set first, so that a reader that sees the change also knows that it may be too new.
        self.last_ddl.store(commit, Ordering::Release);
        self.write(|contents| apply(contents, commit, prepared))?;
        record::stamp(&mut payload, commit);
        let committed = turn.append(&payload)?;
        debug_assert!(
            committed.commit == commit && self.last_ddl() == commit,
            "commit {commit} of the catalog is logged as {}",
            committed.commit
        );
        drop(turn);
        self.commits.settle_strictly(committed)
    }
}
