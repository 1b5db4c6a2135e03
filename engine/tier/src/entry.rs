//! The files of the store: what is known of each, and where its bytes are.
//!
//! Whether the bytes are local is decided under the lock of the handle: a reader holds it shared for one call,
//! eviction exclusively.

use crate::manifest::{Blob, Piece};
use nacre_host::{LocalFile, LocalStore};
use nacre_types::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError, Weak};

/// Starts of the names of files that are written once: segments, index parts, hash tables.
const DATA: [&str; 3] = ["seg-", "idx-", "hsh-"];

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A chunk of the log, with the position of its first record. Appended to.
    Chunk(u64),
    /// A snapshot at a position.
    Snapshot(u64),
    /// Written once, and then only read.
    Data,
    /// Stays here: temporary files, the log's reach, and foreign ones.
    Local,
}

impl Kind {
    /// What the file of this name is.
    pub fn of(name: &str) -> Kind {
        if let Some(start) = nacre_log::chunk_of(name) {
            return Kind::Chunk(start);
        }
        if let Some(at) = nacre_log::snapshot_of(name) {
            return Kind::Snapshot(at);
        }
        let is_data = |kind: &&str| nacre_host::number_of_file(kind, name).is_some();
        if DATA.iter().any(is_data) { Kind::Data } else { Kind::Local }
    }
}

/// A file.
pub(crate) struct Entry {
    pub name: Arc<str>,
    pub kind: Kind,
    /// Names its blocks among those of all files.
    pub id: u64,
    /// When it was last read, in ticks.
    pub used: AtomicU64,
    /// The handle that is open, if there is one. Held while it is opened and while its bytes leave.
    handle: Mutex<Weak<Handle>>,
    meta: Mutex<Meta>,
}

/// What is known of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    /// Whether its bytes are on the local disk.
    pub is_here: bool,
    /// End of what was written, but for zeroes that reserve space in a chunk.
    pub written: u64,
    /// End of what a sync has covered since.
    pub synced: u64,
    /// Whether anything was written since the last sync.
    pub is_dirty: bool,
    /// Whether the log may name it; of a snapshot, whether it stands for the log.
    pub is_named: bool,
    /// How many syncs of the log had returned when it was noted that the log may name it.
    pub named_at: u64,
    /// Whether the engine is removing it or has removed it.
    pub is_removed: bool,
    /// Whether it was there when the store was attached.
    pub is_found: bool,
    /// Its blob, once it is uploaded. Never of a chunk.
    pub blob: Option<Blob>,
    /// Of a chunk, what is uploaded.
    pub pieces: Vec<Piece>,
}

/// The file behind an entry as long as something has it open; `None` once its bytes have left.
pub(crate) struct Handle(pub RwLock<Option<Arc<dyn LocalFile>>>);

impl Entry {
    pub fn new(name: &str, id: u64, meta: Meta) -> Arc<Entry> {
        Arc::new(Entry {
            name: name.into(),
            kind: Kind::of(name),
            id,
            used: AtomicU64::new(0),
            handle: Mutex::default(),
            meta: Mutex::new(meta),
        })
    }

    pub fn meta(&self) -> MutexGuard<'_, Meta> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle, with the file that was just created.
    pub fn created(&self, file: Arc<dyn LocalFile>) -> Arc<Handle> {
        let handle = Arc::new(Handle(RwLock::new(Some(file))));
        *self.locked() = Arc::downgrade(&handle);
        handle
    }

    /// The handle; opens the file if its bytes are local and nothing has it open.
    pub fn open(&self, store: &dyn LocalStore) -> Result<Arc<Handle>> {
        let mut known = self.locked();
        if let Some(handle) = known.upgrade() {
            return Ok(handle);
        }
        let is_here = self.meta().is_here;
        let file = if is_here { Some(store.open(&self.name)?) } else { None };
        let handle = Arc::new(Handle(RwLock::new(file)));
        *known = Arc::downgrade(&handle);
        Ok(handle)
    }

    /// Removes the local bytes, which can be fetched from then on. Returns `false` if a read is in progress.
    pub fn leave(&self, store: &dyn LocalStore) -> Result<bool> {
        let known = self.locked();
        let handle = known.upgrade();
        let mut file = match handle.as_ref().map(|handle| handle.0.try_write()) {
            None => None,
            Some(Ok(file)) => Some(file),
            Some(Err(TryLockError::Poisoned(panicked))) => Some(panicked.into_inner()),
            Some(Err(TryLockError::WouldBlock)) => return Ok(false),
        };
        store.remove(&self.name)?;
        if let Some(file) = &mut file {
            **file = None;
        }
        self.meta().is_here = false;
        Ok(true)
    }

    /// Notes a read.
    pub fn use_at(&self, tick: u64) {
        self.used.store(tick, Ordering::Relaxed);
    }

    fn locked(&self) -> MutexGuard<'_, Weak<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle {
    /// The local file, for one call; `None` if its bytes have left.
    pub fn file(&self) -> RwLockReadGuard<'_, Option<Arc<dyn LocalFile>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
