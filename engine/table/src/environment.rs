//! Host services for statement execution (time, threads, temporary files), the cache of segment
//! blocks, and the memory that statements share.

use crate::statement_memory::StatementMemory;
use crate::temporary::{TemporaryFile, TemporaryFiles};
use nacre_host::fetched::Fetched;
use nacre_host::{Host, waits};
use nacre_segment::BlockCache;
use nacre_types::limits::HAS_THREADS;
use nacre_types::{Error, Result};
use std::sync::Arc;

/// Host services for statement execution, the cache of segment blocks, and the memory of statements.
pub struct Environment {
    host: Host,
    cache: Arc<BlockCache>,
    statements: Arc<StatementMemory>,
    /// `None` if the database was opened only to be read: its folder is its writer's.
    temporary: Option<TemporaryFiles>,
}

impl Environment {
    pub(crate) fn new(
        host: Host,
        cache: Arc<BlockCache>,
        statements: StatementMemory,
        read_only: bool,
    ) -> Environment {
        let temporary = (!read_only).then(|| TemporaryFiles::new(host.store.clone()));
        Environment { temporary, host, cache, statements: Arc::new(statements) }
    }

    /// The memory that the operators of all statements share.
    pub fn statement_memory(&self) -> &Arc<StatementMemory> {
        &self.statements
    }

    /// The cache of segment blocks.
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// The host's monotonic clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.host.clock.monotonic_ns()
    }

    /// 128 random bits of the host.
    pub fn random_bits(&self) -> [u64; 2] {
        [self.host.entropy.next_u64(), self.host.entropy.next_u64()]
    }

    /// Number of tasks the host runs concurrently.
    pub fn width(&self) -> usize {
        if HAS_THREADS { self.host.parallelism.width() } else { 1 }
    }

    /// Longest time that a statement computes before it must give way; `None` where it need not. A
    /// statement on several threads does not: other threads run beside it.
    pub fn time_slice_ns(&self) -> Option<u64> {
        self.host.parallelism.time_slice_ns().filter(|_| self.width() == 1)
    }

    /// Lets other work of the thread run.
    pub async fn give_way(&self) {
        self.host.parallelism.give_way().await;
    }

    /// Runs `task(0)`, …, `task(count - 1)`, each once, possibly concurrently, and returns when all
    /// have ended.
    pub fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        debug_assert!(self.width() > 0, "a host that runs nothing");
        match waits::is_waiting() {
            true => self.host.parallelism.run(count, &|at| self.waiting(|| task(at))),
            false => self.host.parallelism.run(count, task),
        }
    }

    /// Fetches what a call missed, blocking the thread; then the call can be repeated.
    ///
    /// # Errors
    /// `error` itself unless it is one of absent bytes, and where threads cannot block; `cancelled`.
    pub fn fetch_now(
        &self,
        fetched: &mut Fetched,
        error: Error,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        fetched.resolve_now_unless(error, &self.host, is_cancelled)?;
        debug_assert!(!waits::is_waiting(), "a read that waits has missed what can be waited for");
        Ok(())
    }

    /// Repeats a step of background work until it misses nothing, blocking the thread. Fails with the
    /// miss where threads cannot block.
    pub fn fetching_now<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let mut fetched = Fetched::of_background();
        loop {
            match call() {
                Err(error) => self.fetch_now(&mut fetched, error, &|| false)?,
                done => return done,
            }
        }
    }

    /// Like [`Environment::fetch_now`], without blocking.
    pub async fn fetch(
        &self,
        fetched: &mut Fetched,
        error: Error,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        fetched.resolve_unless(error, &self.host, is_cancelled).await
    }

    /// Runs work whose reads wait for absent bytes, where the host's threads can block.
    pub(crate) fn waiting<T>(&self, work: impl FnOnce() -> T) -> T {
        waits::waiting(&self.host.store, &self.host.parallelism, work)
    }

    /// Creates a temporary file; `None` if the host's files are in memory, or not this instance's to
    /// create.
    pub fn temporary_file(&self) -> Result<Option<TemporaryFile>> {
        self.temporary.as_ref().map_or(Ok(None), TemporaryFiles::create)
    }
}
