//! Files for what a statement cannot hold in memory. Nothing in them outlives the statement: a file goes with its
//! owner, and those that a crash left are removed when the database opens. They are never synced.

use crate::store::Store;
use nacre_host::{LocalFile, LocalStore, ReadRange, number_of_file, numbered_file_name};
use nacre_types::Result;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What names of temporary files begin with.
const KIND: &str = "tmp-";

/// A file that is removed with this.
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

    /// Writes at an offset, extending the file if needed.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    /// Reads what was written; `corrupt` when the file has become shorter.
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
        // What cannot be removed now is removed at the next start.
        self.store.remove(&self.name).ok();
    }
}

impl Store {
    /// A new file; none where files are in memory anyway.
    pub fn temporary_file(&self) -> Result<Option<TemporaryFile>> {
        let store = &self.host.store;
        if store.is_in_memory() {
            return Ok(None);
        }
        let name = numbered_file_name(KIND, self.next_temporary.fetch_add(1, Ordering::Relaxed));
        let file = store.create(&name)?;
        Ok(Some(TemporaryFile { store: store.clone(), name, file }))
    }
}

/// Removes what a crash left.
pub(crate) fn remove_left_over(store: &dyn LocalStore, names: &[String]) -> Result<()> {
    names
        .iter()
        .filter(|name| number_of_file(KIND, name).is_some())
        .try_for_each(|name| store.remove(name))
}
