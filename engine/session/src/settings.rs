//! Settings of a connection's statements, and the flag that cancels them.

use crate::engine::Engine;
use crate::named_statements::NamedStatements;
use crate::progress::Progress;
use nacre_operator::{Memory, Threads};
use nacre_sql::{ScanStrategy, SessionOption};
use nacre_table::StatementMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads, memory and cancellation of a connection's statements.
pub(crate) struct Settings {
    threads: Threads,
    memory_limit: usize,
    scan_strategy: ScanStrategy,
    lock_timeout_ms: u64,
    shared: Arc<StatementMemory>,
    cancel: Arc<AtomicBool>,
    named: NamedStatements,
    progress: Arc<Progress>,
}

impl Settings {
    pub fn new(engine: &Engine) -> Settings {
        Settings {
            threads: engine.threads(),
            memory_limit: engine.defaults().memory_limit,
            scan_strategy: ScanStrategy::default(),
            lock_timeout_ms: engine.defaults().lock_timeout_ms,
            shared: engine.store().environment().statement_memory().clone(),
            cancel: Arc::default(),
            named: NamedStatements::default(),
            progress: Arc::default(),
        }
    }

    /// The defaults, for a statement that a flag of the caller cancels.
    pub fn cancelled_by(cancel: Arc<AtomicBool>, engine: &Engine) -> Settings {
        Settings { cancel, ..Settings::new(engine) }
    }

    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// How scans filter.
    pub fn scan_strategy(&self) -> ScanStrategy {
        self.scan_strategy
    }

    /// Milliseconds to wait for the lock of a row.
    pub fn lock_timeout_ms(&self) -> u64 {
        self.lock_timeout_ms
    }

    /// The memory account of one statement.
    pub fn memory(&self) -> Memory {
        Memory::sharing(self.memory_limit, self.shared.clone())
    }

    /// The statements that `PREPARE` has named.
    pub fn named(&mut self) -> &mut NamedStatements {
        &mut self.named
    }

    pub fn cancel_flag(&self) -> &Arc<AtomicBool> {
        &self.cancel
    }

    /// How far the running statement is.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Clears a cancellation that arrived after the last statement ended, and that one's progress.
    pub fn begin_statement(&self) {
        self.cancel.store(false, Ordering::Relaxed);
        self.progress.reset();
    }

    /// Sets the maximum threads per statement; 0 for as many as the host has.
    pub fn set_threads(&mut self, engine: &Engine, threads: usize) {
        self.threads.count = engine.threads_of(threads);
    }

    /// Sets the bytes that one statement may hold; `None` for the database's default.
    pub fn set_memory_limit(&mut self, engine: &Engine, bytes: Option<usize>) {
        self.memory_limit = bytes.unwrap_or(engine.defaults().memory_limit);
    }

    /// Applies a `SET`.
    pub fn set(&mut self, engine: &Engine, option: SessionOption) {
        match option {
            SessionOption::Threads(count) => self.set_threads(engine, count as usize),
            SessionOption::MemoryLimit(bytes) => {
                // A limit beyond the address space is no limit.
                let bytes = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
                self.set_memory_limit(engine, bytes);
            }
            SessionOption::ScanStrategy(strategy) => self.scan_strategy = strategy,
            SessionOption::LockTimeout(wanted) => {
                self.lock_timeout_ms = match wanted {
                    None => engine.defaults().lock_timeout_ms,
                    Some(0) => u64::MAX,
                    Some(ms) => ms,
                };
            }
        }
    }
}
