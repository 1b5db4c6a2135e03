//! The state shared by all connections to one database: the store, the host, the defaults of a
//! connection, and the catalog version.

use nacre_exec::Threads;
use nacre_host::Host;
use nacre_table::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of a new connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionDefaults {
    /// Bytes that all operators of one statement may hold together.
    pub memory_limit: usize,
    /// Maximum threads per statement; 0 for as many as the host has.
    pub threads: usize,
    /// Rows in a morsel, approximately.
    pub morsel_rows: usize,
    /// Milliseconds to wait for a row lock before `lock_timeout`.
    pub lock_timeout_ms: u64,
}

/// State shared by all connections to one database.
pub struct Engine {
    store: Arc<Store>,
    host: Host,
    defaults: ConnectionDefaults,
    /// Counts catalog changes, so that prepared statements know when to bind again.
    catalog_version: AtomicU64,
}

impl Engine {
    /// Wraps an open store.
    pub fn new(store: Arc<Store>, host: Host, defaults: ConnectionDefaults) -> Engine {
        Engine { store, host, defaults, catalog_version: AtomicU64::new(0) }
    }

    /// The storage.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Lets the host open files ahead of need. Must be called before every statement that may
    /// create files.
    ///
    /// Errors: `io`, and `limit` if the host cannot provide more files.
    pub async fn prepare_files(&self) -> nacre_types::Result<()> {
        self.host.store.prepare().await
    }

    pub(crate) fn defaults(&self) -> &ConnectionDefaults {
        &self.defaults
    }

    /// The threads of a new connection.
    pub(crate) fn threads(&self) -> Threads {
        Threads {
            count: self.threads_of(self.defaults.threads),
            morsel_rows: self.defaults.morsel_rows,
        }
    }

    /// Limits a requested number of threads to those of the host; 0 requests all of them.
    pub(crate) fn threads_of(&self, requested: usize) -> usize {
        let width = self.store.width();
        if requested == 0 { width } else { requested.min(width) }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.host.clock.monotonic_ns()
    }

    /// Microseconds elapsed since a reading of the monotonic clock.
    pub(crate) fn elapsed_us(&self, since_ns: u64) -> u64 {
        self.now_ns().saturating_sub(since_ns) / 1_000
    }

    /// Makes every prepared statement bind again before its next run.
    pub(crate) fn catalog_changed(&self) {
        self.catalog_version.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn catalog_version(&self) -> u64 {
        self.catalog_version.load(Ordering::Acquire)
    }

    /// Runs maintenance that is due. A failure does not affect the statement, which has committed:
    /// the next `maintain` reports it, and a failed log rejects the next commit.
    pub fn housekeeping(&self) {
        if self.store.needs_maintenance() {
            self.store.maintain().ok();
        }
    }
}
