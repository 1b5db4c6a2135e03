//! The storage of one database: catalog, log, timestamps, snapshots of readers.

use crate::commit::commits::CommitState;
use crate::maintenance::scheduler::Maintenance;
use crate::record;
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use crate::transaction::moves::Move;
use crate::transaction::state::Transaction;
use nacre_host::{Host, numbered_file_name};
use nacre_log::{Log, LogOptions};
use nacre_rowstore::Owner;
use nacre_segment::{BlockCache, Segment};
use nacre_types::hash::Map;
use nacre_types::{Error, Result, TableId, TableSchema, Timestamp, ViewSchema};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After it is synced.
    Strict,
    /// At once; synced at the latest by the first commit or [`Store::maintain`] after this many milliseconds.
    Relaxed {
        /// Longest time in milliseconds that acknowledged commits may stay unsynced.
        interval_ms: u32,
    },
}

/// Settings of a store. Everything has a good default.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Bytes of segment blocks kept in memory.
    pub cache_bytes: usize,
    /// Rows of a segment at most.
    pub segment_rows: usize,
    /// Bytes of values, as they are in memory, above which a segment takes no more rows.
    pub segment_bytes: usize,
    /// A rowstore above this many bytes is flushed, and the largest when all together have four times as many.
    pub flush_bytes: usize,
    /// A log longer than this since the last snapshot makes a new snapshot.
    pub snapshot_bytes: u64,
    /// Hash tables of an index, or of the primary key, are made once a key is in the range of so many big segments on
    /// average. Fewer are told apart by their Bloom filters.
    pub hash_from: f64,
    /// Partitions of a new table with a shard key; 0 for as many as the host runs tasks at once.
    pub partitions: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            durability: Durability::Strict,
            cache_bytes: 256 << 20,
            segment_rows: nacre_types::limits::MAX_SEGMENT_ROWS,
            segment_bytes: 256 << 20,
            flush_bytes: 32 << 20,
            snapshot_bytes: 64 << 20,
            hash_from: 8.0,
            partitions: 0,
        }
    }
}

#[derive(Default)]
pub(crate) struct CatalogState {
    pub by_name: BTreeMap<String, Arc<Table>>,
    pub by_id: Map<TableId, Arc<Table>>,
    /// By lower-case name; tables have none of these names.
    pub views: BTreeMap<String, Arc<ViewSchema>>,
}

impl CatalogState {
    /// Refuses a table whose name is taken.
    pub fn check_name(&self, schema: &TableSchema) -> Result<()> {
        let name = schema.name.to_ascii_lowercase();
        if self.by_name.contains_key(&name) || self.views.contains_key(&name) {
            return Err(
                Error::already_exists(format!("table {}", schema.name)).with_sqlstate("42P07")
            );
        }
        Ok(())
    }

    /// Enters a new table that this commit makes.
    pub fn add(&mut self, table: &Arc<Table>, commit: Timestamp) -> Result<()> {
        self.check_name(table.schema())?;
        table.made_by(commit);
        self.by_name.insert(table.schema().name.to_ascii_lowercase(), table.clone());
        self.by_id.insert(table.id(), table.clone());
        Ok(())
    }
}

/// One database's storage. Shared between threads.
pub struct Store {
    pub(crate) host: Host,
    pub(crate) options: StoreOptions,
    pub(crate) log: Log,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) bitmaps: Arc<BitmapCache>,
    pub(crate) catalog: RwLock<CatalogState>,
    pub(crate) commit: Mutex<CommitState>,
    /// The newest commit that new snapshots see.
    visible: AtomicU64,
    snapshots: Mutex<BTreeMap<Timestamp, usize>>,
    next_segment: AtomicU64,
    next_table: AtomicU64,
    next_owner: AtomicU64,
    pub(crate) next_temporary: AtomicU64,
    last_sync_ns: AtomicU64,
    /// Segments no longer in any table, whose files go once no snapshot can see them.
    pub(crate) garbage: Mutex<Vec<Arc<SegmentState>>>,
    /// Files of parts of dropped indexes and of hash tables that were replaced, and the commits that did so.
    pub(crate) gone_parts: Mutex<Vec<(Timestamp, Arc<Segment>)>>,
    pub(crate) last_ddl: AtomicU64,
    /// Moves that wait for the commit lock.
    pub(crate) moves: Mutex<VecDeque<Arc<Move>>>,
    pub(crate) maintenance: Mutex<Maintenance>,
    /// Held by whoever waits for `maintenance`.
    pub(crate) next_maintenance: Mutex<()>,
    /// Held while a table is merged as a whole.
    pub(crate) merging_all: Mutex<()>,
    /// A merge is under way.
    pub(crate) merging: AtomicBool,
    closed: AtomicBool,
}

/// Keeps a snapshot's versions from being collected while it lives.
pub(crate) struct SnapshotGuard {
    store: Arc<Store>,
    at: Timestamp,
}

impl SnapshotGuard {
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        let mut snapshots = self.store.snapshots();
        if let Some(count) = snapshots.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                snapshots.remove(&self.at);
            }
        }
    }
}

/// What names of files of a store begin with; the log has its own.
pub(crate) mod kind {
    /// A segment.
    pub const SEGMENT: &str = "seg-";
    /// A hash table of an index.
    pub const HASHES: &str = "hsh-";
    /// A part of an index that is not in its segment's file.
    pub const PART: &str = "idx-";
}

pub(crate) fn file_name_of_segment(id: u64) -> String {
    numbered_file_name(kind::SEGMENT, id)
}

/// Of a hash table of an index. Numbers are those of segments.
pub(crate) fn file_name_of_table(id: u64) -> String {
    numbered_file_name(kind::HASHES, id)
}

/// Of a part of an index that is not in its segment's file. Numbers are those of segments.
pub(crate) fn file_name_of_part(id: u64) -> String {
    numbered_file_name(kind::PART, id)
}

impl Store {
    /// Opens the database in the host's store, recovering it from its snapshot and log.
    pub fn open(host: Host, options: StoreOptions) -> Result<Arc<Store>> {
        crate::recovery::open::open(host, options)
    }

    pub(crate) fn assemble(
        host: Host,
        options: StoreOptions,
        log: Log,
        (cache, bitmaps): (Arc<BlockCache>, Arc<BitmapCache>),
        catalog: CatalogState,
        next: NextIds,
    ) -> Arc<Store> {
        Arc::new(Store {
            host,
            options,
            log,
            cache,
            bitmaps,
            catalog: RwLock::new(catalog),
            commit: Mutex::new(CommitState { last: next.commit }),
            visible: AtomicU64::new(next.commit),
            snapshots: Mutex::default(),
            next_segment: AtomicU64::new(next.segment),
            next_table: AtomicU64::new(next.table as u64),
            next_owner: AtomicU64::new(1),
            next_temporary: AtomicU64::new(1),
            last_sync_ns: AtomicU64::new(0),
            garbage: Mutex::default(),
            gone_parts: Mutex::default(),
            last_ddl: AtomicU64::new(0),
            moves: Mutex::default(),
            maintenance: Mutex::default(),
            next_maintenance: Mutex::default(),
            merging_all: Mutex::default(),
            merging: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        })
    }

    fn snapshots(&self) -> MutexGuard<'_, BTreeMap<Timestamp, usize>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest commit that new snapshots see.
    pub fn visible(&self) -> Timestamp {
        self.visible.load(Ordering::Acquire)
    }

    pub(crate) fn make_visible(&self, commit: Timestamp) {
        self.visible.fetch_max(commit, Ordering::AcqRel);
    }

    /// The oldest timestamp any reader may ask for.
    pub(crate) fn oldest_snapshot(&self) -> Timestamp {
        let snapshots = self.snapshots();
        snapshots.keys().next().copied().unwrap_or_else(|| self.visible())
    }

    pub(crate) fn snapshot(self: &Arc<Self>) -> Arc<SnapshotGuard> {
        let mut snapshots = self.snapshots();
        // Read under the lock, so that `oldest_snapshot` cannot pass it by in between.
        let at = self.visible();
        *snapshots.entry(at).or_insert(0) += 1;
        Arc::new(SnapshotGuard { store: self.clone(), at })
    }

    /// Starts a transaction on the newest snapshot.
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        self.check_open()?;
        Ok(Transaction::new(self.clone(), self.new_owner()))
    }

    /// Somebody new who may hold row locks, or wait for who does.
    pub fn new_owner(&self) -> Arc<Owner> {
        Owner::new(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether it still answers; `closed` when not.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            Err(Error::closed("the database is closed"))
        } else {
            Ok(())
        }
    }

    /// All tables, by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.catalog
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_name
            .values()
            .cloned()
            .collect()
    }

    /// A table by name, without regard to ASCII case.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        catalog.by_name.get(&name.to_ascii_lowercase()).cloned()
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Result<Arc<Table>> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        catalog
            .by_id
            .get(&id)
            .cloned()
            .ok_or_else(|| Error::not_found(format!("table with id {id}")).with_sqlstate("42P01"))
    }

    /// The cache of segment blocks.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// End of the log, in bytes since the beginning.
    pub fn log_position(&self) -> u64 {
        self.log.position()
    }

    /// The host's monotonic clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.host.clock.monotonic_ns()
    }

    /// How many tasks the host runs at once.
    pub fn width(&self) -> usize {
        self.host.parallelism.width()
    }

    /// Runs `task(0)`, …, `task(count - 1)`, each once, possibly at the same time, and returns when all have ended.
    pub fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.host.parallelism.run(count, task);
    }

    pub(crate) fn next_segment_id(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_ids(&self) -> NextIds {
        NextIds {
            commit: 0,
            segment: self.next_segment.load(Ordering::Relaxed),
            table: self.next_table.load(Ordering::Relaxed) as TableId,
        }
    }

    /// Makes a table. The schema's id is replaced by a new one, and a shard key without a number of partitions
    /// gets the one of the options.
    pub fn create_table(&self, schema: TableSchema) -> Result<Arc<Table>> {
        let table = self.new_table(schema)?;
        let mut payload = record::begin(0);
        record::create_table(&mut payload, table.schema())?;
        self.commit_ddl(payload, |catalog, commit| catalog.add(&table, commit))?;
        Ok(table)
    }

    /// A table that nobody knows yet.
    pub(crate) fn new_table(&self, mut schema: TableSchema) -> Result<Arc<Table>> {
        self.check_open()?;
        schema.check_shard_key()?;
        schema.check_indexes()?;
        schema.complete_indexes();
        if let Some(shard) = schema.shard_key.as_mut().filter(|s| s.partitions == 0) {
            let wished = Some(self.options.partitions).filter(|n| *n > 0);
            let count = wished.unwrap_or_else(|| self.host.parallelism.width());
            shard.partitions = count.clamp(1, nacre_types::limits::MAX_PARTITIONS) as u32;
        }
        let id = self.next_table.fetch_add(1, Ordering::Relaxed);
        schema.id = TableId::try_from(id).map_err(|_| Error::limit("too many tables"))?;
        Ok(Arc::new(Table::new(schema)))
    }

    pub(crate) fn read_catalog<T>(&self, look: impl FnOnce(&CatalogState) -> T) -> T {
        look(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Drops a table with all it holds. Transactions that still read it go on; writes to it fail.
    pub fn drop_table(&self, table: &Arc<Table>) -> Result<()> {
        self.drop_tables(std::slice::from_ref(table))
    }

    /// Drops several, or none of them. One that is named twice is dropped once.
    pub fn drop_tables(&self, tables: &[Arc<Table>]) -> Result<()> {
        self.check_open()?;
        let mut tables: Vec<Arc<Table>> = tables.to_vec();
        tables.sort_by_key(|table| table.id());
        tables.dedup_by_key(|table| table.id());
        if tables.is_empty() {
            return Ok(());
        }
        let mut payload = record::begin(0);
        tables.iter().for_each(|table| record::drop_table(&mut payload, table.id()));
        self.commit_ddl(payload, |catalog, commit| {
            let newest = |table: &Arc<Table>| match catalog.by_id.get(&table.id()) {
                Some(newest) => Ok(newest.clone()),
                None => Err(Error::not_found(format!("table {}", table.schema().name))
                    .with_sqlstate("42P01")),
            };
            for table in tables.iter().map(newest).collect::<Result<Vec<_>>>()? {
                table.drop_at(commit);
                catalog.by_name.remove(&table.schema().name.to_ascii_lowercase());
                catalog.by_id.remove(&table.id());
                self.discard_segments(&table, commit);
            }
            Ok(())
        })
    }

    pub(crate) fn sync_is_due(&self) -> bool {
        let Durability::Relaxed { interval_ms } = self.options.durability else { return false };
        if self.log.durable() >= self.log.position() {
            return false;
        }
        let since = self
            .host
            .clock
            .monotonic_ns()
            .saturating_sub(self.last_sync_ns.load(Ordering::Relaxed));
        since >= u64::from(interval_ms) * 1_000_000
    }

    /// Makes everything committed so far durable, whatever the durability level.
    pub fn sync_log(&self) -> Result<()> {
        self.sync_to(self.log.position())
    }

    /// Makes everything before a position durable. The interval of relaxed durability begins anew: whatever is not
    /// covered was acknowledged after this began.
    pub(crate) fn sync_to(&self, lsn: nacre_log::Lsn) -> Result<()> {
        let began = self.host.clock.monotonic_ns();
        self.log.sync(lsn)?;
        self.last_sync_ns.fetch_max(began, Ordering::Relaxed);
        Ok(())
    }

    /// Waits for durability as the options ask.
    pub(crate) fn settle(&self, lsn: nacre_log::Lsn) -> Result<()> {
        match self.options.durability {
            Durability::Strict => self.log.sync(lsn),
            Durability::Relaxed { .. } if self.sync_is_due() => self.sync_log(),
            Durability::Relaxed { .. } => Ok(()),
        }
    }

    /// Syncs the log and refuses all further work. Whoever closes it again waits for the same, or tries it again.
    pub fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        // Whoever was about to commit has done so, and is synced below; the others are refused.
        self.settled();
        let mut maintenance = self.lock_maintenance();
        self.abandon(&mut maintenance);
        self.sync_log()?;
        self.log.close()
    }

    /// Bytes for delete bitmaps of old snapshots, beside the block cache.
    pub(crate) fn bitmap_bytes(options: &StoreOptions) -> usize {
        options.cache_bytes / 16
    }

    /// Log settings: a chunk is sealed at a quarter of the snapshot distance.
    pub(crate) fn log_options(host: &Host, options: &StoreOptions) -> LogOptions {
        LogOptions {
            chunk_bytes: (options.snapshot_bytes / 4).max(1 << 16),
            database_id: host.entropy.next_u64(),
        }
    }
}

/// The next free numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextIds {
    /// The last commit timestamp given out.
    pub commit: Timestamp,
    pub segment: u64,
    pub table: TableId,
}
