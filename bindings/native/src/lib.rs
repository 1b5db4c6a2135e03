//! Nacre's host on an operating system: a folder of files, the system's clock and randomness, threads.
//!
//! Nothing here knows what the files contain. What a sync promises is written in `folder`.

mod clock;
mod entropy;
mod folder;
mod lock;
mod pool;
mod run;
#[cfg(test)]
mod tests;
#[cfg(target_os = "linux")]
mod uring;
mod url;

pub use clock::NativeClock;
pub use entropy::NativeEntropy;
pub use folder::{FileIo, FolderStore};
pub use pool::ThreadPool;
pub use run::block_on;
pub use url::{folder_of, has_database, open_url};

use nacre_host::memory::MemoryStore;
use nacre_host::{Host, LocalStore, Result};
use std::path::Path;
use std::sync::Arc;

/// A host whose files are in a folder, which is made if it is missing and locked until the host and all its files
/// are dropped. `in_use` when it is locked already, by this process or another.
pub fn open_folder(path: &Path) -> Result<Host> {
    Ok(host(Arc::new(FolderStore::open(path)?)))
}

/// The same, with a choice of how files are read and written.
pub fn open_folder_with(path: &Path, io: FileIo) -> Result<Host> {
    Ok(host(Arc::new(FolderStore::open_with(path, io)?)))
}

/// A host whose files are gone with it.
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
