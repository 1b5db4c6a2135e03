//! A folder of files as a local store.
//!
//! What a sync promises. `LocalFile::sync` is `fdatasync` of the file: its bytes, and of its metadata what is needed
//! to read them back (the length), but not the modification time. Names are made durable by `fsync` of the folder:
//! the first sync of any file after files were created or removed does that too, before it reports success. So a
//! created file survives a power cut from its first successful sync on, and a removal at the latest from the next
//! sync of any file on. All this is as good as the file system's and the drive's word.
//!
//! One process has the folder at a time, see `lock`.

use crate::io_error::io_error;
use crate::lock::FolderLock;
use nacre_host::{Error, LocalFile, LocalStore, ReadRange, Result, check_file_name};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a folder's files are read and written. The promises are the same.
///
/// ```
/// use nacre_native::FileIo;
///
/// assert_eq!(FileIo::named("plain")?, FileIo::Plain);
/// # Ok::<(), nacre_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// The fastest by measurement on this system, see `docs/decisions/0008-file-io.md`.
    #[default]
    Auto,
    /// One call a read, write and sync.
    Plain,
    /// io_uring for everything it is implemented for: batches of reads, and the log's writes with their syncs. Where
    /// the system has none, plain calls.
    Uring,
}

impl FileIo {
    /// The variant that a word names: `auto`, `plain` or `uring`.
    ///
    /// Errors: `unsupported` for any other word.
    pub fn named(word: &str) -> Result<FileIo> {
        match word {
            "auto" => Ok(FileIo::Auto),
            "plain" => Ok(FileIo::Plain),
            "uring" => Ok(FileIo::Uring),
            _ => Err(Error::unsupported(format!("file I/O {word:?}"))
                .with_hint("there are auto, plain and uring")),
        }
    }

    /// The variant that the environment variable `NACRE_IO` names; [`FileIo::Auto`] without it.
    ///
    /// Errors: those of [`FileIo::named`].
    pub fn from_environment() -> Result<FileIo> {
        std::env::var("NACRE_IO").map_or(Ok(FileIo::Auto), |word| FileIo::named(&word))
    }
}

/// Ranges of the smallest batch of reads that goes to the ring under [`FileIo::Auto`]. Fewer are faster by plain calls.
const BATCH: usize = 4;

/// A locked folder. The lock lasts until the store and all of its files are dropped.
///
/// ```
/// use nacre_native::FolderStore;
///
/// let path = std::env::temp_dir().join(format!("nacre-doc-store-{}", std::process::id()));
/// let store = FolderStore::open(&path)?;
/// assert!(FolderStore::open(&path).is_err(), "it is locked");
/// drop(store);
/// std::fs::remove_dir_all(&path).ok();
/// # Ok::<(), nacre_host::Error>(())
/// ```
pub struct FolderStore(Arc<Folder>);

struct Folder {
    path: PathBuf,
    /// The folder itself, for syncing names.
    handle: File,
    io: FileIo,
    #[cfg(target_os = "linux")]
    uring: Option<crate::uring::Uring>,
    /// Number of names created and removed, and of those among them that are durable.
    changes: AtomicU64,
    durable_changes: AtomicU64,
    _lock: FolderLock,
}

struct FolderFile {
    folder: Arc<Folder>,
    name: String,
    file: File,
}

impl FolderStore {
    /// Makes the folder if it is missing, and locks it. Files are read and written as `NACRE_IO` says.
    ///
    /// Errors: `in_use` when the folder is locked, by this process or another; `io`.
    pub fn open(path: &Path) -> Result<FolderStore> {
        FolderStore::open_with(path, FileIo::from_environment()?)
    }

    /// Like [`FolderStore::open`], with a choice of how files are read and written.
    ///
    /// Errors: those of [`FolderStore::open`].
    pub fn open_with(path: &Path, io: FileIo) -> Result<FolderStore> {
        let failed = |error: io::Error| io_error(error, path, "open");
        // The process may go to another folder; the database stays.
        let path = &*std::path::absolute(path).map_err(failed)?;
        create_folders(path).map_err(failed)?;
        let handle = File::open(path).map_err(failed)?;
        let lock = FolderLock::take(path)?;
        // The process that had the folder before may have ended between creating a file and syncing its name.
        handle.sync_all().map_err(|error| io_error(error, path, "sync"))?;
        Ok(FolderStore(Arc::new(Folder {
            path: path.to_path_buf(),
            handle,
            io,
            #[cfg(target_os = "linux")]
            uring: if io == FileIo::Plain { None } else { crate::uring::Uring::new() },
            changes: AtomicU64::new(0),
            durable_changes: AtomicU64::new(0),
            _lock: lock,
        })))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn open_file(
        &self,
        name: &str,
        options: &OpenOptions,
        verb: &str,
    ) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        let file = options.open(self.0.path.join(name)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::not_found(format!("file {name} in {}", self.0.path.display()))
            }
            ErrorKind::AlreadyExists => {
                Error::already_exists(format!("file {name} in {}", self.0.path.display()))
            }
            _ => io_error(error, &self.0.path.join(name), verb),
        })?;
        Ok(Arc::new(FolderFile { folder: self.0.clone(), name: name.to_string(), file }))
    }
}

/// Like `create_dir_all`; the names of the folders that it makes are durable.
fn create_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    create_folders(parent)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => return Ok(()),
        other => other?,
    }
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    File::open(parent)?.sync_all()
}

/// Whether a name is a file's, or a link to one, as is left behind when a file is moved to another disk.
fn is_file(entry: &std::fs::DirEntry) -> io::Result<bool> {
    let kind = entry.file_type()?;
    if !kind.is_symlink() {
        return Ok(kind.is_file());
    }
    match std::fs::metadata(entry.path()) {
        Ok(behind) => Ok(behind.is_file()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl LocalStore for FolderStore {
    fn list(&self) -> Result<Vec<String>> {
        let failed = |error: io::Error| io_error(error, &self.0.path, "list");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Other files in the folder are not the database's and are left alone.
            if let Ok(name) = entry.file_name().into_string()
                && check_file_name(&name).is_ok()
                && is_file(&entry).map_err(failed)?
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.open_file(name, OpenOptions::new().read(true).write(true), "open")
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let file = self.open_file(
            name,
            OpenOptions::new().read(true).write(true).create_new(true),
            "create",
        )?;
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        Ok(file)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_file_name(name)?;
        std::fs::remove_file(self.0.path.join(name)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::not_found(format!("file {name} in {}", self.0.path.display()))
            }
            _ => io_error(error, &self.0.path.join(name), "remove"),
        })?;
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

impl Folder {
    fn sync_names(&self) -> io::Result<()> {
        let changes = self.changes.load(Ordering::Acquire);
        if self.durable_changes.load(Ordering::Acquire) < changes {
            self.handle.sync_all()?;
            self.durable_changes.fetch_max(changes, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl FolderFile {
    #[cold]
    fn error(&self, error: io::Error, verb: &str) -> Error {
        io_error(error, &self.folder.path.join(&self.name), verb)
    }

    fn read_one(&self, range: &mut ReadRange<'_>) -> Result<()> {
        // The system refuses offsets that it cannot represent; here they are past the end.
        let result = match i64::try_from(range.offset) {
            Ok(_) => self.file.read_exact_at(range.buffer, range.offset),
            Err(_) => Err(ErrorKind::UnexpectedEof.into()),
        };
        result.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::corrupt(format!(
                "{}: ends before byte {}",
                self.name,
                range.offset.saturating_add(range.buffer.len() as u64)
            )),
            _ => self.error(error, "read"),
        })
    }

    fn sync_names(&self) -> Result<()> {
        self.folder.sync_names().map_err(|error| io_error(error, &self.folder.path, "sync"))
    }

    /// The ring, when a batch of `count` reads should go there.
    #[cfg(target_os = "linux")]
    fn ring_for_reads(&self, count: usize) -> Option<&crate::uring::Uring> {
        let least = if self.folder.io == FileIo::Uring { 2 } else { BATCH };
        self.folder.uring.as_ref().filter(|_| count >= least)
    }
}

impl LocalFile for FolderFile {
    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|error| self.error(error, "stat"))?.len())
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(uring) = self.ring_for_reads(ranges.len()) {
            let filled = uring.read(&self.file, ranges);
            // Reads the ring left are repeated here, or fail here with a message.
            let mut left = ranges.iter_mut().zip(filled).filter(|(_, filled)| !filled);
            return left.try_for_each(|(range, _)| self.read_one(range));
        }
        ranges.iter_mut().try_for_each(|range| self.read_one(range))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| self.error(error, "write"))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|error| self.error(error, "truncate"))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| self.error(error, "sync"))?;
        self.sync_names()
    }

    #[cfg(target_os = "linux")]
    fn write_synced(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        use crate::uring::Written;
        let uring = self.folder.uring.as_ref().filter(|_| self.folder.io == FileIo::Uring);
        match uring.map_or(Written::NotDone, |uring| uring.write_synced(&self.file, offset, bytes))
        {
            Written::Durable => self.sync_names(),
            Written::SyncFailed(error) => Err(self.error(error, "sync")),
            Written::NotDone => {
                self.write(offset, bytes)?;
                self.sync()
            }
        }
    }
}
