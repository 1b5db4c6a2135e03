//! What the parts of the store share: the host's services, the files, what the blobs hold, and requests that
//! read ahead.
//!
//! Locks are taken in the order state, entry, blocks. None is held during a call of the host's files that
//! takes time, nor while a blob store is asked.

use crate::blocks::{BLOCKS, Blocks};
use crate::capture::{Capture, NAMING_SYNCS};
use crate::collecting::Collecting;
use crate::entry::{Entry, Kind, Meta};
use crate::leasing::Leasing;
use crate::manifest::Manifest;
use crate::options::TierOptions;
use crate::warmer::Warmer;
use nacre_host::{
    Answer, BlobReads, BlobStore, Clock, Entropy, LocalFile, LocalStore, ReadRange, Tag,
};
use nacre_types::hash::Set;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;

/// A function that makes the host call for the next step soon.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

/// What the parts of the store share.
pub(crate) struct Shared {
    pub local: Arc<dyn LocalStore>,
    pub blobs: Arc<dyn BlobStore>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub options: TierOptions,
    /// Identifies the manifests of this instance; 0 if it only reads.
    token: AtomicU64,
    /// Its number among the writers; 0 if it only reads.
    writer: AtomicU64,
    is_reader: bool,
    /// Whether it shows a state of the past, and goes on to no other.
    pub is_past: bool,
    state: Mutex<State>,
    blocks: Mutex<Blocks>,
    /// Set once a newer writer was met.
    is_fenced: AtomicBool,
    /// Bytes that no manifest has yet, approximately.
    pub unsent: AtomicU64,
    /// Whether a step is in progress.
    pub is_stepping: AtomicBool,
    pub wake: OnceLock<Wake>,
    /// Requests that read ahead. Locked before the state.
    pub flights: Mutex<Flights>,
    /// Those whose blocks are there, and still belong to them.
    pub landed: Mutex<Flights>,
    pub reads: Reads,
    pub demand: Demand,
    /// What is brought before it is needed, until all of it is there.
    warmer: Mutex<Option<Warmer>>,
    tick: AtomicU64,
}

/// Counts of reads of bytes that were not on the local disk when they were asked for; see [`BlobReads`].
#[derive(Default)]
pub(crate) struct Reads {
    pub requests: AtomicU64,
    pub bytes: AtomicU64,
    pub bytes_ahead: AtomicU64,
    pub bytes_warmed: AtomicU64,
    pub waits: AtomicU64,
    pub hits: AtomicU64,
}

/// The files, and what the blobs hold.
#[derive(Default)]
pub(crate) struct State {
    pub files: SortedMap<Arc<str>, Arc<Entry>>,
    /// Removed by the engine; their local bytes are still to be removed.
    pub leaving: Vec<Arc<Entry>>,
    /// When that is tried again, if it has failed.
    pub leave_ns: u64,
    /// The newest manifest that is known to be in the blob store.
    pub remote: Manifest,
    /// Its tag; `None` if there is none.
    pub tag: Option<Tag>,
    /// The sequence number of the last manifest that was attempted.
    pub sequence: u64,
    /// How many syncs of the log have returned that made more of it durable.
    pub syncs: u64,
    /// Whether the log here may be longer than the one of the newest manifest: another instance wrote it.
    pub is_resumed: bool,
    /// What is being uploaded.
    pub capture: Option<Capture>,
    /// When the oldest change was made that no capture has.
    pub changed_ns: Option<u64>,
    /// When the last capture was taken.
    pub taken_ns: u64,
    /// How long an upload is expected to take; `u64::MAX` before the first.
    pub upload_ns: u64,
    /// Whether the next capture is taken at once.
    pub is_hurried: bool,
    /// Number of failures since the last success.
    pub failures: u32,
    /// No step is taken before this time.
    pub retry_ns: u64,
    pub last_error: Option<Error>,
    /// Whether it was opened without the blob store, and has no number of its own yet: nothing is uploaded before.
    pub is_apart: bool,
    /// Why nothing is uploaded any more.
    pub damage: Option<Error>,
    /// Dropped blobs that have been removed; the next manifest forgets them.
    pub collected: Set<Arc<str>>,
    /// What is known of blobs to be removed.
    pub collecting: Collecting,
    /// Of a store that only reads: the files that the newest manifest does not name.
    pub unnamed: SortedMap<Arc<str>, Unnamed>,
    /// Of a store that only reads: what keeps its blobs from being removed.
    pub leasing: Leasing,
    /// Of a store that only reads: when it looked for the newest manifest last.
    pub looked_ns: u64,
    next_id: u64,
}

/// When the newest manifest has stopped naming a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unnamed {
    /// By the wall clock of the reader.
    pub since_us: i64,
    /// Position of the first manifest that did not name it.
    pub position: u64,
}

/// What a new instance begins with.
pub(crate) struct Beginning {
    pub options: TierOptions,
    pub token: u64,
    pub writer: u64,
    pub remote: Manifest,
    /// `None` if the blob store has not answered yet, or has no manifest.
    pub tag: Option<Tag>,
    pub is_past: bool,
    pub is_apart: bool,
}

impl Shared {
    pub fn new(
        local: Arc<dyn LocalStore>,
        blobs: Arc<dyn BlobStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        beginning: Beginning,
    ) -> Arc<Shared> {
        let Beginning { options, token, writer, remote, tag, is_past, is_apart } = beginning;
        let blocks = Blocks::new(options.block_bytes.max(512));
        // What is there when the store is attached is named by the log.
        let syncs = NAMING_SYNCS;
        let (sequence, looked_ns) = (remote.sequence, clock.monotonic_ns());
        let collecting = Collecting::of(writer, looked_ns);
        let state = State {
            sequence,
            remote,
            tag,
            syncs,
            looked_ns,
            collecting,
            is_apart,
            upload_ns: u64::MAX,
            ..State::default()
        };
        Arc::new(Shared {
            local,
            blobs,
            clock,
            entropy,
            options,
            token: AtomicU64::new(token),
            writer: AtomicU64::new(writer),
            is_reader: writer == 0,
            is_past,
            state: Mutex::new(state),
            blocks: Mutex::new(blocks),
            is_fenced: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
            is_stepping: AtomicBool::new(false),
            wake: OnceLock::new(),
            flights: Mutex::default(),
            landed: Mutex::default(),
            reads: Reads::default(),
            demand: Demand::default(),
            warmer: Mutex::default(),
            tick: AtomicU64::new(1),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn warmer(&self) -> MutexGuard<'_, Option<Warmer>> {
        self.warmer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of slots, created when it is first needed.
    pub fn block_file(&self) -> Result<Arc<dyn LocalFile>> {
        let known = self.blocks().file();
        if let Some(file) = known {
            return Ok(file);
        }
        // Without the lock: it may take time.
        let file = match self.local.create(BLOCKS) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.local.open(BLOCKS)?,
            created => created?,
        };
        Ok(self.blocks().set_file(file))
    }

    /// Notes a request for bytes of a file.
    pub fn count_request(&self) {
        self.reads.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes bytes that have come.
    pub fn count_bytes(&self, bytes: usize) {
        self.reads.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What was read of files whose bytes were not on the local disk.
    pub fn blob_reads(&self) -> BlobReads {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Reads { requests, bytes, bytes_ahead, bytes_warmed, waits, hits } = &self.reads;
        BlobReads {
            requests: count(requests),
            bytes: count(bytes),
            bytes_ahead: count(bytes_ahead),
            bytes_warmed: count(bytes_warmed),
            waits: count(waits),
            hits: count(hits),
        }
    }

    pub fn is_read_only(&self) -> bool {
        self.is_reader
    }

    pub fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    pub fn writer(&self) -> u64 {
        self.writer.load(Ordering::Relaxed)
    }

    /// Notes the number that this writer has taken, and the manifest that says so.
    pub fn note_number(&self, manifest: Manifest, tag: Tag) {
        let mut state = self.state();
        self.writer.store(manifest.writer, Ordering::Relaxed);
        self.token.store(manifest.token, Ordering::Relaxed);
        state.collecting = Collecting::of(manifest.writer, self.clock.monotonic_ns());
        (state.sequence, state.is_apart) = (manifest.sequence, false);
        (state.remote, state.tag) = (manifest, Some(tag));
    }

    /// Whether states of the past are kept.
    pub fn keeps_history(&self) -> bool {
        !self.options.history.is_zero()
    }

    /// The time, as a count of reads.
    pub fn tick(&self) -> u64 {
        self.tick.fetch_add(1, Ordering::Relaxed)
    }

    /// Stops this writer: a newer one has the blobs.
    pub fn fence(&self) {
        let _state = self.state();
        self.is_fenced.store(true, Ordering::Release);
    }

    /// # Errors
    /// `in_use` with [`Reason::Fenced`](nacre_types::Reason::Fenced) once a newer writer was met.
    pub fn check_fence(&self) -> Result<()> {
        match self.is_fenced.load(Ordering::Acquire) {
            true => Err(Error::fenced()),
            false => Ok(()),
        }
    }

    /// Makes the host call for the next step soon.
    pub fn call_soon(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Notes a change that the next capture is to have.
    pub fn note_change(&self, state: &mut State) {
        if state.changed_ns.is_none() && !self.is_read_only() {
            state.changed_ns = Some(self.clock.monotonic_ns());
            self.call_soon();
        }
    }

    /// The whole file of an entry, whose bytes must be local.
    pub fn read_local(&self, entry: &Entry, from: u64, to: u64) -> Result<Vec<u8>> {
        let handle = entry.open(&*self.local)?;
        let file: Arc<dyn LocalFile> = match &*handle.file() {
            Some(file) => file.clone(),
            None => return Err(Error::io(format!("{} is not on the local disk", entry.name))),
        };
        let mut bytes = vec![0; (to - from) as usize];
        file.read(&mut [ReadRange { offset: from, buffer: &mut bytes }])?;
        Ok(bytes)
    }
}

/// Blocks that are kept until this is dropped.
pub(crate) struct Pins {
    shared: Arc<Shared>,
    pub slots: Vec<usize>,
    /// Whether they are read ahead.
    pub is_ahead: bool,
}

/// Fetches that something waits for: warming makes way for them.
#[derive(Default)]
pub(crate) struct Demand {
    fetching: AtomicUsize,
    ended_ns: AtomicU64,
}

impl Demand {
    /// When the last of them has ended; the present while there are some.
    pub fn last_ns(&self, now_ns: u64) -> u64 {
        match self.fetching.load(Ordering::Acquire) {
            0 => self.ended_ns.load(Ordering::Acquire),
            _ => now_ns,
        }
    }
}

/// A fetch that something waits for.
pub(crate) struct Demanded(Arc<Shared>);

impl Demanded {
    pub fn new(shared: &Arc<Shared>) -> Demanded {
        shared.demand.fetching.fetch_add(1, Ordering::AcqRel);
        Demanded(shared.clone())
    }
}

impl Drop for Demanded {
    fn drop(&mut self) {
        let Demand { fetching, ended_ns } = &self.0.demand;
        // At least 1, since 0 is before all of them.
        ended_ns.fetch_max(self.0.clock.monotonic_ns().max(1), Ordering::AcqRel);
        fetching.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let mut blocks = self.shared.blocks();
        if self.is_ahead {
            blocks.end_ahead(self.slots.len());
        }
        self.slots.iter().for_each(|at| blocks.unpin(*at));
    }
}

/// Holds no blocks yet.
pub(crate) fn pins(shared: &Arc<Shared>, is_ahead: bool) -> Pins {
    Pins { shared: shared.clone(), slots: Vec::new(), is_ahead }
}

/// The requests that are planned or in progress, in the order in which they begin.
pub(crate) type Flights = Vec<Weak<Flight>>;

/// A request for a run of absent blocks of a file.
pub(crate) struct Flight {
    pub entry: Arc<Entry>,
    pub blocks: Range<u64>,
    pub blob: String,
    /// Bytes of the blob, and how many it has.
    pub range: Range<u64>,
    pub len: u64,
    /// One for each block, unless they were given up.
    pub pins: Mutex<Pins>,
    pub stage: Mutex<Stage>,
    pub signal: Arc<Signal>,
}

/// How far a request is.
pub(crate) enum Stage {
    Planned,
    Flying(Answer<'static, Vec<u8>>),
    Landed,
}

/// Wakes all that wait for a flight.
#[derive(Default)]
pub(crate) struct Signal {
    /// Whether the request is to be polled.
    pub is_due: AtomicBool,
    pub waiting: Mutex<Vec<Waker>>,
}

impl std::task::Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        std::mem::take(&mut *locked(&self.waiting)).into_iter().for_each(Waker::wake);
    }
}

/// Locks, also after a panic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Adds a file.
    pub fn add(&mut self, name: &str, meta: Meta) -> Arc<Entry> {
        self.next_id += 1;
        let entry = Entry::new(name, self.next_id, meta);
        self.files.insert(entry.name.clone(), entry.clone());
        entry
    }

    /// Lets the next step be taken at once.
    pub fn retry_now(&mut self) {
        (self.retry_ns, self.failures) = (0, 0);
    }

    /// Bytes that no manifest has yet, approximately.
    pub fn unsent_bytes(&self) -> u64 {
        let mut position = self.remote.position;
        let mut bytes = 0;
        for entry in self.files.values().chain(&self.leaving) {
            let meta = entry.meta();
            match entry.kind {
                Kind::Data if meta.blob.is_none() => bytes += meta.synced,
                Kind::Chunk(start) => {
                    position = position.max(nacre_log::position_at(start, meta.synced));
                }
                _ => {}
            }
        }
        bytes + (position - self.remote.position)
    }
}
