//! A database: opening, closing, maintenance, and its sessions.

use crate::blobs::{BlobAccess, Blobs};
use crate::change_feed::ChangeFeed;
use core::time::Duration;
use nacre_host::Host;
use nacre_host::memory::MemoryStore;
use nacre_operator::Threads;
use nacre_session::{ConnectionDefaults, Engine, compile_rules, open_store};
use nacre_table::{DEFAULT_MEMORY_BYTES, Durability, StoreOptions};
use nacre_tier::AsOf;
use nacre_types::{Error, MemoryPart, Result, TableId};
use std::sync::Arc;

/// Settings of a database. The defaults suit most uses.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// let options = Options { memory_bytes: 512 << 20, threads: 2, ..Options::default() };
/// let db = Database::open(memory_host(), options).await?;
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Memory of the whole database, in bytes. Half of it is for the operators of all statements
    /// together, a quarter for rows that are not in segments yet, an eighth for the block cache, an
    /// eighth for metadata and bitmaps; [`Database::memory`] lists the parts. Caches evict,
    /// statements spill to a temporary file, writers are slowed down; what does not fit then fails
    /// with `limit`.
    pub memory_bytes: usize,
    /// Maximum bytes of memory for all operators of one statement, within what all statements
    /// share. Operators beyond it spill to a temporary file, or the statement fails with `limit`.
    pub memory_limit: usize,
    /// Bytes of segment blocks cached in memory.
    pub cache_bytes: usize,
    /// Bytes of rows that are not in segments yet. Above half of it, writes are slowed down; above
    /// all of it, they wait until rows have been flushed.
    pub rowstore_bytes: usize,
    /// Bytes of the metadata of segments kept in memory, with the files of these segments open. Those
    /// used least make room for others.
    pub metadata_bytes: usize,
    /// Maximum number of rows in a segment; between 1 and 1,048,576.
    pub segment_rows: usize,
    /// Bytes of values, in their in-memory form, above which a segment takes no more rows.
    pub segment_bytes: usize,
    /// Number of sorted runs of one level that are merged into one of the next level; at least 2.
    pub merge_from: usize,
    /// Average number of segments whose range contains a key, from which on an index gets hash
    /// tables over all its segments.
    pub hash_from: f64,
    /// Bytes of a table's rowstore above which it is flushed into segments. The limit for all
    /// tables together is four times as high.
    pub flush_bytes: usize,
    /// Bytes of log after which a snapshot is written; sooner if most of the log is about files.
    pub snapshot_bytes: u64,
    /// Partitions of a new table with a `SHARD KEY`; 0 for the number of tasks that the host runs
    /// in parallel.
    pub partitions: usize,
    /// Maximum number of threads per statement; 0 for as many as the host has.
    pub threads: usize,
    /// Approximate number of rows given to a thread at a time. Tests use 1 to spread few rows over
    /// the threads.
    pub morsel_rows: usize,
    /// Timeout for a row lock in milliseconds, after which the statement fails with `lock_timeout`.
    pub lock_timeout_ms: u64,
    /// Maximum number of statements that run at a time; 0 for twice as many as the host runs in
    /// parallel, at least 16. The others wait in the order of their calls. Statements that read or
    /// write single rows by a key run at once, and a stream counts only while it computes rows.
    pub concurrent_statements: usize,
    /// Milliseconds after which a statement that waits for others to end fails with `unavailable`.
    pub admission_timeout_ms: u64,
    /// Row locks taken by transactions since its last round that a bulk load looks at while all
    /// commits wait.
    pub load_rest: usize,
    /// Number of rows from which on a statement deletes rows of segments by a bit each, instead of
    /// logging and locking them one by one.
    pub bulk_rows: usize,
    /// Number of rows from which on a statement inserts them as segments, as a bulk load does, instead
    /// of logging and locking them one by one.
    pub load_rows: usize,
    /// Whether to open the database only to read it. Another instance or process may be writing it:
    /// a reader takes no lock, changes no file, and does not create a database. It sees what was
    /// committed when it was opened, and later what [`Database::refresh`] makes visible. Statements
    /// that write fail with `unsupported`, and statements do not spill.
    pub read_only: bool,
    /// Whether to open a database although commits at the end of its log are missing, instead of
    /// failing with `corrupt`. [`Database::losses`] says what was given up.
    pub accept_loss: bool,
    /// Where the files are kept beside the local disk. The database is then what the blobs hold: an empty local
    /// folder gets its log from there, and the writer before is stopped with `in_use`. With
    /// [`Options::read_only`], the database is the one of the newest upload, whatever the local folder has.
    pub blobs: Option<Blobs>,
    /// With [`Options::blobs`] and [`Options::read_only`]: shows the state of the database at a position of its log,
    /// or at a time, for as long as its history is kept ([`TierOptions::history`](crate::TierOptions::history)).
    /// It does not go on from there.
    pub as_of: Option<AsOf>,
}

impl Default for Options {
    fn default() -> Self {
        let store = StoreOptions::default();
        Options {
            durability: store.durability,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            memory_limit: Options::SHARE,
            cache_bytes: Options::SHARE,
            rowstore_bytes: Options::SHARE,
            metadata_bytes: Options::SHARE,
            segment_rows: store.segment_rows,
            segment_bytes: Options::SHARE,
            merge_from: store.merge_from,
            hash_from: store.hash_from,
            flush_bytes: Options::SHARE,
            snapshot_bytes: store.snapshot_bytes,
            partitions: store.partitions,
            threads: 0,
            morsel_rows: Threads::ONE.morsel_rows,
            lock_timeout_ms: 10_000,
            concurrent_statements: 0,
            admission_timeout_ms: 60_000,
            load_rest: store.load_rest,
            bulk_rows: store.bulk_rows,
            load_rows: store.load_rows,
            read_only: false,
            accept_loss: false,
            blobs: None,
            as_of: None,
        }
    }
}

impl Options {
    /// The value of `memory_limit`, `cache_bytes`, `rowstore_bytes`, `segment_bytes` and `flush_bytes`
    /// that stands for a share of `memory_bytes`; their default.
    ///
    /// ```
    /// # use nacredb::Options;
    /// assert_eq!(Options::default().cache_bytes, Options::SHARE);
    /// ```
    pub const SHARE: usize = usize::MAX;
}

/// The amount of maintenance to do in one call.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Budget, Database, Options};
/// # use std::time::Duration;
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// while db.maintain(Budget::Time(Duration::from_millis(5)))? {
///     // More is due: this is the place to do something else.
/// }
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// Steps begin until this time is used up. A step takes a few milliseconds: it reads, encodes,
    /// commits or frees a bounded number of rows of a flush, a snapshot, a merge or an index build,
    /// or removes files.
    Time(Duration),
    /// Maximum number of steps, for hosts that must not depend on time.
    Steps(usize),
}

/// An open database. Cheap to clone; shared between threads.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// let db = Database::open(memory_host(), Options::default()).await?;
/// let mut session = db.session();
/// session.execute("create table t (id bigint primary key)", &[]).await?;
/// db.close().await?;
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Database(pub(crate) Arc<Engine>);

/// The part of a database's memory that files in memory take of what can be fetched again: one in this many.
const FETCHED_SHARE: usize = 4;

/// How much of a budget is spent.
struct Spending {
    budget: Budget,
    began_ns: u64,
    steps: usize,
}

impl Spending {
    fn new(budget: Budget, database: &Database) -> Spending {
        Spending { budget, began_ns: database.0.store().now_ns(), steps: 0 }
    }

    /// Whether no step may begin any more; counts it otherwise.
    fn is_over(&mut self, database: &Database) -> bool {
        let is_over = match self.budget {
            Budget::Steps(most) => self.steps == most,
            Budget::Time(time) => {
                let spent = database.0.store().now_ns().saturating_sub(self.began_ns);
                self.steps > 0 && Duration::from_nanos(spent) >= time
            }
        };
        self.steps += usize::from(!is_over);
        is_over
    }
}

impl Database {
    /// Opens the database in the host's store, creating it if the store is empty.
    ///
    /// Errors: `corrupt` with the file and position of damage, `unsupported` for a newer format,
    /// `io`; `not_found` if [`Options::as_of`] names a state that is not kept; `in_use` without blobs, if filling
    /// the store from its blobs did not end.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// let db = Database::open(memory_host(), Options::default()).await?;
    /// assert!(db.check()?.is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn open(mut host: Host, options: Options) -> Result<Database> {
        host.store.prepare().await?;
        let mut uploads = None;
        if let Some(blobs) = &options.blobs {
            let mut blobs = blobs.clone();
            if options.read_only {
                // What is fetched must be written somewhere.
                host.store = blobs.cache.take().unwrap_or_else(|| Arc::new(MemoryStore::new()));
            }
            if host.store.is_in_memory() {
                // Beside the memory that the options divide.
                let share = (options.memory_bytes / FETCHED_SHARE) as u64;
                blobs.options.disk_limit = blobs.options.disk_limit.min(share.max(1));
            }
            let access = match (options.read_only, options.as_of) {
                (false, None) => BlobAccess::Write,
                (true, None) => BlobAccess::Read,
                (true, Some(at)) => BlobAccess::ReadAsOf(at),
                (false, Some(_)) => return Err(Error::unsupported("writing a state of the past")),
            };
            let attached = blobs.attach(&host, access).await?;
            (host.store, uploads) = (attached.0, Some(attached.1));
        } else if options.as_of.is_some() {
            return Err(Error::unsupported("a state of the past of a database without blobs"));
        } else {
            nacre_tier::check_filled(&*host.store)?;
        }
        let shares = StoreOptions::with_memory(options.memory_bytes);
        let or_share = |bytes, share| if bytes == Options::SHARE { share } else { bytes };
        let memory_limit = or_share(options.memory_limit, shares.statement_bytes);
        let store_options = StoreOptions {
            durability: options.durability,
            cache_bytes: or_share(options.cache_bytes, shares.cache_bytes),
            rowstore_bytes: or_share(options.rowstore_bytes, shares.rowstore_bytes),
            metadata_bytes: or_share(options.metadata_bytes, shares.metadata_bytes),
            segment_rows: options.segment_rows.clamp(1, nacre_types::limits::MAX_SEGMENT_ROWS),
            segment_bytes: or_share(options.segment_bytes, shares.segment_bytes),
            merge_from: options.merge_from,
            hash_from: options.hash_from,
            flush_bytes: or_share(options.flush_bytes, shares.flush_bytes),
            snapshot_bytes: options.snapshot_bytes,
            partitions: options.partitions,
            load_rest: options.load_rest,
            bulk_rows: options.bulk_rows,
            load_rows: options.load_rows,
            read_only: options.read_only,
            accept_loss: options.accept_loss,
            rules: Some(compile_rules),
            ..shares
        };
        let store = open_store(&host, store_options).await?;
        host.store.prepare().await?;
        let defaults = ConnectionDefaults {
            memory_limit,
            threads: options.threads,
            morsel_rows: options.morsel_rows,
            lock_timeout_ms: options.lock_timeout_ms,
            concurrent_statements: options.concurrent_statements,
            admission_timeout_ms: options.admission_timeout_ms,
        };
        Ok(Database(Arc::new(Engine::new(store, host, defaults, uploads))))
    }

    /// Makes visible what another instance has committed since, in a database opened with
    /// [`Options::read_only`]; otherwise does nothing. With [`Options::blobs`], that is what it has uploaded
    /// since. All commits become visible together. Transactions keep their snapshots. Returns whether anything
    /// was new.
    ///
    /// Errors: `unavailable` if the blob store is away; `corrupt`; `io`, also if bytes must be fetched and the
    /// host's threads cannot wait, where [`Database::refresh_async`] does; `closed`. What was visible stays so.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let host = memory_host();
    /// let db = Database::open(host.clone(), Options::default()).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// let reader = Options { read_only: true, ..Options::default() };
    /// let reader = Database::open(host, reader).await?;
    /// db.session().execute("insert into t values (1)", &[]).await?;
    /// assert!(reader.refresh()?);
    /// let count = reader.session().execute("select count(*) from t", &[]).await?;
    /// assert_eq!(count.to_rows()[0][0], Value::Int(1));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn refresh(&self) -> Result<bool> {
        self.0.refresh()
    }

    /// Like [`Database::refresh`], but awaits what must be fetched, instead of blocking the thread.
    ///
    /// ```
    /// # use nacre_native::{NativeClock, block_on, memory_host};
    /// # use nacre_testing::MemoryBlobs;
    /// # use nacredb::{Blobs, Database, Options};
    /// # use std::sync::Arc;
    /// # block_on(async {
    /// # let store = MemoryBlobs::new(Arc::new(NativeClock::new()));
    /// let blobs = Some(Blobs::new(store));
    /// let options = Options { blobs, ..Options::default() };
    /// let db = Database::open(memory_host(), options.clone()).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.upload().await?;
    ///
    /// let reader = Options { read_only: true, ..options };
    /// let reader = Database::open(memory_host(), reader).await?;
    /// db.session().execute("insert into t values (1)", &[]).await?;
    /// db.upload().await?;
    /// assert!(reader.refresh_async().await?);
    /// let rows = reader.session().execute("select * from t", &[]).await?;
    /// assert_eq!(rows.to_rows().len(), 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn refresh_async(&self) -> Result<bool> {
        self.0.refresh_async().await
    }

    /// End of the log, in bytes since the database was created. Of a database that is only read,
    /// how far the log was read.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// let before = db.log_position();
    /// session.execute("create table t (id bigint primary key)", &[]).await?;
    /// assert!(db.log_position() > before);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn log_position(&self) -> u64 {
        self.0.store().log_position()
    }

    /// What [`Options::accept_loss`] gave up when the database was opened, one sentence each. Empty
    /// if nothing was missing.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// let options = Options { accept_loss: true, ..Options::default() };
    /// let db = Database::open(memory_host(), options).await?;
    /// assert!(db.losses().is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn losses(&self) -> Vec<String> {
        self.0.store().losses().iter().map(|loss| loss.message().to_string()).collect()
    }

    /// The number of the newest change of any of these tables, or of the catalog, that this database
    /// has made since something first asked. It grows with each commit that wrote one of them.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// let seen = db.newest_change(&[]);
    /// db.session().execute("create table items (id bigint primary key)", &[]).await?;
    /// assert!(db.newest_change(&[]) > seen);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn newest_change(&self, tables: &[TableId]) -> u64 {
        self.0.changes().newest(tables)
    }

    /// Follows the rows of a table: which are inserted, updated and deleted from now on, by any session.
    ///
    /// Errors: `not_found`; `unsupported` for a table without a primary key.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// let mut feed = db.change_feed("items")?;
    /// session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// session.execute("delete from items where id = 2", &[]).await?;
    /// let changes = feed.next().await?;
    /// let [change, id, name] = ["insert", "1", "pearl"];
    /// assert_eq!(changes.rows(), 1);
    /// assert_eq!(changes.row(0)[0], Value::Text(change.into()));
    /// # assert_eq!(changes.row(0)[1..], [Value::Int(id.parse().unwrap()), Value::Text(name.into())]);
    /// assert_eq!(feed.next().await?.rows(), 0);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn change_feed(&self, table: &str) -> Result<ChangeFeed> {
        nacre_session::TableChanges::begin(&self.0, table).map(ChangeFeed)
    }

    /// Bytes of segment blocks read from the local store since the database was opened.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// assert_eq!(db.bytes_read(), 0);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn bytes_read(&self) -> u64 {
        self.0.store().cache().read_bytes()
    }

    /// What each part of the database holds in memory, and its limit. `information_schema.memory`
    /// has the same rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// let options = Options { memory_bytes: 512 << 20, ..Options::default() };
    /// let db = Database::open(memory_host(), options).await?;
    /// let cache = db.memory().into_iter().find(|part| part.part == "block cache");
    /// assert_eq!(cache.and_then(|part| part.limit_bytes), Some(64 << 20));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn memory(&self) -> Vec<MemoryPart> {
        self.0.store().memory()
    }

    /// Reads and verifies everything: checksums, zone maps, order, delete bitmaps, uniqueness.
    /// Returns one sentence per problem.
    ///
    /// It remembers about 30 bytes of each key of a table, beyond the memory budget.
    ///
    /// Errors: `closed`; `io`, also if bytes must be fetched and the host's threads cannot wait, where
    /// [`Database::check_async`] does.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// for problem in db.check()? {
    ///     eprintln!("{problem}");
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn check(&self) -> Result<Vec<String>> {
        self.0.store().check()
    }

    /// Like [`Database::check`], but awaits bytes that the host has to fetch, and lets other work of
    /// the thread run where statements do.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// assert!(db.check_async().await?.is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn check_async(&self) -> Result<Vec<String>> {
        self.0.check_async().await
    }

    /// Does some maintenance and returns whether more is due. A host with threads does it by itself;
    /// this call then helps, and waits for a step in progress.
    ///
    /// Errors: `limit`, `corrupt`, `closed`; `io`, also if bytes must be fetched and the host's threads
    /// cannot wait. Then the work keeps its place, and [`Database::maintain_async`] continues it.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Budget, Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// let more = db.maintain(Budget::Steps(10))?;
    /// assert!(!more);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn maintain(&self, budget: Budget) -> Result<bool> {
        let mut spending = Spending::new(budget, self);
        while !spending.is_over(self) {
            if !self.0.maintain()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Like [`Database::maintain`], but awaits bytes that the host has to fetch, instead of blocking
    /// the thread.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Budget, Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// while db.maintain_async(Budget::Steps(10)).await? {}
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn maintain_async(&self, budget: Budget) -> Result<bool> {
        let mut spending = Spending::new(budget, self);
        while !spending.is_over(self) {
            if !self.0.maintain_async().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes everything committed so far durable, regardless of the durability level.
    ///
    /// Errors: `io`, after which the database must be reopened; `closed`.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Durability, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// let durability = Durability::Relaxed { interval_ms: 100 };
    /// let options = Options { durability, ..Options::default() };
    /// let db = Database::open(memory_host(), options).await?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// db.flush()?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn flush(&self) -> Result<()> {
        self.0.store().sync_log()
    }

    /// Syncs everything that is not durable yet and closes the database for all its sessions. Later
    /// calls fail with `closed`. Then uploads what is left, if the database has blobs.
    ///
    /// Errors: `io`; `unavailable` or `in_use` if it is closed and not uploaded: the rest is on the local disk.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, ErrorKind, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// db.close().await?;
    /// let error = session.execute("create table t (id bigint primary key)", &[]).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Closed);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn close(&self) -> Result<()> {
        self.0.close().await
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.0
    }
}
