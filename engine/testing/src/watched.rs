//! A store that asks a test before each call: to let it pass, to refuse it, or to do something else
//! first, such as letting another transaction run at exactly this moment.

use nacre_host::{Fetch, LocalFile, LocalStore, Missing, ReadRange, Result};
use std::sync::Arc;

/// A call that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A file is made.
    Create,
    /// A file is removed.
    Remove,
    /// Ranges of a file are read in one call.
    Read {
        /// How many ranges.
        ranges: usize,
        /// Their bytes together.
        bytes: usize,
    },
    /// Bytes are written to a file.
    Write {
        /// How many.
        bytes: usize,
    },
    /// A file is cut or extended.
    Truncate,
    /// A file is synced.
    Sync,
}

impl Call {
    /// Returns the bytes that are read or written.
    pub fn bytes(self) -> usize {
        match self {
            Call::Read { bytes, .. } | Call::Write { bytes } => bytes,
            Call::Create | Call::Remove | Call::Truncate | Call::Sync => 0,
        }
    }
}

type Before = Arc<dyn Fn(&str, Call) -> Result<()> + Send + Sync>;

/// A store over another. It counts as a disk, even over memory.
pub struct Watched {
    files: Arc<dyn LocalStore>,
    before: Before,
}

struct WatchedFile {
    name: String,
    file: Arc<dyn LocalFile>,
    before: Before,
}

impl Watched {
    /// Calls `before` with the file's name before each call; an error refuses the call. Listing,
    /// opening and asking for a length are not watched.
    pub fn new(
        files: Arc<dyn LocalStore>,
        before: impl Fn(&str, Call) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<Watched> {
        Arc::new(Watched { files, before: Arc::new(before) })
    }

    /// Returns a file that calls `before` before each call but `len`; an error refuses the call.
    pub fn file(
        name: &str,
        file: Arc<dyn LocalFile>,
        before: impl Fn(&str, Call) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<dyn LocalFile> {
        Arc::new(WatchedFile { name: name.into(), file, before: Arc::new(before) })
    }

    fn watch(&self, name: &str, file: Arc<dyn LocalFile>) -> Arc<dyn LocalFile> {
        Arc::new(WatchedFile { name: name.into(), file, before: self.before.clone() })
    }
}

impl LocalStore for Watched {
    fn list(&self) -> Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        Ok(self.watch(name, self.files.open(name)?))
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        (self.before)(name, Call::Create)?;
        Ok(self.watch(name, self.files.create(name)?))
    }
    fn remove(&self, name: &str) -> Result<()> {
        (self.before)(name, Call::Remove)?;
        self.files.remove(name)
    }
    fn note_named(&self, name: &str) {
        self.files.note_named(name);
    }
    fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
        self.files.fetch(missing)
    }
}

impl LocalFile for WatchedFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let bytes = ranges.iter().map(|range| range.buffer.len()).sum();
        (self.before)(&self.name, Call::Read { ranges: ranges.len(), bytes })?;
        self.file.read(ranges)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.before)(&self.name, Call::Write { bytes: bytes.len() })?;
        self.file.write(offset, bytes)
    }
    fn truncate(&self, len: u64) -> Result<()> {
        (self.before)(&self.name, Call::Truncate)?;
        self.file.truncate(len)
    }
    fn sync(&self) -> Result<()> {
        (self.before)(&self.name, Call::Sync)?;
        self.file.sync()
    }
}
