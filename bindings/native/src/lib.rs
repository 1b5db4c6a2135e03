//! Nacre's host on an operating system: files in a folder, the system's clock and randomness, and
//! threads.
//!
//! Nothing here knows what the files contain. `folder` documents what a sync guarantees. On WASI there are files
//! and no threads: statements run on the caller's, and background work after them.

mod at;
mod background;
mod clock;
mod entropy;
mod folder;
mod hosts;
mod io_error;
#[cfg(not(target_os = "wasi"))]
mod lock;
#[cfg(target_os = "wasi")]
mod lock_wasi;
mod open_files;
#[cfg(target_os = "linux")]
mod pace;
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
pub use hosts::{memory_host, open_folder, open_folder_beside, open_folder_with};
pub use pool::ThreadPool;
pub use run::block_on;
pub use url::{folder_of, has_database, open_url};
