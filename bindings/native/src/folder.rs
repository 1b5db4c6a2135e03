//! A folder of files as a local store.
//!
//! What a sync guarantees: `LocalFile::sync` is `fdatasync` of the file, which covers its bytes and
//! the metadata needed to read them back (the length), but not the modification time. Names become
//! durable by `fsync` of the folder: the first sync of any file after files were created or removed
//! also syncs the folder before it returns success. A created file therefore survives a power
//! failure after its first successful sync, and a removal at the latest after the next sync of any
//! file. All this holds if the file system and the drive keep their guarantees.
//!
//! Only one process at a time can open the folder, see `lock`. The number of open files is bounded,
//! see `open_files`: a database may have more files than a process has descriptors.

use crate::at::{read_at, write_at};
use crate::io_error::io_error;
#[cfg(not(target_os = "wasi"))]
use crate::lock::FolderLock;
#[cfg(target_os = "wasi")]
use crate::lock_wasi::FolderLock;
use crate::open_files::{Handle, OPEN_FILES, OpenFiles};
use nacre_host::{Error, LocalFile, LocalStore, ReadRange, Result, check_file_name};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of files begin with that belong to running statements.
#[cfg(target_os = "linux")]
const TEMPORARY: &str = "tmp-";

/// System calls used to read and write the files of a folder. The guarantees are the same.
///
/// ```
/// use nacre_native::FileIo;
///
/// assert_eq!(FileIo::named("plain")?, FileIo::Plain);
/// # Ok::<(), nacre_host::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// The fastest by measurement, see `docs/decisions/0008-file-io.md`.
    #[default]
    Auto,
    /// One system call per read, write and sync.
    Plain,
    /// io_uring for batches of reads and for writes followed by a sync; plain calls where the
    /// system has no io_uring.
    Uring,
}

impl FileIo {
    /// Returns the variant with this name: `auto`, `plain` or `uring`.
    ///
    /// Errors: `unsupported` for any other word.
    pub fn named(word: &str) -> Result<FileIo> {
        match word {
            "auto" => Ok(FileIo::Auto),
            "plain" => Ok(FileIo::Plain),
            "uring" => Ok(FileIo::Uring),
            _ => Err(Error::unsupported(format!("unknown kind of file I/O {word:?}"))
                .with_hint("the kinds are auto, plain and uring")),
        }
    }

    /// Returns the variant named by the environment variable `NACRE_IO`; [`FileIo::Auto`] if it is
    /// not set.
    ///
    /// Errors: those of [`FileIo::named`].
    pub fn from_environment() -> Result<FileIo> {
        std::env::var("NACRE_IO").map_or(Ok(FileIo::Auto), |word| FileIo::named(&word))
    }
}

/// Minimum number of ranges for which [`FileIo::Auto`] reads with io_uring; plain calls are faster
/// for fewer.
#[cfg(target_os = "linux")]
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
    /// The folder itself, to sync names.
    handle: File,
    #[cfg(target_os = "linux")]
    io: FileIo,
    #[cfg(target_os = "linux")]
    uring: Option<crate::uring::Uring>,
    /// Number of files created or removed; what an earlier process may have left counts as one.
    changes: AtomicU64,
    /// Number of these changes that are durable.
    durable_changes: AtomicU64,
    open_files: OpenFiles,
    /// `None` if the folder is only read.
    lock: Option<FolderLock>,
}

struct FolderFile {
    folder: Arc<Folder>,
    handle: Arc<Handle>,
    #[cfg(target_os = "linux")]
    pace: crate::pace::Pace,
}

impl FolderStore {
    /// Creates the folder if it does not exist, and locks it. `NACRE_IO` sets the kind of file I/O.
    ///
    /// Errors: `in_use` if this process or another one has locked the folder; `io`.
    pub fn open(path: &Path) -> Result<FolderStore> {
        FolderStore::open_with(path, FileIo::from_environment()?)
    }

    /// Like [`FolderStore::open`], with a kind of file I/O.
    ///
    /// Errors: those of [`FolderStore::open`].
    pub fn open_with(path: &Path, io: FileIo) -> Result<FolderStore> {
        let failed = |error: io::Error| io_error(error, path, "open");
        // Elsewhere there are plain calls only.
        #[cfg(not(target_os = "linux"))]
        let _ = io;
        // The process may change its current folder.
        let path = &*std::path::absolute(path).map_err(failed)?;
        create_folders(path).map_err(failed)?;
        let handle = File::open(path).map_err(failed)?;
        let lock = FolderLock::take(path)?;
        Ok(FolderStore(Arc::new(Folder {
            path: path.to_path_buf(),
            handle,
            #[cfg(target_os = "linux")]
            io,
            #[cfg(target_os = "linux")]
            uring: if io == FileIo::Plain { None } else { crate::uring::Uring::new() },
            // The previous process may have ended between creating a file and syncing its name.
            changes: AtomicU64::new(1),
            durable_changes: AtomicU64::new(0),
            open_files: OpenFiles::new(OPEN_FILES),
            lock: Some(lock),
        })))
    }

    /// Opens a folder only to read it, beside a process that may be writing it. Takes no lock and
    /// creates nothing. All files stay open, so that one can be read although it is removed
    /// meanwhile.
    ///
    /// Errors: `not_found` if there is no such folder; `io`. Creating and removing files fails with
    /// `unsupported`.
    pub fn open_beside(path: &Path) -> Result<FolderStore> {
        #[cfg(target_os = "linux")]
        let io = FileIo::from_environment()?;
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Error::not_found(format!("{} does not exist", path.display())),
            _ => io_error(error, path, "open"),
        };
        let path = &*std::path::absolute(path).map_err(failed)?;
        Ok(FolderStore(Arc::new(Folder {
            path: path.to_path_buf(),
            handle: File::open(path).map_err(failed)?,
            #[cfg(target_os = "linux")]
            io,
            #[cfg(target_os = "linux")]
            uring: if io == FileIo::Plain { None } else { crate::uring::Uring::new() },
            changes: AtomicU64::new(0),
            durable_changes: AtomicU64::new(0),
            open_files: OpenFiles::new(usize::MAX),
            lock: None,
        })))
    }

    /// Fails if the folder is only read.
    fn check_writable(&self) -> Result<()> {
        if self.0.lock.is_none() { Err(Error::read_only()) } else { Ok(()) }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Sets how many files are open at once, besides those with changes that are not synced. The
    /// default is 512. Others are closed by least use and opened again when they are next read.
    ///
    /// ```
    /// use nacre_native::FolderStore;
    ///
    /// let path = std::env::temp_dir().join(format!("nacre-doc-limit-{}", std::process::id()));
    /// let store = FolderStore::open(&path)?;
    /// store.limit_open_files(64);
    /// assert_eq!(store.open_files(), 0);
    /// # drop(store);
    /// # std::fs::remove_dir_all(&path).ok();
    /// # Ok::<(), nacre_host::Error>(())
    /// ```
    pub fn limit_open_files(&self, files: usize) {
        self.0.open_files.set_limit(files);
    }

    /// Number of files that are open.
    pub fn open_files(&self) -> usize {
        self.0.open_files.count()
    }

    fn open_file(&self, name: &str, is_new: bool, verb: &str) -> Result<Arc<dyn LocalFile>> {
        check_file_name(name)?;
        let mut options = OpenOptions::new();
        options.read(true).write(self.0.lock.is_some()).create_new(is_new);
        let open = || options.open(self.0.path.join(name));
        let entered = self.0.open_files.enter(name, is_new, open);
        let handle = entered.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::not_found(format!("file {name} in {} does not exist", self.0.path.display()))
            }
            ErrorKind::AlreadyExists => Error::already_exists(format!(
                "file {name} in {} already exists",
                self.0.path.display()
            )),
            _ => io_error(error, &self.0.path.join(name), verb),
        })?;
        Ok(Arc::new(FolderFile {
            folder: self.0.clone(),
            handle,
            #[cfg(target_os = "linux")]
            pace: Default::default(),
        }))
    }
}

/// Like `create_dir_all`, but makes the names of the new folders durable.
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
    sync_folder(&File::open(parent)?)
}

/// Makes the names in a folder durable. A host of WASI may refuse it: they are durable when that sees fit.
fn sync_folder(folder: &File) -> io::Result<()> {
    /// WASI's `badf` and `notsup`.
    const REFUSED: [Option<i32>; 2] = [Some(8), Some(58)];
    match folder.sync_all() {
        Err(error) if cfg!(target_os = "wasi") && REFUSED.contains(&error.raw_os_error()) => Ok(()),
        done => done,
    }
}

/// Whether an entry is a file or a symbolic link to one, such as a user leaves when moving a file
/// to another disk.
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
            // Ignore files that do not belong to the database.
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
        self.open_file(name, false, "open")
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.check_writable()?;
        let file = self.open_file(name, true, "create")?;
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        Ok(file)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_writable()?;
        check_file_name(name)?;
        let remove = || std::fs::remove_file(self.0.path.join(name));
        self.0.open_files.remove(name, remove).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::not_found(format!("file {name} in {} does not exist", self.0.path.display()))
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
            sync_folder(&self.handle)?;
            self.durable_changes.fetch_max(changes, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl FolderFile {
    #[cold]
    fn error(&self, error: io::Error, verb: &str) -> Error {
        io_error(error, &self.folder.path.join(self.handle.name()), verb)
    }

    /// The open file; opens it again if it was closed meanwhile.
    fn file(&self) -> Result<Arc<File>> {
        let path = || self.folder.path.join(self.handle.name());
        let is_written = self.folder.lock.is_some();
        let open = || OpenOptions::new().read(true).write(is_written).open(path());
        self.folder.open_files.get(&self.handle, open).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::not_found(format!("file {} was removed", self.handle.name()))
            }
            _ => self.error(error, "open"),
        })
    }

    fn read_one(&self, file: &File, range: &mut ReadRange<'_>) -> Result<()> {
        // The system rejects offsets that it cannot represent; treat them as past the end.
        let result = match i64::try_from(range.offset) {
            Ok(_) => read_at(file, range.buffer, range.offset),
            Err(_) => Err(ErrorKind::UnexpectedEof.into()),
        };
        result.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::corrupt(format!(
                "{}: ends before byte {}",
                self.handle.name(),
                range.offset.saturating_add(range.buffer.len() as u64)
            )),
            _ => self.error(error, "read"),
        })
    }

    fn sync_names(&self) -> Result<()> {
        self.folder.sync_names().map_err(|error| io_error(error, &self.folder.path, "sync"))
    }

    /// Returns the ring if a batch of `count` reads should use it.
    #[cfg(target_os = "linux")]
    fn ring_for_reads(&self, count: usize) -> Option<&crate::uring::Uring> {
        let least = if self.folder.io == FileIo::Uring { 2 } else { BATCH };
        self.folder.uring.as_ref().filter(|_| count >= least)
    }
}

impl LocalFile for FolderFile {
    fn len(&self) -> Result<u64> {
        Ok(self.file()?.metadata().map_err(|error| self.error(error, "stat"))?.len())
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let file = self.file()?;
        #[cfg(target_os = "linux")]
        if let Some(uring) = self.ring_for_reads(ranges.len()) {
            let filled = uring.read(&file, ranges);
            // Repeat reads that the ring did not complete; if they fail again, this reports the
            // error.
            let mut left = ranges.iter_mut().zip(filled).filter(|(_, filled)| !filled);
            return left.try_for_each(|(range, _)| self.read_one(&file, range));
        }
        ranges.iter_mut().try_for_each(|range| self.read_one(&file, range))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.handle.change(|| {
            let file = self.file()?;
            write_at(&file, bytes, offset).map_err(|error| self.error(error, "write"))?;
            // What is not kept need not reach the drive.
            #[cfg(target_os = "linux")]
            if !self.handle.name().starts_with(TEMPORARY) {
                let end = offset.saturating_add(bytes.len() as u64);
                self.pace.wrote(&file, end).map_err(|error| self.error(error, "write"))?;
            }
            Ok(())
        })
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.handle.change(|| {
            let file = self.file()?;
            file.set_len(len).map_err(|error| self.error(error, "truncate"))?;
            #[cfg(target_os = "linux")]
            self.pace.truncated(len);
            Ok(())
        })
    }

    fn sync(&self) -> Result<()> {
        let file = self.file()?;
        self.handle.sync(|| file.sync_data()).map_err(|error| self.error(error, "sync"))?;
        self.sync_names()
    }

    #[cfg(target_os = "linux")]
    fn write_synced(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        use crate::uring::Written;
        let uring = self.folder.uring.as_ref().filter(|_| self.folder.io == FileIo::Uring);
        let written = self.handle.change(|| {
            let Some(uring) = uring else { return Ok(Written::NotDone) };
            Ok(uring.write_synced(&*self.file()?, offset, bytes))
        })?;
        match written {
            // The file stays open until a sync by itself, which the log does at the latest when it
            // seals a chunk.
            Written::Durable => self.sync_names(),
            Written::SyncFailed(error) => Err(self.error(error, "sync")),
            Written::NotDone => {
                self.write(offset, bytes)?;
                self.sync()
            }
        }
    }
}
