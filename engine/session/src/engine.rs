//! The state shared by all connections to one database: the store, the host, the defaults of a
//! connection, the catalog version, and the texts that ran before.

use crate::changes::Changes;
use crate::slots::{Slot, Slots};
use crate::statement_cache::StatementCache;
use crate::time_slices::TimeSlices;
use crate::upload_task::UploadTask;
use nacre_host::{Background, Fetch, Host, Resident, Rest, Uploads};
use nacre_operator::Threads;
use nacre_sql::{Created, CreatedFunctions};
use nacre_table::{Fetched, Store, StoreOptions};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, ErrorKind, Reason, Result, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Statements that run at a time by default, for each task that the host runs at once: some of
/// them wait for files.
const SLOTS_PER_TASK: usize = 2;
/// The least default number of statements that run at a time, so that a few long ones do not hold
/// back all others.
const LEAST_SLOTS: usize = 16;
/// The hint of an upload that a commit waited for, and that did not end.
const HELD: &str = "what was committed is visible and on the local disk, and is uploaded later";
/// How often a call looks whether another one still follows the log, in nanoseconds.
const TURN_NS: u64 = 1_000_000;

/// Settings of a new connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionDefaults {
    /// Bytes that all operators of one statement may hold together, within the memory that all
    /// statements share.
    pub memory_limit: usize,
    /// Maximum threads per statement; 0 for as many as the host has.
    pub threads: usize,
    /// Rows in a morsel, approximately.
    pub morsel_rows: usize,
    /// Milliseconds to wait for a row lock before `lock_timeout`.
    pub lock_timeout_ms: u64,
    /// Statements that run at a time, point statements apart; 0 for a number that suits the host.
    pub concurrent_statements: usize,
    /// Milliseconds that a statement waits for others to end before `unavailable`.
    pub admission_timeout_ms: u64,
}

/// State shared by all connections to one database.
pub struct Engine {
    /// Dropped first: it may be using the store.
    background: Option<Maintenance>,
    uploads: Option<UploadTask>,
    store: Arc<Store>,
    host: Host,
    defaults: ConnectionDefaults,
    slots: Slots,
    /// Counts catalog changes, so that prepared statements know when to bind again.
    catalog_version: AtomicU64,
    statements: StatementCache,
    functions: Mutex<Arc<CreatedFunctions>>,
    changes: Changes,
    /// Whether a call follows the log.
    is_refreshing: AtomicBool,
    /// Of a database that only reads blobs: the states that something may still read, ascending.
    shown: Mutex<Vec<Shown>>,
}

/// What was visible after a refresh.
struct Shown {
    newest: Timestamp,
    /// Position in the log.
    position: u64,
}

/// The right to follow the log.
struct Refreshing<'a>(&'a AtomicBool);

impl Drop for Refreshing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Opens a store; see [`Store::open`]. Where threads cannot block, absent bytes are awaited, and opening
/// begins again: it leaves what a crash would.
pub async fn open_store(host: &Host, options: StoreOptions) -> Result<Arc<Store>> {
    let mut fetched = Fetched::default();
    loop {
        match Store::open(host.clone(), options.clone()) {
            Err(error) => fetched.resolve(error, &*host.store).await?,
            opened => return opened,
        }
    }
}

impl Engine {
    /// Wraps an open store, and starts its background work.
    pub fn new(
        store: Arc<Store>,
        host: Host,
        defaults: ConnectionDefaults,
        uploads: Option<Arc<dyn Uploads>>,
    ) -> Engine {
        if let Some(uploads) = &uploads {
            uploads.warm(store.warming());
        }
        let uploads = uploads.map(|uploads| UploadTask::start(uploads, &host));
        let background = Maintenance::start(&store, &host);
        let slots = match defaults.concurrent_statements {
            0 => (SLOTS_PER_TASK * store.width()).max(LEAST_SLOTS),
            statements => statements,
        };
        let slots = Slots::new(slots, defaults.admission_timeout_ms.saturating_mul(1_000_000));
        Engine {
            background,
            uploads,
            store,
            host,
            defaults,
            slots,
            catalog_version: AtomicU64::new(0),
            statements: StatementCache::default(),
            functions: Mutex::default(),
            changes: Changes::default(),
            is_refreshing: AtomicBool::new(false),
            shown: Mutex::default(),
        }
    }

    /// The storage.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The uploads of a database whose files are blobs.
    pub fn uploads(&self) -> Option<&Arc<dyn Uploads>> {
        self.uploads.as_ref().map(UploadTask::uploads)
    }

    /// Closes the store, then uploads what is left.
    ///
    /// Errors: `io`; `unavailable` and `in_use` if not everything was uploaded: the rest is on the local disk.
    pub async fn close(&self) -> Result<()> {
        self.store.close()?;
        match self.uploads() {
            Some(uploads) => uploads.close().await,
            None => Ok(()),
        }
    }

    /// Called before a commit is acknowledged: waits until it is uploaded, where commits are held until then.
    ///
    /// Errors: `unavailable` if the blob store is away for long, and `in_use` if another writer has the blobs. The
    /// commit is visible, and on the local disk.
    pub async fn acknowledge(&self) -> Result<()> {
        match self.uploads() {
            Some(uploads) if uploads.holds_commits() && !plant::is(Bug::AcknowledgeEarly) => {
                self.store.sync_log()?;
                let reached = uploads.reach(self.store.log_position()).await;
                reached.map_err(|error| match error.kind() {
                    ErrorKind::Unavailable => {
                        error.with_hint(HELD).with_reason(Reason::NotUploaded)
                    }
                    _ => error,
                })
            }
            _ => Ok(()),
        }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Lets the host open files ahead of need. Must be called before every statement that may
    /// create files.
    ///
    /// Errors: `io`, and `limit` if the host cannot provide more files.
    pub async fn prepare_files(&self) -> Result<()> {
        self.host.store.prepare().await
    }

    /// Fetches what a call missed; then the call can be repeated.
    ///
    /// Errors: `error` itself unless it is one of absent bytes; `io`; `cancelled`.
    pub(crate) async fn fetch(
        &self,
        fetched: &mut Fetched,
        error: Error,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        self.store.environment().fetch(fetched, error, is_cancelled).await
    }

    /// Like [`Engine::fetch`], blocking the thread; `error` itself where threads cannot block.
    pub(crate) fn fetch_now(&self, fetched: &mut Fetched, error: Error) -> Result<()> {
        self.store.environment().fetch_now(fetched, error, &|| false)
    }

    /// Repeats a call until it misses nothing.
    pub(crate) async fn fetching<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        self.fetching_for(Fetched::default(), call).await
    }

    async fn fetching_for<T>(
        &self,
        mut fetched: Fetched,
        mut call: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        loop {
            match call() {
                Err(error) if error.missing().is_some() => {
                    self.fetch(&mut fetched, error, &|| false).await?;
                }
                done => return done,
            }
        }
    }

    /// Repeats a step of background work until it misses nothing. The work fails if its bytes
    /// cannot be fetched.
    pub(crate) async fn maintained<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        let mut has_missed = false;
        let done = self.fetching_for(Fetched::of_background(), || {
            let done = step();
            has_missed = done.as_ref().is_err_and(|error| error.missing().is_some());
            done
        });
        let done = done.await;
        if has_missed {
            self.store.give_up_maintenance();
        }
        done
    }

    /// Waits until a statement may begin to compute; see [`Slots::begin`].
    pub(crate) async fn slot(&self, cancel: &AtomicBool) -> Result<Slot<'_>> {
        self.slots.begin(cancel, &*self.host.clock).await
    }

    /// Waits until a statement that has begun may continue; see [`Slots::go_on`].
    pub(crate) async fn slot_again(&self, cancel: &AtomicBool) -> Result<Slot<'_>> {
        self.slots.go_on(cancel, &*self.host.clock).await
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

    /// Makes every prepared statement, and every text that ran before, bind again before its next
    /// run.
    pub(crate) fn catalog_changed(&self) {
        self.catalog_version.fetch_add(1, Ordering::AcqRel);
        self.statements.unbind();
        self.changes.add_catalog();
    }

    /// The functions that the application created.
    pub(crate) fn functions(&self) -> Arc<CreatedFunctions> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change_functions<T>(&self, change: impl FnOnce(&mut CreatedFunctions) -> T) -> T {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut functions))
    }

    /// Creates a function for all connections; one of the same name that the application created is
    /// replaced. Statements that run go on with the functions they began with. The caller has
    /// checked the name ([`created_name`](nacre_sql::created_name)).
    pub fn create_function(&self, function: Created) {
        self.change_functions(|functions| functions.add(function));
        self.catalog_changed();
    }

    /// Removes a function that the application created; returns whether there was one.
    pub fn drop_function(&self, name: &str) -> bool {
        let removed = self.change_functions(|functions| functions.remove(name));
        if removed {
            self.catalog_changed();
        }
        removed
    }

    /// Which tables were changed last.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    pub(crate) fn statements(&self) -> &StatementCache {
        &self.statements
    }

    pub(crate) fn catalog_version(&self) -> u64 {
        self.catalog_version.load(Ordering::Acquire)
    }

    /// Makes visible what the writer of a database that is only read has committed since; see
    /// [`Store::refresh`]. Returns whether anything was new.
    ///
    /// Errors: `io` if bytes must be fetched and the host's threads cannot wait, where
    /// [`Engine::refresh_async`] does.
    pub fn refresh(&self) -> Result<bool> {
        if self.uploads.is_none() {
            return self.refresh_now();
        }
        let mut refreshed = None;
        let refresh: Fetch<'_> = Box::pin(async {
            refreshed = Some(self.refresh_async().await?);
            Ok(Resident::new(()))
        });
        let waited = self.host.parallelism.wait(refresh);
        waited.transpose()?;
        refreshed.ok_or_else(|| Error::io("following blobs must wait, which this thread cannot"))
    }

    /// Like [`Engine::refresh`], and awaits what must be fetched. Of several calls one follows at a time.
    pub async fn refresh_async(&self) -> Result<bool> {
        let _turn = self.turn_to_refresh().await;
        let Some(uploads) = self.uploads() else { return self.refresh_now() };
        // Before there is more to read.
        self.note_reads(&**uploads);
        uploads.advance(self.store.log_position()).await?;
        let is_new = self.fetching(|| self.refresh_now()).await?;
        self.note_reads(&**uploads);
        Ok(is_new)
    }

    /// Notes which states are read no more.
    fn note_reads(&self, uploads: &dyn Uploads) {
        let position = self.store.log_position();
        let newest = self.store.visible();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.last().is_none_or(|last| last.position < position) {
            shown.push(Shown { newest, position });
        }
        let oldest = self.store.oldest_read();
        let used = shown.iter().rposition(|shown| shown.newest <= oldest).unwrap_or(0);
        shown.drain(..used);
        debug_assert!(shown.is_sorted_by(|a, b| a.position < b.position && a.newest <= b.newest));
        if let Some(first) = shown.first() {
            uploads.note_reads(first.position);
        }
    }

    async fn turn_to_refresh(&self) -> Refreshing<'_> {
        while self.is_refreshing.swap(true, Ordering::AcqRel) {
            self.host.clock.sleep_until(self.now_ns().saturating_add(TURN_NS)).await;
        }
        Refreshing(&self.is_refreshing)
    }

    /// Follows the log as far as it is in the store.
    fn refresh_now(&self) -> Result<bool> {
        let (visible, changed) = (self.store.visible(), self.store.last_ddl());
        let now = self.store.refresh()?;
        debug_assert!(now >= visible, "commit {visible} is no longer visible after commit {now}");
        if self.store.last_ddl() != changed {
            self.catalog_changed();
        } else if now > visible {
            // Which tables the records were about is not known here.
            self.changes.add_catalog();
        }
        Ok(now > visible)
    }

    /// Called after a commit: wakes the host's background task if work is due, or does a unit of it
    /// here, and more while rowstores exceed their soft limit. A failure does not affect the
    /// statement, which has committed: the next [`Engine::maintain`] reports it, and a failed log
    /// rejects the next commit.
    pub fn housekeeping(&self) {
        let store = &self.store;
        let must_time = || self.background.as_ref().is_some_and(|task| task.must_time(store));
        if (store.needs_maintenance() || must_time()) && !self.wake() {
            while matches!(store.maintain(), Ok(true)) && store.can_relieve() {}
        }
    }

    /// Wakes the host's background task. Returns `false` if there is none: the caller does the work.
    fn wake(&self) -> bool {
        self.background.as_ref().is_some_and(|background| background.task.wake())
    }

    /// Called before a write that finds no room in the rowstores: lets the host's background task
    /// flush them, or does it here on a host without one. A failure is not the statement's.
    pub(crate) fn relieve(&self) {
        if !self.wake() {
            // At least once: an unfinished task may hold the snapshot that keeps rows in memory.
            while matches!(self.store.maintain(), Ok(true)) && self.store.can_relieve() {}
        }
    }

    /// Called after a change of the catalog, which may enable work such as removal of files. A
    /// failure does not affect the statement.
    pub(crate) fn start_maintenance(&self) {
        if !self.wake() {
            self.store.maintain().ok();
        }
    }

    /// Does one unit of background work; see [`Store::maintain_step`]. Waits if the host's background
    /// task is at work, and awaits absent bytes.
    pub async fn maintain_async(&self) -> Result<bool> {
        let step = || match &self.background {
            Some(_) => self.store.maintain_step_in_turn(),
            None => self.store.maintain_step(),
        };
        self.maintained(step).await
    }

    /// Checks everything that is stored; see [`Store::begin_check`]. Absent bytes are awaited.
    pub async fn check_async(&self) -> Result<Vec<String>> {
        let slices = TimeSlices::new(self.store.environment());
        let mut check = self.store.begin_check();
        while self.fetching(|| self.store.check_step(&mut check)).await? {
            if slices.has_ended(self.store.environment()) {
                slices.give_way(self.store.environment(), &|| false).await?;
            }
        }
        Ok(self.store.end_check(check))
    }

    /// Like [`Engine::maintain_async`], but blocks the thread while bytes are fetched. They are an
    /// error where it cannot block: the work goes on once something awaits them.
    pub fn maintain(&self) -> Result<bool> {
        match &self.background {
            Some(_) => self.store.maintain_in_turn(),
            None => self.store.maintain(),
        }
    }
}

/// The background task of a host that has threads or idle time.
struct Maintenance {
    task: Box<dyn Background>,
    /// Whether the task rests until commits of relaxed durability must be synced.
    is_timed: Arc<AtomicBool>,
}

impl Maintenance {
    /// Starts a task that does the background work of a store as long as the store exists.
    fn start(store: &Arc<Store>, host: &Host) -> Option<Maintenance> {
        let is_timed = Arc::new(AtomicBool::new(false));
        let (store, timed) = (Arc::downgrade(store), is_timed.clone());
        let work = move || {
            let Some(store) = store.upgrade() else { return Rest::UntilWoken };
            if matches!(store.maintain_in_turn(), Ok(true)) {
                return Rest::No;
            }
            // Set first: a commit from here on wakes the task.
            timed.store(false, Ordering::SeqCst);
            match store.sync_due_in() {
                Some(time) => {
                    timed.store(true, Ordering::SeqCst);
                    Rest::For(time)
                }
                None => Rest::UntilWoken,
            }
        };
        let task = host.parallelism.background(Box::new(work))?;
        Some(Maintenance { task, is_timed })
    }

    /// Whether commits must be synced at some time for which the task does not wait yet.
    fn must_time(&self, store: &Store) -> bool {
        store.sync_due_in().is_some() && !self.is_timed.swap(true, Ordering::SeqCst)
    }
}
