//! Snapshot files: written piece by piece, and complete and synced before the files they replace are
//! removed; read completely and verified before any byte is returned. Also keeps the list of files
//! that are no longer needed.
//!
//! Independent of the meaning of a payload and of the existing chunks.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind};
use crate::position::Lsn;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::checksum::{Checksum, checksum};
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::sync::Arc;

/// Bytes of a snapshot to sync together.
const SYNC_BYTES: u64 = if cfg!(test) { 100 } else { 4 << 20 };

/// The newest snapshot and the files to remove.
pub(crate) struct Snapshots {
    /// Position of the newest valid snapshot.
    pub(crate) newest: Option<Lsn>,
    /// Names of files that are no longer needed.
    garbage: Vec<String>,
}

impl Snapshots {
    /// Starts with no files to remove.
    pub(crate) fn new(newest: Option<Lsn>) -> Snapshots {
        Snapshots { newest, garbage: Vec::new() }
    }

    /// Creates the file of a snapshot; `None` if a newer one exists.
    pub(crate) fn begin(&mut self, store: &dyn LocalStore, at: Lsn) -> Result<Option<NewSnapshot>> {
        if self.newest.is_some_and(|newest| newest >= at) {
            return Ok(None);
        }
        let name = FileKind::Snapshot.name(at);
        // The file of a failed attempt at the same position must not be removed from here on.
        self.garbage.retain(|old| *old != name);
        let file = match create(store, &name) {
            Ok(file) => file,
            Err(error) => {
                self.abandon(store, name.clone());
                return Err(error.context(name));
            }
        };
        let checksum = Checksum::default();
        Ok(Some(NewSnapshot { name, file, at, checksum, bytes: 0, unsynced: 0 }))
    }

    /// Makes a complete and synced snapshot the newest; its predecessor becomes garbage.
    pub(crate) fn publish(&mut self, at: Lsn) {
        invariant!(
            !self.garbage.contains(&FileKind::Snapshot.name(at)),
            "the snapshot at {at} is published after it was given up"
        );
        if let Some(old) = self.newest.replace(at) {
            invariant!(old < at, "a snapshot at {at} replaces a newer one at {old}");
            self.discard(FileKind::Snapshot.name(old));
        }
    }

    /// Removes the file of a snapshot that was not completed. Its predecessor stays the newest.
    pub(crate) fn abandon(&mut self, store: &dyn LocalStore, name: String) {
        self.discard(name);
        self.remove_garbage(store);
    }

    /// Whether there are files to remove.
    pub(crate) fn has_garbage(&self) -> bool {
        !self.garbage.is_empty()
    }

    pub(crate) fn discard(&mut self, name: String) {
        if !self.garbage.contains(&name) {
            self.garbage.push(name);
        }
    }

    pub(crate) fn discard_chunks(&mut self, starts: Vec<Lsn>) {
        for start in starts {
            self.discard(FileKind::Chunk.name(start));
        }
    }

    /// Removes unneeded files. The next call retries failed removals: a leftover file does no harm.
    pub(crate) fn remove_garbage(&mut self, store: &dyn LocalStore) {
        let newest = self.newest.map(|at| FileKind::Snapshot.name(at));
        invariant!(
            newest.is_none_or(|newest| !self.garbage.contains(&newest)),
            "the newest snapshot, at {:?}, is about to be removed",
            self.newest
        );
        self.garbage.retain(|name| match store.remove(name) {
            Ok(()) => false,
            Err(error) => error.kind() != ErrorKind::NotFound,
        });
    }
}

/// A snapshot being written. Its header comes last: until then the file is not a snapshot.
pub struct NewSnapshot {
    pub(crate) name: String,
    pub(crate) at: Lsn,
    file: Arc<dyn LocalFile>,
    checksum: Checksum,
    /// Bytes of the payload so far.
    pub(crate) bytes: u64,
    /// Bytes written since the last sync.
    unsynced: u64,
}

impl NewSnapshot {
    /// Appends the next bytes of the payload. Syncs them now and then, so that the last sync is
    /// short.
    ///
    /// # Errors
    /// Those of the file. The snapshot must then be abandoned.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let offset = FILE_HEADER_BYTES as u64 + self.bytes;
        self.file.write(offset, bytes).map_err(|e| e.context(&self.name))?;
        self.checksum.add(bytes);
        self.bytes += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.file.sync().map_err(|e| e.context(&self.name))?;
        }
        debug_assert!(
            self.unsynced < SYNC_BYTES && self.unsynced <= self.bytes,
            "{} of {} bytes of a snapshot are not synced",
            self.unsynced,
            self.bytes
        );
        Ok(())
    }

    /// Writes the header and syncs the file.
    pub(crate) fn complete(&self, database_id: u64) -> Result<()> {
        let header = FileHeader {
            kind: FileKind::Snapshot,
            database_id,
            lsn: self.at,
            payload_bytes: self.bytes,
            payload_checksum: self.checksum.value(),
        };
        let write = || {
            self.file.write(0, &header.encode())?;
            self.file.sync()
        };
        write().map_err(|e| e.context(&self.name))
    }
}

/// Creates the file of a snapshot.
fn create(store: &dyn LocalStore, name: &str) -> Result<Arc<dyn LocalFile>> {
    match store.create(name) {
        // Left by an attempt that failed or crashed; a valid one would be the newest and is never
        // rewritten.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            store.remove(name)?;
            store.create(name)
        }
        other => other,
    }
}

/// Rewrites a recovered snapshot in place and syncs it: its sync may have failed in the previous
/// process.
pub(crate) fn write_again(
    store: &dyn LocalStore,
    header: &FileHeader,
    payload: &[u8],
) -> Result<()> {
    let name = FileKind::Snapshot.name(header.lsn);
    debug_assert!(
        header.payload_bytes == payload.len() as u64
            && header.payload_checksum == checksum(payload),
        "{name} is rewritten with another payload"
    );
    let write = || {
        let file = store.open(&name)?;
        file.write(0, &header.encode())?;
        file.write(FILE_HEADER_BYTES as u64, payload)?;
        file.sync()
    };
    write().map_err(|e| e.context(&name))
}

/// Reads and verifies a snapshot.
///
/// # Errors
/// `corrupt` unless its bytes are intact; `limit` if it does not fit in memory.
pub(crate) fn load(store: &dyn LocalStore, at: Lsn) -> Result<(FileHeader, Vec<u8>)> {
    let name = FileKind::Snapshot.name(at);
    let file = store.open(&name)?;
    let len = file.len()?;
    let mut head = [0; FILE_HEADER_BYTES];
    if len < head.len() as u64 {
        return Err(Error::corrupt(format!("{name}: file header ends early at byte {len}")));
    }
    file.read(&mut [ReadRange { offset: 0, buffer: &mut head }]).map_err(|e| e.context(&name))?;
    let header = FileHeader::decode(FileKind::Snapshot, &head, &name)?;
    if header.payload_bytes != len - FILE_HEADER_BYTES as u64 {
        return Err(Error::corrupt(format!(
            "{name}: {len} bytes long, but its header declares {} after byte {FILE_HEADER_BYTES}",
            header.payload_bytes
        )));
    }
    let size = usize::try_from(header.payload_bytes).map_err(|_| {
        Error::limit(format!("{name}: a snapshot of {} bytes does not fit in memory", len))
    })?;
    let mut payload = Vec::new();
    payload
        .try_reserve_exact(size)
        .map_err(|_| Error::limit(format!("{name}: no memory for a snapshot of {size} bytes")))?;
    payload.resize(size, 0);
    file.read(&mut [ReadRange { offset: FILE_HEADER_BYTES as u64, buffer: &mut payload }])
        .map_err(|e| e.context(&name))?;
    if checksum(&payload) != header.payload_checksum {
        return Err(Error::corrupt(format!(
            "{name}: payload checksum does not match at byte {FILE_HEADER_BYTES}"
        )));
    }
    Ok((header, payload))
}
