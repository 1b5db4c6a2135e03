//! Bounds the number of files of a folder that are open at once. A file is closed by least use,
//! approximated by a clock, and opened again when it is next used.
//!
//! A file with writes that were not synced stays open: only the descriptor that wrote is certain to
//! be told if they fail to reach the disk. So does a file whose sync failed.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

/// Default limit: half of what a process may usually open.
pub(crate) const OPEN_FILES: usize = 512;

/// The open files of a folder.
pub(crate) struct OpenFiles {
    limit: AtomicUsize,
    /// Number of descriptors, at most a few above the limit while files are written.
    open: Arc<AtomicUsize>,
    handles: Mutex<Handles>,
}

#[derive(Default)]
struct Handles {
    /// Those with a descriptor, in the order in which the clock visits them. Some are gone.
    queue: VecDeque<Weak<Handle>>,
    /// All of them, to be told when their file is removed. Some are gone.
    by_name: HashMap<String, Vec<Weak<Handle>>>,
}

/// A file that is used, open or not.
pub(crate) struct Handle {
    name: String,
    file: RwLock<Option<Arc<File>>>,
    /// Whether it was used since the clock last visited it.
    is_used: AtomicBool,
    /// Counts beginnings and ends of changes.
    changes: AtomicU64,
    /// The count of changes that the last successful sync covers.
    synced: AtomicU64,
    is_removed: AtomicBool,
    open: Arc<AtomicUsize>,
}

impl Handle {
    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a change, which may open the file, and keeps it open until it is synced.
    pub fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let result = change();
        self.changes.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Syncs with `sync`, after which the file may be closed.
    pub fn sync<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let covered = self.changes.load(Ordering::Acquire);
        sync()?;
        self.synced.fetch_max(covered, Ordering::AcqRel);
        Ok(())
    }

    /// Whether closing it could lose a failure to write.
    fn is_changed(&self) -> bool {
        self.changes.load(Ordering::Acquire) != self.synced.load(Ordering::Acquire)
    }

    fn current(&self) -> Option<Arc<File>> {
        self.file.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the file unless it has unsynced changes. Returns whether it is closed.
    fn close(&self) -> bool {
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_changed() {
            return false;
        }
        if file.take().is_some() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.current().is_some() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl OpenFiles {
    /// At most this many open files, besides those being written.
    pub fn new(limit: usize) -> OpenFiles {
        OpenFiles {
            limit: AtomicUsize::new(limit),
            open: Arc::default(),
            handles: Mutex::default(),
        }
    }

    /// Changes the limit.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.make_room(&mut self.handles());
    }

    /// Number of open files.
    pub fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a file that `open` opens or creates.
    pub fn enter(
        &self,
        name: &str,
        is_new: bool,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Arc<Handle>> {
        // Opened under the lock: a removal either comes before it or knows the handle.
        let mut handles = self.handles();
        let handle = Arc::new(Handle {
            name: name.to_string(),
            file: RwLock::new(Some(Arc::new(open()?))),
            is_used: AtomicBool::new(true),
            changes: AtomicU64::new(u64::from(is_new)),
            synced: AtomicU64::new(0),
            is_removed: AtomicBool::new(false),
            open: self.open.clone(),
        });
        self.open.fetch_add(1, Ordering::Relaxed);
        let same = handles.by_name.entry(name.to_string()).or_default();
        same.retain(|handle| handle.strong_count() > 0);
        same.push(Arc::downgrade(&handle));
        handles.queue.push_back(Arc::downgrade(&handle));
        self.make_room(&mut handles);
        Ok(handle)
    }

    /// The open file of a handle, which `open` opens again if it was closed.
    ///
    /// # Errors
    /// Those of `open`; `NotFound` if the file was removed, even if there is a new one of its name.
    pub fn get(
        &self,
        handle: &Arc<Handle>,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Arc<File>> {
        handle.is_used.store(true, Ordering::Relaxed);
        if let Some(file) = handle.current() {
            return Ok(file);
        }
        let file = {
            let mut slot = handle.file.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(file) = &*slot {
                return Ok(file.clone());
            }
            let opened = Arc::new(open()?);
            // After opening, because a removal marks the handle before a new file gets the name.
            if handle.is_removed.load(Ordering::Acquire) {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.open.fetch_add(1, Ordering::Relaxed);
            *slot = Some(opened.clone());
            opened
        };
        let mut handles = self.handles();
        handles.queue.push_back(Arc::downgrade(handle));
        self.make_room(&mut handles);
        Ok(file)
    }

    /// Removes a file with `remove`, and marks its handles: they must not open another file that
    /// gets its name.
    pub fn remove(&self, name: &str, remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut handles = self.handles();
        remove()?;
        for handle in handles.by_name.remove(name).iter().flatten().filter_map(Weak::upgrade) {
            handle.is_removed.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Closes files until there are no more than the limit; those used since the last visit are
    /// spared once.
    fn make_room(&self, handles: &mut Handles) {
        let mut visits = 2 * handles.queue.len();
        while visits > 0
            && self.count() > self.limit.load(Ordering::Relaxed)
            && let Some(weak) = handles.queue.pop_front()
        {
            visits -= 1;
            let Some(handle) = weak.upgrade() else { continue };
            if handle.is_used.swap(false, Ordering::Relaxed) || !handle.close() {
                handles.queue.push_back(weak);
            }
        }
        if handles.queue.len() > 64 + 2 * self.count() {
            handles.queue.retain(|handle| handle.strong_count() > 0);
        }
        if handles.by_name.len() > 64 + 2 * handles.queue.len() {
            handles.by_name.retain(|_, same| same.iter().any(|handle| handle.strong_count() > 0));
        }
    }
}
