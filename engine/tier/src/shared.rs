//! What the parts of the store share: the host's services, the files, and what the blobs hold.
//!
//! Locks are taken in the order state, entry, blocks. None is held during a call of the host's files that
//! takes time, nor while a blob store is asked.

use crate::blocks::{BLOCKS, Blocks};
use crate::capture::{Capture, NAMING_SYNCS};
use crate::entry::{Entry, Kind, Meta};
use crate::manifest::Manifest;
use crate::options::TierOptions;
use nacre_host::{BlobStore, Clock, Entropy, LocalFile, LocalStore, ReadRange, Tag};
use nacre_types::hash::Set;
use nacre_types::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    pub token: u64,
    /// Its number among the writers; 0 if it only reads.
    pub writer: u64,
    state: Mutex<State>,
    blocks: Mutex<Blocks>,
    /// Set once a newer writer was met.
    is_fenced: AtomicBool,
    /// Bytes that no manifest has yet, approximately.
    pub unsent: AtomicU64,
    /// Whether a step is in progress.
    pub is_stepping: AtomicBool,
    pub wake: OnceLock<Wake>,
    tick: AtomicU64,
}

/// The files, and what the blobs hold.
#[derive(Default)]
pub(crate) struct State {
    pub files: BTreeMap<Arc<str>, Arc<Entry>>,
    /// Removed by the engine; their local bytes are still to be removed.
    pub leaving: Vec<Arc<Entry>>,
    /// The newest manifest that is known to be in the blob store.
    pub remote: Manifest,
    /// Its tag; `None` if there is none.
    pub tag: Option<Tag>,
    /// The sequence number of the last manifest that was attempted.
    pub sequence: u64,
    /// How many syncs of the log have returned that made more of it durable.
    pub syncs: u64,
    /// What is being uploaded.
    pub capture: Option<Capture>,
    /// When the oldest change was made that no capture has.
    pub changed_ns: Option<u64>,
    /// Whether the next capture is taken at once.
    pub is_hurried: bool,
    /// Number of failures since the last success.
    pub failures: u32,
    /// No step is taken before this time.
    pub retry_ns: u64,
    pub last_error: Option<Error>,
    /// Why nothing is uploaded any more.
    pub damage: Option<Error>,
    /// Dropped blobs that have been removed; the next manifest forgets them.
    pub collected: Set<Arc<str>>,
    /// Of a store that only reads: since when, by the wall clock, the newest manifest does not name a file.
    pub unnamed: BTreeMap<Arc<str>, i64>,
    /// Of a store that only reads: when it looked for the newest manifest last.
    pub looked_ns: u64,
    next_id: u64,
}

/// What a new instance begins with.
pub(crate) struct Beginning {
    pub options: TierOptions,
    pub token: u64,
    pub writer: u64,
    pub remote: Manifest,
    pub tag: Option<Tag>,
}

impl Shared {
    pub fn new(
        local: Arc<dyn LocalStore>,
        blobs: Arc<dyn BlobStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        beginning: Beginning,
    ) -> Arc<Shared> {
        let Beginning { options, token, writer, remote, tag } = beginning;
        let blocks = Blocks::new(options.block_bytes.max(512));
        // What is there when the store is attached is named by the log.
        let syncs = NAMING_SYNCS;
        let (sequence, looked_ns) = (remote.sequence, clock.monotonic_ns());
        let state = State { sequence, remote, tag, syncs, looked_ns, ..State::default() };
        Arc::new(Shared {
            local,
            blobs,
            clock,
            entropy,
            options,
            token,
            writer,
            state: Mutex::new(state),
            blocks: Mutex::new(blocks),
            is_fenced: AtomicBool::new(false),
            unsent: AtomicU64::new(0),
            is_stepping: AtomicBool::new(false),
            wake: OnceLock::new(),
            tick: AtomicU64::new(1),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
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

    pub fn is_read_only(&self) -> bool {
        self.writer == 0
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

    /// Notes a change that the next capture is to have.
    pub fn note_change(&self, state: &mut State) {
        if state.changed_ns.is_none() && !self.is_read_only() {
            state.changed_ns = Some(self.clock.monotonic_ns());
            if let Some(wake) = self.wake.get() {
                wake();
            }
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
        for entry in self.files.values() {
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
