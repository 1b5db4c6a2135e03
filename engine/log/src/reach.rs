//! How far the log must reach: a file beside the chunks, so that recovery notices a newest chunk
//! that is missing or was cut.
//!
//! A promise is written only after what it promises is durable: the chunk that it names has been
//! created, and everything before its position has been synced. So whatever a crash leaves of a
//! promise, the log keeps it. The file has two slots, which are written in turn; the slot being
//! written never holds the newest promise.
//!
//! Nothing depends on the file but the detection of damage. A promise that cannot be written is
//! left out, and the one before it still holds.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind};
use crate::position::Lsn;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::{ErrorKind, Result, invariant};
use std::sync::Arc;

/// Distance between the slots in bytes: a device that loses a sector on a torn write loses one
/// slot.
const SLOT_BYTES: u64 = 4096;
const SLOTS: u64 = 2;

/// How far the log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// A chunk that starts here or later exists.
    pub(crate) chunk: Lsn,
    /// Everything before this position is durable.
    pub(crate) position: Lsn,
}

/// The file.
#[derive(Default)]
pub(crate) struct ReachFile {
    /// `None` until the first promise.
    file: Option<Arc<dyn LocalFile>>,
    newest: Option<Reach>,
    /// Identity of the database, as in the newest promise.
    database_id: Option<u64>,
    /// Slot of the next promise.
    slot: u64,
}

impl ReachFile {
    /// Opens the file and reads the newest promise. A damaged slot counts as never written.
    ///
    /// # Errors
    /// `unsupported` for a version that this build does not know; the errors of the host's files.
    pub(crate) fn open(store: &dyn LocalStore, names: &[String]) -> Result<ReachFile> {
        let mut reach = ReachFile { file: None, newest: None, database_id: None, slot: 0 };
        let name = FileKind::Reach.name(0);
        if !names.contains(&name) {
            return Ok(reach);
        }
        let file = store.open(&name).map_err(|e| e.context(&name))?;
        let bytes = file.len().map_err(|e| e.context(&name))?;
        for slot in 0..SLOTS {
            let offset = slot * SLOT_BYTES;
            if offset + FILE_HEADER_BYTES as u64 > bytes {
                continue;
            }
            let mut head = [0; FILE_HEADER_BYTES];
            file.read(&mut [ReadRange { offset, buffer: &mut head }])
                .map_err(|e| e.context(&name))?;
            match FileHeader::decode(FileKind::Reach, &head, &name) {
                Ok(header) => reach.see(slot, &header),
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        reach.file = Some(file);
        Ok(reach)
    }

    fn see(&mut self, slot: u64, header: &FileHeader) {
        let found = Reach { chunk: header.payload_bytes, position: header.lsn };
        let is_possible = found.chunk <= found.position;
        // A chunk may begin where the one before ends, with nothing promised of it yet.
        let is_newer =
            |newest: Reach| (newest.position, newest.chunk) < (found.position, found.chunk);
        if is_possible && self.newest.is_none_or(is_newer) {
            self.newest = Some(found);
            self.database_id = Some(header.database_id);
            self.slot = (slot + 1) % SLOTS;
        }
    }

    /// Whether there is a file. It is created after the first chunk.
    pub(crate) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// The newest promise.
    pub(crate) fn newest(&self) -> Option<Reach> {
        self.newest
    }

    /// Identity of the database, as in the newest promise.
    pub(crate) fn database_id(&self) -> Option<u64> {
        self.database_id
    }

    /// Promises that the log reaches this far, which must be durable already. Does nothing if it
    /// is promised already.
    pub(crate) fn promise(&mut self, store: &dyn LocalStore, database_id: u64, reach: Reach) {
        invariant!(
            reach.chunk <= reach.position,
            "a chunk at {} of a log that reaches {}",
            reach.chunk,
            reach.position
        );
        let reach = match self.newest {
            Some(newest) if newest.chunk >= reach.chunk && newest.position >= reach.position => {
                return;
            }
            Some(newest) => Reach {
                chunk: reach.chunk.max(newest.chunk),
                position: reach.position.max(newest.position),
            },
            None => reach,
        };
        debug_assert!(
            reach.chunk <= reach.position,
            "promises joined name a chunk at {} of a log that reaches {}",
            reach.chunk,
            reach.position
        );
        // A failure leaves the promise before.
        if self.write(store, database_id, reach).is_ok() {
            self.newest = Some(reach);
            self.slot = (self.slot + 1) % SLOTS;
        }
    }

    /// Replaces all promises by a lesser one, after a loss has been accepted.
    ///
    /// # Errors
    /// Those of the host's files. The loss is then found again when the log is next opened.
    pub(crate) fn lower(
        &mut self,
        store: &dyn LocalStore,
        database_id: u64,
        reach: Reach,
    ) -> Result<()> {
        debug_assert!(
            reach.chunk <= reach.position,
            "a lesser promise names a chunk at {} of a log that reaches {}",
            reach.chunk,
            reach.position
        );
        for _ in 0..SLOTS {
            self.write(store, database_id, reach)?;
            self.slot = (self.slot + 1) % SLOTS;
        }
        self.newest = Some(reach);
        Ok(())
    }

    /// Writes and syncs a slot.
    fn write(&mut self, store: &dyn LocalStore, database_id: u64, reach: Reach) -> Result<()> {
        invariant!(self.slot < SLOTS, "a promise is written to slot {} of {SLOTS}", self.slot);
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(store.create(&FileKind::Reach.name(0))?).clone(),
        };
        let header = FileHeader {
            kind: FileKind::Reach,
            database_id,
            lsn: reach.position,
            payload_bytes: reach.chunk,
            payload_checksum: 0,
        };
        file.write(self.slot * SLOT_BYTES, &header.encode())?;
        file.sync()
    }
}
