//! A blob store in a folder of the file system.
//!
//! Each blob is a file. A write goes to a file of its own, is synced, takes the place of the blob by
//! renaming, and is durable when the folder is synced, too. Conditions are checked, and files renamed and
//! removed, while the file `.lock` is locked, so several processes can write the same folder, if its file
//! system has locks. The tag of a blob is a hash of its content.
//!
//! `.new` holds the files of writes that have not finished. Those of processes that ended are removed when
//! they are a day old.

use crate::runtime::blocking;
use crate::store::{Reach, Source};
use nacre_host::{
    Answer, BlobInfo, BlobStore, Error, Result, Tag, WriteIf, check_blob_name, is_blob_name,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_128;

const LOCK: &str = ".lock";
const NEW: &str = ".new";
/// Files of unfinished writes are removed when they are older.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of blobs.
#[derive(Clone, Debug)]
pub struct FolderBlobs {
    root: Arc<Path>,
}

impl FolderBlobs {
    /// Opens a folder, and creates it if there is none.
    ///
    /// Errors: `io`.
    pub fn open(folder: &Path) -> Result<FolderBlobs> {
        let new = folder.join(NEW);
        fs::create_dir_all(&new).map_err(|error| io_error(error, &new, "create"))?;
        let yesterday = SystemTime::now() - ABANDONED;
        for entry in fs::read_dir(&new).map_err(|error| io_error(error, &new, "list"))?.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|modified| modified < yesterday) {
                // Another process may do the same.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(FolderBlobs { root: folder.into() })
    }

    /// Opens the folder that a URL `file:///folder` names, and creates it if there is none.
    ///
    /// Errors: `io`.
    pub(crate) fn at_url(url: &str) -> Result<FolderBlobs> {
        let parsed = url::Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
        let folder = parsed.ok_or_else(|| {
            Error::io(format!("{url} does not name a folder"))
                .with_hint("write file:///absolute/path")
        })?;
        FolderBlobs::open(&folder)
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        check_blob_name(name)?;
        Ok(self.root.join(name))
    }

    /// Locks out every other change of the folder until the file is dropped.
    fn lock(&self) -> Result<File> {
        let path = self.root.join(LOCK);
        let options = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(|error| io_error(error, &path, "open"))?;
        file.lock().map_err(|error| io_error(error, &path, "lock"))?;
        Ok(file)
    }

    fn read_range(&self, name: &str, range: Range<u64>, reach: Reach) -> Result<Vec<u8>> {
        let path = self.path(name)?;
        let mut file = open(&path)?;
        let failed = |error| io_error(error, &path, "read");
        let len = file.metadata().map_err(failed)?.len();
        if range.end > len && (reach == Reach::Within || range.start >= len) {
            return Err(Error::corrupt(format!(
                "cannot read {}: the blob ends at byte {len}, before byte {}",
                path.display(),
                range.end
            )));
        }
        let end = range.end.min(len);
        let mut bytes = vec![0; end.saturating_sub(range.start) as usize];
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    fn read_whole(&self, name: &str) -> Result<(Vec<u8>, Tag)> {
        let path = self.path(name)?;
        let mut bytes = Vec::new();
        open(&path)?.read_to_end(&mut bytes).map_err(|error| io_error(error, &path, "read"))?;
        let tag = tag(&bytes);
        Ok((bytes, tag))
    }

    fn write_whole(&self, name: &str, bytes: &[u8], when: &WriteIf) -> Result<Tag> {
        let path = self.path(name)?;
        let new = New::create(self.root.join(NEW), bytes)?;
        let folder = path.parent().unwrap_or(&self.root);
        let created = self.create_folders(folder)?;
        let locked = self.lock()?;
        let holds = match when {
            WriteIf::Any => true,
            WriteIf::Absent => !path.try_exists().map_err(|e| io_error(e, &path, "look for"))?,
            WriteIf::Tagged(expected) => match self.read_whole(name) {
                Ok((_, present)) => present == *expected,
                Err(error) if error.kind() == nacre_host::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            },
        };
        if !holds {
            let text = format!("cannot write {}: it is not the expected one", path.display());
            return Err(Error::conflict(text));
        }
        fs::rename(&new.path, &path).map_err(|error| io_error(error, &path, "write"))?;
        drop(locked);
        sync_folder(folder).map_err(unknown)?;
        created.iter().try_for_each(|folder| sync_folder(folder)).map_err(unknown)?;
        Ok(tag(bytes))
    }

    /// Creates folders. Returns those that have a new one.
    fn create_folders(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut changed = Vec::new();
        let missing = folder.ancestors().take_while(|at| *at != &*self.root && !at.is_dir());
        changed.extend(missing.filter_map(Path::parent).map(Path::to_path_buf));
        fs::create_dir_all(folder).map_err(|error| io_error(error, folder, "create"))?;
        Ok(changed)
    }

    fn remove_file(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        let locked = self.lock()?;
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if is_missing(&error) => return Ok(()),
            Err(_) if path.is_dir() => return Ok(()),
            Err(error) => return Err(io_error(error, &path, "remove")),
        }
        drop(locked);
        sync_folder(path.parent().unwrap_or(&self.root)).map_err(unknown)
    }

    fn list_files(&self, prefix: &str) -> Result<Vec<BlobInfo>> {
        // The deepest folder that every such name is in.
        let top = match prefix.rsplit_once('/') {
            Some((folder, _)) if is_blob_name(folder) => folder,
            Some(_) => return Ok(Vec::new()),
            None => "",
        };
        let mut listed = Vec::new();
        let mut folders = vec![top.to_string()];
        while let Some(folder) = folders.pop() {
            let path =
                if folder.is_empty() { self.root.to_path_buf() } else { self.root.join(&folder) };
            let failed = |error| io_error(error, &path, "list");
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                let file_name = entry.file_name();
                let Some(last) = file_name.to_str() else { continue };
                let name =
                    if folder.is_empty() { last.to_string() } else { format!("{folder}/{last}") };
                // Removed since the folder was read, or of no interest.
                let Ok(metadata) = entry.metadata() else { continue };
                let may_match = name.starts_with(prefix) || prefix.starts_with(&format!("{name}/"));
                if !is_blob_name(&name) || !may_match {
                    continue;
                }
                match metadata.is_dir() {
                    true => folders.push(name),
                    false => listed.push(info(name, &metadata)),
                }
            }
        }
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }
}

fn info(name: String, metadata: &fs::Metadata) -> BlobInfo {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified_us = since.map_or(0, |since| since.as_micros() as i64);
    BlobInfo { name, len: metadata.len(), modified_us }
}

fn tag(bytes: &[u8]) -> Tag {
    Tag(format!("{:032x}", xxh3_128(bytes)).into())
}

/// Opens a blob.
fn open(path: &Path) -> Result<File> {
    let missing = || Error::not_found(format!("blob {} does not exist", path.display()));
    match File::open(path) {
        Ok(file) if file.metadata().is_ok_and(|metadata| metadata.is_dir()) => Err(missing()),
        Ok(file) => Ok(file),
        Err(error) if is_missing(&error) => Err(missing()),
        Err(error) => Err(io_error(error, path, "open")),
    }
}

/// A file of its own with the bytes of a write, synced. Removed on drop, if it was not renamed.
struct New {
    path: PathBuf,
}

impl New {
    fn create(folder: PathBuf, bytes: &[u8]) -> Result<New> {
        let new = New { path: folder.join(format!("{:032x}", rand::random::<u128>())) };
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&new.path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        match write() {
            Ok(()) => Ok(new),
            Err(error) => Err(io_error(error, &new.path, "write")),
        }
    }
}

impl Drop for New {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    let sync = File::open(folder).and_then(|file| file.sync_all());
    sync.map_err(|error| io_error(error, folder, "sync"))
}

/// A change that is visible, but may not be durable: it may have taken effect.
fn unknown(error: Error) -> Error {
    Error::new(nacre_host::ErrorKind::Unavailable, error.message())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cold]
fn io_error(error: io::Error, path: &Path, verb: &str) -> Error {
    let text = format!("cannot {verb} {}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::io(text).with_sqlstate("53100").with_hint("free some space for blobs")
        }
        _ => Error::io(text),
    }
}

impl BlobStore for FolderBlobs {
    fn elsewhere(&self, url: &str) -> Result<Arc<dyn BlobStore>> {
        Ok(Arc::new(FolderBlobs::at_url(url)?))
    }

    fn read<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let (store, name) = (self.clone(), name.to_string());
        blocking(move || store.read_range(&name, range, Reach::Within))
    }

    fn read_all<'a>(&'a self, name: &'a str) -> Answer<'a, (Vec<u8>, Tag)> {
        let (store, name) = (self.clone(), name.to_string());
        blocking(move || store.read_whole(&name))
    }

    fn write<'a>(&'a self, name: &'a str, bytes: Arc<[u8]>, when: WriteIf) -> Answer<'a, Tag> {
        let (store, name) = (self.clone(), name.to_string());
        blocking(move || store.write_whole(&name, &bytes, &when))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> Answer<'a, Vec<BlobInfo>> {
        let (store, prefix) = (self.clone(), prefix.to_string());
        blocking(move || store.list_files(&prefix))
    }

    fn remove<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let (store, name) = (self.clone(), name.to_string());
        blocking(move || store.remove_file(&name))
    }
}

impl Source for FolderBlobs {
    fn read_to<'a>(&'a self, name: &'a str, range: Range<u64>) -> Answer<'a, Vec<u8>> {
        let (store, name) = (self.clone(), name.to_string());
        blocking(move || store.read_range(&name, range, Reach::Beyond))
    }
}
