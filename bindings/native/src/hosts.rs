//! Hosts: a file store together with the system's clock, randomness and threads.

use crate::clock::NativeClock;
use crate::entropy::NativeEntropy;
use crate::folder::{FileIo, FolderStore};
use crate::pool::ThreadPool;
use nacre_host::memory::MemoryStore;
use nacre_host::{Host, LocalStore, Result};
use std::path::Path;
use std::sync::Arc;

/// Opens a host whose files are in a folder. Creates the folder if it does not exist, and locks it
/// until the host and all its files are dropped.
///
/// Errors: `in_use` if this process or another one has locked the folder; `io`.
///
/// ```
/// let path = std::env::temp_dir().join(format!("nacre-doc-folder-{}", std::process::id()));
/// let host = nacre_native::open_folder(&path)?;
/// assert!(host.store.list()?.is_empty());
/// # drop(host);
/// # std::fs::remove_dir_all(&path).ok();
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn open_folder(path: &Path) -> Result<Host> {
    Ok(host(Arc::new(FolderStore::open(path)?)))
}

/// Like [`open_folder`], with a kind of file I/O.
///
/// Errors: those of [`open_folder`].
///
/// ```
/// use nacre_native::{FileIo, open_folder_with};
///
/// let path = std::env::temp_dir().join(format!("nacre-doc-plain-{}", std::process::id()));
/// let host = open_folder_with(&path, FileIo::Plain)?;
/// # drop(host);
/// # std::fs::remove_dir_all(&path).ok();
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn open_folder_with(path: &Path, io: FileIo) -> Result<Host> {
    Ok(host(Arc::new(FolderStore::open_with(path, io)?)))
}

/// Opens a host whose files are in a folder only to read them, beside a process that may be writing
/// them. Takes no lock and creates nothing. For databases opened with `Options::read_only`.
///
/// Errors: `not_found` if there is no such folder; `io`.
///
/// ```
/// let path = std::env::temp_dir().join(format!("nacre-doc-beside-{}", std::process::id()));
/// let writer = nacre_native::open_folder(&path)?;
/// let reader = nacre_native::open_folder_beside(&path)?;
/// assert!(reader.store.list()?.is_empty());
/// assert!(reader.store.create("log-0000000000000000").is_err());
/// # drop(writer);
/// # std::fs::remove_dir_all(&path).ok();
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub fn open_folder_beside(path: &Path) -> Result<Host> {
    Ok(host(Arc::new(FolderStore::open_beside(path)?)))
}

/// Creates a host whose files are in memory and disappear when it is dropped.
///
/// ```
/// let host = nacre_native::memory_host();
/// assert!(host.store.is_in_memory());
/// ```
pub fn memory_host() -> Host {
    host(Arc::new(MemoryStore::new()))
}

fn host(store: Arc<dyn LocalStore>) -> Host {
    Host {
        store,
        clock: Arc::new(NativeClock::new()),
        entropy: Arc::new(NativeEntropy::new()),
        parallelism: ThreadPool::shared(),
    }
}
