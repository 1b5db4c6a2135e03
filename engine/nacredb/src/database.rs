//! A database: opening, closing, house-keeping, and the sessions on it.

use crate::session::Session;
use nacre_exec::Threads;
use nacre_host::Host;
use nacre_session::{ConnectionDefaults, Engine};
use nacre_table::{Durability, Store, StoreOptions};
use nacre_types::Result;
use std::sync::Arc;

/// Settings of a database. Everything has a good default.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Bytes that the operators of one statement may hold in memory together. What they cannot hold goes into a
    /// temporary file, or ends the statement with `limit`.
    pub memory_limit: usize,
    /// Bytes of segment blocks kept in memory.
    pub cache_bytes: usize,
    /// Rows of a segment at most; between 1 and 1,048,576.
    pub segment_rows: usize,
    /// Bytes of values, as they are in memory, above which a segment takes no more rows.
    pub segment_bytes: usize,
    /// Segments that a key would be in the range of, on average, from which on an index gets hash tables over all its
    /// segments.
    pub hash_from: f64,
    /// Bytes of a table's rowstore above which it is flushed into segments. All tables together have four times as many
    /// at most.
    pub flush_bytes: usize,
    /// Bytes of log after which a snapshot is written.
    pub snapshot_bytes: u64,
    /// Partitions of a new table with a `SHARD KEY`; 0 for as many as the host runs tasks at once.
    pub partitions: usize,
    /// Threads that may work on one statement; 0 for as many as the host has.
    pub threads: usize,
    /// Rows given to a thread at a time, about; 1, for tests, spreads whatever there is.
    pub morsel_rows: usize,
    /// Milliseconds to wait for a row lock before `lock_timeout`.
    pub lock_timeout_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        let store = StoreOptions::default();
        Options {
            durability: store.durability,
            memory_limit: 1 << 30,
            cache_bytes: store.cache_bytes,
            segment_rows: store.segment_rows,
            segment_bytes: store.segment_bytes,
            hash_from: store.hash_from,
            flush_bytes: store.flush_bytes,
            snapshot_bytes: store.snapshot_bytes,
            partitions: store.partitions,
            threads: 0,
            morsel_rows: Threads::ONE.morsel_rows,
            lock_timeout_ms: 10_000,
        }
    }
}

/// How much house-keeping to do in one call.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Steps at most; one step is one flush, one snapshot, a few blocks of a merge, or one round of
    /// removing files.
    pub steps: usize,
}

/// An open database. Cheap to clone; shared between threads.
#[derive(Clone)]
pub struct Database(pub(crate) Arc<Engine>);

impl Database {
    /// Opens the database in the host's store, making it if the store is empty.
    ///
    /// Errors: `corrupt` with the file and place of damage, `unsupported` for a newer format, `io`.
    pub async fn open(host: Host, options: Options) -> Result<Database> {
        host.store.prepare().await?;
        let store_options = StoreOptions {
            durability: options.durability,
            cache_bytes: options.cache_bytes,
            segment_rows: options.segment_rows.clamp(1, nacre_types::limits::MAX_SEGMENT_ROWS),
            segment_bytes: options.segment_bytes,
            hash_from: options.hash_from,
            flush_bytes: options.flush_bytes,
            snapshot_bytes: options.snapshot_bytes,
            partitions: options.partitions,
        };
        let store = Store::open(host.clone(), store_options)?;
        host.store.prepare().await?;
        let defaults = ConnectionDefaults {
            memory_limit: options.memory_limit,
            threads: options.threads,
            morsel_rows: options.morsel_rows,
            lock_timeout_ms: options.lock_timeout_ms,
        };
        Ok(Database(Arc::new(Engine::new(store, host, defaults))))
    }

    /// A new connection. Sessions are independent: each has its own transaction.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// End of the log, in bytes since the database was made.
    pub fn log_position(&self) -> u64 {
        self.0.store().log_position()
    }

    /// Bytes read from the local store for segment blocks since opening.
    pub fn bytes_read(&self) -> u64 {
        self.0.store().cache().read_bytes()
    }

    /// Reads everything and verifies it: checksums, zone maps, order, delete bitmaps, uniqueness.
    /// Answers with what is wrong, one sentence each.
    pub fn check(&self) -> Result<Vec<String>> {
        self.0.store().check()
    }

    /// Does some house-keeping; `true` when there is more to do.
    pub fn maintain(&self, budget: Budget) -> Result<bool> {
        for _ in 0..budget.steps {
            if !self.0.store().maintain()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes everything committed so far durable, whatever the durability level.
    pub fn flush(&self) -> Result<()> {
        self.0.store().sync_log()
    }

    /// Syncs what is not synced and ends the database for all its sessions; later calls answer `closed`.
    pub async fn close(&self) -> Result<()> {
        self.0.store().close()
    }
}
