//! The storage of one database: assembles its parts and forwards each call to the part that
//! implements it.

use crate::catalog::registry::Catalog;
use crate::catalog::{indexes, tables, views};
use crate::commit::commits::Commits;
use crate::environment::Environment;
use crate::load::bulk_load::BulkLoad;
use crate::load::bulk_update::BulkUpdate;
use crate::load::loaded::OnDuplicate;
use crate::load::loader::Loader;
use crate::maintenance::check::run::Check;
use crate::maintenance::context::TaskContext;
use crate::maintenance::memory;
use crate::maintenance::merge_all::{MergeAll, MergeStep};
use crate::maintenance::pressure::{Admission, Asking};
use crate::maintenance::scheduler::Scheduler;
use crate::options::StoreOptions;
use crate::read::equal::{self, Equal, FoundRows};
use crate::read::point;
use crate::read::warming::warming;
use crate::recovery::follow::Follow;
use crate::recovery::open::{self, Recovered};
use crate::segments::garbage::Garbage;
use crate::statement_memory::StatementMemory;
use crate::table::version::Table;
use crate::temporary::TemporaryFile;
use crate::transaction::handle::Transaction;
use crate::transaction::manager::TransactionManager;
use core::time::Duration;
use nacre_host::{Host, Warming, waits};
use nacre_log::Log;
use nacre_rowstore::Owner;
use nacre_segment::BlockCache;
use nacre_types::{
    Error, IndexSchema, MemoryPart, Result, TableId, TableSchema, Timestamp, Value, ViewSchema,
    limits,
};
use std::sync::Arc;

/// The storage of one database. Shared between threads.
pub struct Store {
    environment: Arc<Environment>,
    commits: Arc<Commits>,
    catalog: Arc<Catalog>,
    transactions: Arc<TransactionManager>,
    loader: Arc<Loader>,
    scheduler: Scheduler,
    /// How a database that is only read follows its writer.
    follow: Option<Follow>,
}

impl Store {
    /// Opens the database in the host's store, recovering it from its snapshot and log.
    pub fn open(host: Host, options: StoreOptions) -> Result<Arc<Store>> {
        let opened = waits::waiting(&host.store, &host.parallelism, || open::open(&host, &options));
        let Recovered { log, files, contents, next, follow } = opened?;
        let (files, options) = (Arc::new(files), Arc::new(options));
        let clock = host.clock.clone();
        let statements = StatementMemory::new(options.statement_bytes);
        let cache = files.cache().clone();
        let environment = Arc::new(Environment::new(host, cache, statements, options.read_only));
        debug_assert!(
            (1..=limits::MAX_SEGMENT_ROWS).contains(&options.segment_rows),
            "segments of {} rows",
            options.segment_rows
        );
        let commits = Arc::new(Commits::new(log, clock, options.durability, next.commit));
        let catalog = Arc::new(Catalog::new(
            contents,
            next.table,
            options.partitions,
            environment.clone(),
            commits.clone(),
            Garbage::default(),
        ));
        let transactions = Arc::new(TransactionManager::new(
            catalog.clone(),
            environment.clone(),
            options.gather_bytes(),
        ));
        let loader = Arc::new(Loader::new(
            catalog.clone(),
            files.clone(),
            transactions.clone(),
            options.clone(),
        ));
        let scheduler = Scheduler::new(TaskContext::new(catalog.clone(), files, options));
        Ok(Arc::new(Store {
            environment,
            commits,
            catalog,
            transactions,
            loader,
            scheduler,
            follow,
        }))
    }

    /// Whether the database was opened only to be read.
    pub fn is_read_only(&self) -> bool {
        self.commits.is_read_only()
    }

    /// Makes visible what the writer of a database that is opened only to be read has committed
    /// since. Transactions keep their snapshots. Does nothing in the instance that writes. Returns
    /// the newest commit that new snapshots see.
    pub fn refresh(&self) -> Result<Timestamp> {
        match &self.follow {
            Some(follow) => {
                self.environment.waiting(|| follow.refresh(self.scheduler.context(), &self.catalog))
            }
            None => Ok(self.visible()),
        }
    }

    /// Fails if the database is closed or was opened only to be read.
    pub fn check_writable(&self) -> Result<()> {
        self.commits.check_writable()
    }

    /// Starts a transaction on the newest snapshot.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(&self.transactions)
    }

    /// Creates an owner of row locks, or a waiter for them.
    pub fn new_owner(&self) -> Arc<Owner> {
        self.transactions.new_owner()
    }

    /// The newest committed row of a key, projected; `None` if there is none. `conflict` if this is
    /// not the newest version of the table.
    pub fn get(
        &self,
        table: &Table,
        key: &[Value],
        projection: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        self.check_open()?;
        debug_assert!(
            projection.iter().all(|at| *at < table.schema().columns.len()),
            "columns {projection:?} of table {}",
            table.schema().name
        );
        point::newest(self.commits.snapshots(), table, key, projection)
    }

    /// Finds the newest committed rows with some values and passes them to `read`, which may be
    /// called again. `conflict` if this is not the newest version of the table. Returns `false` if
    /// there are too many rows.
    pub fn with_equal(
        &self,
        table: &Arc<Table>,
        equal: &Equal<'_>,
        read: &mut dyn FnMut(Vec<FoundRows>) -> Result<()>,
    ) -> Result<bool> {
        self.check_open()?;
        debug_assert!(
            equal.values.iter().all(|(at, _)| {
                *at < table.schema().columns.len() + table.schema().computed.len()
            }),
            "a column that table {} does not have",
            table.schema().name
        );
        equal::newest(self.commits.snapshots(), table, equal, read)
    }

    /// The newest commit that new snapshots see.
    pub fn visible(&self) -> Timestamp {
        self.commits.snapshots().visible()
    }

    /// The oldest commit at which something reads, or may begin to.
    pub fn oldest_read(&self) -> Timestamp {
        self.commits.snapshots().oldest()
    }

    /// Makes everything committed visible, after waiting for its sync if necessary.
    pub fn catch_up(&self) -> Result<()> {
        self.commits.catch_up()
    }

    /// Makes everything committed so far durable, regardless of the durability level.
    pub fn sync_log(&self) -> Result<()> {
        self.commits.sync_log()
    }

    /// Makes the current contents of the catalog durable, and visible to new snapshots, before a
    /// caller depends on them.
    pub fn settle_catalog(&self) -> Result<()> {
        self.commits.log().check_usable()?;
        self.commits.sync_log()?;
        self.commits.catch_up()
    }

    /// The log.
    pub fn log(&self) -> &Log {
        self.commits.log()
    }

    /// The end of the log, in bytes since its beginning.
    pub fn log_position(&self) -> u64 {
        self.commits.log().position()
    }

    /// What [`StoreOptions::accept_loss`] gave up when the database was opened, one error each.
    pub fn losses(&self) -> &[Error] {
        self.commits.log().losses()
    }

    /// `closed` once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        self.commits.check_open()
    }

    /// Syncs the log and rejects all further work. A second call waits for the first, or retries.
    pub fn close(&self) -> Result<()> {
        self.commits.refuse_more();
        self.scheduler.stop();
        self.commits.sync_log()?;
        self.commits.log().close()
    }

    /// Host services for statement execution.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The cache of segment blocks.
    pub fn cache(&self) -> &Arc<BlockCache> {
        self.environment.cache()
    }

    /// What each part holds in memory, and its limit.
    pub fn memory(&self) -> Vec<MemoryPart> {
        memory::parts(self.scheduler.context(), &self.environment)
    }

    /// Asks for room in the rowstores before a write, and does nothing about it. `limit` if there
    /// is none and no flush can make any.
    pub fn admit_write(&self, asking: Asking) -> Result<Admission> {
        self.scheduler.admit_write(asking)
    }

    /// The host's monotonic clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.environment.now_ns()
    }

    /// Number of tasks the host runs concurrently.
    pub fn width(&self) -> usize {
        self.environment.width()
    }

    /// Creates a temporary file; `None` if the host's files are in memory.
    pub fn temporary_file(&self) -> Result<Option<TemporaryFile>> {
        self.environment.temporary_file()
    }

    /// All tables, by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.catalog.tables()
    }

    /// What is brought to the local disk before it is asked for: the footers and indexes of all tables.
    pub fn warming(&self) -> Warming {
        warming(&self.tables())
    }

    /// Looks up a table by name, ignoring ASCII case.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.catalog.table(name)
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Result<Arc<Table>> {
        self.catalog.table_by_id(id)
    }

    /// The table that a name stands for at a timestamp, in its version at that time, ignoring ASCII
    /// case.
    pub fn table_at(&self, name: &str, at: Timestamp) -> Option<Arc<Table>> {
        self.catalog.table_at(name, at)
    }

    /// The table with an id at a timestamp, in its version at that time.
    pub fn table_by_id_at(&self, id: TableId, at: Timestamp) -> Option<Arc<Table>> {
        self.catalog.table_by_id_at(id, at)
    }

    /// The table with this schema, in its version at a timestamp. `not_found` if it did not exist
    /// then, `conflict` if its columns, indexes or name were different.
    pub fn table_of(&self, schema: &TableSchema, at: Timestamp) -> Result<Arc<Table>> {
        self.catalog.table_of(schema, at)
    }

    /// Names of the tables at a timestamp.
    pub fn table_names_at(&self, at: Timestamp) -> Vec<String> {
        self.catalog.table_names_at(at)
    }

    /// Commit of the newest change of the catalog, visible or not.
    pub fn last_ddl(&self) -> Timestamp {
        self.catalog.last_ddl()
    }

    /// Creates a table with a new id. If the shard key does not specify a number of partitions, the
    /// options do.
    pub fn create_table(&self, schema: TableSchema) -> Result<Arc<Table>> {
        tables::create(&self.catalog, schema)
    }

    /// Like [`Store::create_table`]. A table of the same name is dropped in the same commit.
    pub fn replace_table(&self, schema: TableSchema) -> Result<Arc<Table>> {
        tables::replace(&self.catalog, schema)
    }

    /// Drops a table with all its contents. Transactions that still read it continue; writes to it
    /// fail.
    pub fn drop_table(&self, table: &Arc<Table>) -> Result<()> {
        tables::drop_all(&self.catalog, std::slice::from_ref(table))
    }

    /// Drops several tables, or none of them. Duplicates are ignored.
    pub fn drop_tables(&self, tables: &[Arc<Table>]) -> Result<()> {
        tables::drop_all(&self.catalog, tables)
    }

    /// Changes a table's schema, given one derived from its newest schema: renamed, added, dropped
    /// or reordered columns. `conflict` if the table was changed since.
    pub fn alter_table(&self, table: &Arc<Table>, changed: TableSchema) -> Result<Arc<Table>> {
        tables::alter(&self.catalog, table, changed)
    }

    /// Removes all rows of tables, in one commit. Transactions that began before still see them.
    pub fn truncate(&self, tables: &[Arc<Table>]) -> Result<()> {
        tables::truncate(&self.catalog, tables)
    }

    /// Creates an index and returns the version of the table that has it. The index gets a new id.
    /// `constraint` if it is unique and two rows have the same values; `conflict` if the table was
    /// changed since.
    pub fn create_index(&self, table: &Arc<Table>, index: IndexSchema) -> Result<Arc<Table>> {
        indexes::create(&self.catalog, table, index)
    }

    /// Drops an index by name and returns the version of the table without it. `conflict` if the
    /// table was changed since.
    pub fn drop_index(&self, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
        indexes::remove(&self.catalog, table, name)
    }

    /// Drops indexes by name, each once, or none of them. `conflict` if one of their tables was
    /// changed since.
    pub fn drop_indexes(&self, indexes: &[(Arc<Table>, String)]) -> Result<()> {
        indexes::remove_all(&self.catalog, indexes)
    }

    /// All views, by name.
    pub fn views(&self) -> Vec<Arc<ViewSchema>> {
        self.catalog.views()
    }

    /// Looks up a view by name, ignoring ASCII case.
    pub fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        self.catalog.view(name)
    }

    /// All views at a timestamp, by name.
    pub fn views_at(&self, at: Timestamp) -> Vec<Arc<ViewSchema>> {
        self.catalog.views_at(at)
    }

    /// The view that a name stands for at a timestamp, ignoring ASCII case.
    pub fn view_at(&self, name: &str, at: Timestamp) -> Option<Arc<ViewSchema>> {
        self.catalog.view_at(name, at)
    }

    /// Creates a view. `replace` allows it to replace another.
    pub fn create_view(&self, view: ViewSchema, replace: bool) -> Result<()> {
        views::create(&self.catalog, view, replace)
    }

    /// Drops several views, or none of them. Duplicates are ignored.
    pub fn drop_views(&self, names: &[String]) -> Result<()> {
        views::remove_all(&self.catalog, names)
    }

    /// Starts a bulk load into a table.
    pub fn bulk_load(&self, table: &Arc<Table>, on_duplicate: OnDuplicate) -> BulkLoad {
        BulkLoad::into_table(&self.loader, table, on_duplicate)
    }

    /// Starts a load into a table that is created when the load finishes. `already_exists` if its
    /// name is taken now or when the load finishes, unless the table `replaces` the one that has it.
    pub fn bulk_create(&self, schema: TableSchema, replaces: bool) -> Result<BulkLoad> {
        BulkLoad::create_table(&self.loader, schema, replaces)
    }

    /// Starts an update of many rows of segments. `rekeys` if a row may get another primary key,
    /// unique value or partition.
    pub fn bulk_update(
        &self,
        transaction: &Transaction,
        table: &Arc<Table>,
        rekeys: bool,
    ) -> BulkUpdate {
        BulkUpdate::new(&self.loader, table, rekeys, transaction.own_segments())
    }

    /// The number of rows from which on a statement updates or deletes them together.
    pub fn bulk_rows(&self) -> usize {
        self.loader.options().bulk_rows
    }

    /// The number of rows from which on a statement inserts them as segments.
    pub fn load_rows(&self) -> usize {
        self.loader.options().load_rows
    }

    /// Whether [`Store::maintain`] has something to do.
    pub fn needs_maintenance(&self) -> bool {
        self.scheduler.needs_maintenance()
    }

    /// Whether the rowstores exceed their soft limit and a flush can make room.
    pub fn can_relieve(&self) -> bool {
        self.scheduler.can_relieve()
    }

    /// Time until acknowledged commits must be synced; `None` if all are.
    pub fn sync_due_in(&self) -> Option<Duration> {
        self.commits.sync_due_in()
    }

    /// Does one unit of background work: a due sync, a piece of a snapshot, a step of a flush, a
    /// merge or an index build, or removal of files. Returns whether there may be more; `false` if
    /// another call is doing it.
    ///
    /// After a read of absent bytes the work keeps its place, and the next call continues once they
    /// were fetched. If they cannot be, [`Store::give_up_maintenance`] must be called.
    pub fn maintain_step(&self) -> Result<bool> {
        self.scheduler.maintain()
    }

    /// Like [`Store::maintain_step`], but waits for other threads that are doing it.
    pub fn maintain_step_in_turn(&self) -> Result<bool> {
        self.scheduler.maintain_in_turn()
    }

    /// Lets the background work whose last step met absent bytes fail: they cannot be fetched.
    pub fn give_up_maintenance(&self) {
        self.scheduler.give_up();
    }

    /// Like [`Store::maintain_step`], but fetches absent bytes, blocking the thread.
    pub fn maintain(&self) -> Result<bool> {
        self.maintained(|| self.scheduler.maintain())
    }

    /// Like [`Store::maintain`], but waits for other threads that are doing it.
    pub fn maintain_in_turn(&self) -> Result<bool> {
        self.maintained(|| self.scheduler.maintain_in_turn())
    }

    /// Calls a step of background work until it misses nothing. Fails with the miss where threads
    /// cannot block.
    fn maintained<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        let mut has_missed = false;
        let done = self.environment.fetching_now(|| {
            let done = step();
            has_missed = done.as_ref().is_err_and(|error| error.missing().is_some());
            done
        });
        // Where threads cannot block, something else fetches.
        if has_missed && done.as_ref().is_err_and(|error| error.missing().is_none()) {
            self.give_up_maintenance();
        }
        done
    }

    /// Moves a table's committed rows from the rowstore into segments.
    pub fn flush(&self, table: &Arc<Table>) -> Result<()> {
        self.scheduler.flush(table)
    }

    /// Starts to merge the segments of each partition of a table into one sorted run.
    pub fn begin_merge_all(&self, table: &Arc<Table>) -> MergeAll {
        MergeAll::new(table)
    }

    /// Does a step of a merge of a whole table, between which flushes, snapshots and other threads'
    /// work can run. After a read of absent bytes, it is like [`Store::maintain_step`].
    pub fn merge_all_step(&self, merge: &mut MergeAll) -> Result<MergeStep> {
        merge.step(&self.scheduler)
    }

    /// Merges a whole table, fetching absent bytes, which blocks the thread.
    pub fn merge_all(&self, table: &Arc<Table>) -> Result<()> {
        let mut merge = self.begin_merge_all(table);
        while self.maintained(|| self.merge_all_step(&mut merge))? != MergeStep::Done {}
        Ok(())
    }

    /// The context of background tasks.
    #[cfg(test)]
    pub(crate) fn context(&self) -> &TaskContext {
        self.scheduler.context()
    }

    /// The scheduler of background tasks.
    #[cfg(test)]
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// State shared by all transactions.
    #[cfg(test)]
    pub(crate) fn transactions(&self) -> &TransactionManager {
        &self.transactions
    }

    /// Begins a check of every checksum, every zone map, the order of segments, the delete bitmaps,
    /// that each key is stored in one place only, every index against the rows, and that background
    /// work is planned.
    pub fn begin_check(&self) -> Check {
        Check::new(self.scheduler.context())
    }

    /// Checks a part of what is stored; returns whether there may be more. Can be called again after
    /// a read of absent bytes.
    pub fn check_step(&self, check: &mut Check) -> Result<bool> {
        check.step(self.scheduler.context())
    }

    /// Ends a check. Returns the violations, one sentence each.
    pub fn end_check(&self, check: Check) -> Vec<String> {
        let mut findings = check.into_findings();
        findings.extend(self.scheduler.check_agenda());
        findings
    }

    /// Checks everything; see [`Store::begin_check`]. Fetches absent bytes, blocking the thread; where
    /// it cannot block, they are an error.
    pub fn check(&self) -> Result<Vec<String>> {
        let mut check = self.begin_check();
        while self.environment.fetching_now(|| self.check_step(&mut check))? {}
        Ok(self.end_check(check))
    }
}
