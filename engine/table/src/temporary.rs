//! Temporary files for rows that a statement cannot hold in memory. A file is removed with its
//! owner; files left by a crash are removed when the database opens. They are never synced.

use crate::segments::names::FileKind;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::Result;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Creates temporary files.
pub(crate) struct TemporaryFiles {
    store: Arc<dyn LocalStore>,
    next: AtomicU64,
}

impl TemporaryFiles {
    /// Creates files in `store`.
    pub fn new(store: Arc<dyn LocalStore>) -> TemporaryFiles {
        TemporaryFiles { store, next: AtomicU64::new(1) }
    }

    /// Creates a file; `None` if the store's files are in memory.
    pub fn create(&self) -> Result<Option<TemporaryFile>> {
        if self.store.is_in_memory() {
            return Ok(None);
        }
        let name = FileKind::Temporary.name(self.next.fetch_add(1, Ordering::Relaxed));
        debug_assert!(
            FileKind::Temporary.number(&name).is_some(),
            "file {name} would be left by a crash"
        );
        let file = self.store.create(&name)?;
        Ok(Some(TemporaryFile { store: self.store.clone(), name, file }))
    }
}

/// Removes files left by a crash.
pub(crate) fn remove_left_over(store: &dyn LocalStore, names: &[String]) -> Result<()> {
    names
        .iter()
        .filter(|name| FileKind::Temporary.number(name).is_some())
        .try_for_each(|name| store.remove(name))
}

/// A temporary file, removed when it is dropped.
pub struct TemporaryFile {
    store: Arc<dyn LocalStore>,
    name: String,
    file: Arc<dyn LocalFile>,
}

impl TemporaryFile {
    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes at an offset, extending the file if necessary.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    /// Reads previously written bytes; `corrupt` if the file has become shorter.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read(&mut [ReadRange { offset, buffer }])
    }
}

impl fmt::Debug for TemporaryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that cannot be removed now is removed at the next start.
        self.store.remove(&self.name).ok();
    }
}
