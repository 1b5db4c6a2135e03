//! The file at the end of the log: writes batches of records, syncs, seals a full chunk and starts
//! the next.
//!
//! Invariants: batches are written one at a time and in order. A chunk is created only after the
//! preceding one is synced, and receives records only after its header is synced. Pending appends
//! and poisoning are handled by the caller, which must not use the writer after an error.
//!
//! If no further file can be created for now, a chunk grows beyond its size instead of failing the
//! records.
//!
//! Reserves space ahead of the records by writing zeroes, which recovery reads as the end of the
//! log: a sync that need not record a new file length or new blocks is about a third faster on
//! common file systems.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader};
use crate::position::Lsn;
use crate::sync::{AtomicU64, Ordering};
use nacre_host::{LocalFile, LocalStore};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Reason, Result, invariant};
use std::sync::Arc;

/// Maximum size of a reused buffer: one that grew for a big record is freed.
const SPARE_BYTES: usize = 4 << 20;

/// Bytes reserved at a time. Small in this crate's tests, so that small logs cover all cases.
const RESERVE_BYTES: u64 = if cfg!(test) { 48 } else { 256 << 10 };

/// A chunk that should have the record at a position.
pub(crate) struct Place {
    pub(crate) start: Lsn,
    /// Whether it is the chunk being written.
    pub(crate) is_last: bool,
    /// The file, if the writer has it open.
    pub(crate) file: Option<Arc<dyn LocalFile>>,
}

pub(crate) struct Writer {
    file: Arc<dyn LocalFile>,
    /// Start positions of all chunks, ascending; the last one is `file`.
    chunks: Vec<Lsn>,
    /// End of the records written to the file.
    written: Lsn,
    /// Offset in the file up to which space is reserved.
    reserved: u64,
    /// Whether records were written since the last sync.
    dirty: bool,
    chunk_bytes: u64,
    database_id: u64,
    spare: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(
        file: Arc<dyn LocalFile>,
        chunks: Vec<Lsn>,
        written: Lsn,
        chunk_bytes: u64,
        database_id: u64,
    ) -> Writer {
        invariant!(
            chunks.last().is_some_and(|start| *start <= written),
            "a log that ends at {written} has chunks at {chunks:?}"
        );
        debug_assert!(chunks.is_sorted_by(|a, b| a < b), "chunks at {chunks:?} do not ascend");
        Writer {
            file,
            chunks,
            written,
            reserved: 0,
            dirty: false,
            chunk_bytes,
            database_id,
            spare: Vec::new(),
        }
    }

    /// End of the records written to the file.
    pub(crate) fn written(&self) -> Lsn {
        self.written
    }

    /// Start of the chunk being written.
    pub(crate) fn start(&self) -> Lsn {
        invariant!(!self.chunks.is_empty(), "the log always has a chunk");
        self.chunks[self.chunks.len() - 1]
    }

    /// The chunk with the record at a position, unless it has been forgotten.
    pub(crate) fn place_of(&self, position: Lsn) -> Option<Place> {
        let start = *self.chunks.iter().rfind(|start| **start <= position)?;
        let is_last = start == self.start();
        Some(Place { start, is_last, file: is_last.then(|| self.file.clone()) })
    }

    /// Seals the headers of whole records and writes them after all earlier ones; with `sync`,
    /// makes everything durable.
    pub(crate) fn write(
        &mut self,
        store: &dyn LocalStore,
        records: &mut [u8],
        durable: &AtomicU64,
        sync: bool,
    ) -> Result<()> {
        if !records.is_empty() {
            if self.written - self.start() >= self.chunk_bytes.max(1) {
                self.rotate(store, durable)?;
            }
            self.seal_headers(records, durable.load(Ordering::Acquire));
            let offset = FILE_HEADER_BYTES as u64 + (self.written - self.start());
            let end = offset + records.len() as u64;
            let failed = |e: Error| e.context(FileKind::Chunk.name(self.start()));
            // Zeroes that reserve space must be written before the sync; usually there are none.
            let together =
                sync && end <= self.reserved && !loses_sync(self.written + records.len() as u64);
            if together {
                self.file.write_synced(offset, records).map_err(failed)?;
            } else {
                self.file.write(offset, records).map_err(failed)?;
                self.reserve(end);
                debug_assert!(self.reserved >= end, "records end after the reserved space");
            }
            self.dirty = !together;
            self.written += records.len() as u64;
        }
        if sync { self.sync(durable) } else { Ok(()) }
    }

    /// Reserves space after the records unless some is left; never beyond the size of a chunk.
    fn reserve(&mut self, end: u64) {
        if end <= self.reserved {
            return;
        }
        let limit = self.chunk_bytes.saturating_add(FILE_HEADER_BYTES as u64);
        self.reserved = end.max(limit.min(end + RESERVE_BYTES));
        let zeroes = vec![0; (self.reserved - end) as usize];
        // Failing to write zeroes does not fail the records, which are written. If the device is at
        // fault, the sync reports it.
        if !zeroes.is_empty() && self.file.write(end, &zeroes).is_err() {
            self.reserved = u64::MAX;
        }
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self, durable: &AtomicU64) -> Result<()> {
        if self.dirty && !loses_sync(self.written) {
            self.file.sync().map_err(|e| e.context(FileKind::Chunk.name(self.start())))?;
            self.dirty = false;
        }
        debug_assert!(
            durable.load(Ordering::Relaxed) <= self.written,
            "the log was durable further"
        );
        durable.store(self.written, Ordering::Release);
        Ok(())
    }

    fn seal_headers(&self, records: &mut [u8], durable: Lsn) {
        let mut at = 0;
        while let Some((header, after)) = records[at..].split_first_chunk_mut() {
            let lsn = self.written + at as u64;
            let length = RecordHeader::seal(header, lsn, durable, self.database_id);
            invariant!(length <= after.len(), "a record of {length} bytes ends after its batch");
            at += RECORD_HEADER_BYTES + length;
        }
        // Unsealed bytes would not be read as a record.
        invariant!(at == records.len(), "{} bytes after the last record", records.len() - at);
    }

    fn rotate(&mut self, store: &dyn LocalStore, durable: &AtomicU64) -> Result<()> {
        self.sync(durable)?;
        debug_assert!(
            durable.load(Ordering::Relaxed) == self.written,
            "a chunk at {} starts before the log is durable there",
            self.written
        );
        self.file = match create_chunk(store, self.database_id, self.written) {
            // No file is available: continue with the present chunk.
            Err(NoChunk::Create(error)) if error.reason() == Some(Reason::NoFile) => return Ok(()),
            made => made?,
        };
        debug_assert!(self.start() < self.written, "a chunk follows one without records");
        self.chunks.push(self.written);
        self.reserved = 0;
        Ok(())
    }

    /// Removes the chunks that end at or before `lsn` from the list and returns them; never the
    /// active one.
    pub(crate) fn forget_before(&mut self, lsn: Lsn) -> Vec<Lsn> {
        debug_assert!(lsn <= self.written, "chunks up to {lsn} of {} bytes", self.written);
        // No chunk starts at or before `lsn`: all are needed.
        let keep_from = self.chunks.iter().rposition(|start| *start <= lsn).unwrap_or(0);
        let before: Vec<Lsn> = self.chunks.drain(..keep_from).collect();
        debug_assert!(
            before.is_empty() || self.chunks.first().is_some_and(|start| *start <= lsn),
            "records after {lsn} are in chunks that are forgotten"
        );
        before
    }

    /// An empty buffer for the next records.
    pub(crate) fn take_spare(&mut self) -> Vec<u8> {
        debug_assert!(self.spare.is_empty(), "a spare buffer holds {} bytes", self.spare.len());
        std::mem::take(&mut self.spare)
    }

    /// Returns a used buffer.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= SPARE_BYTES {
            buffer.clear();
            self.spare = buffer;
        }
    }
}

/// Whether a planted bug skips the sync at this position.
fn loses_sync(at: Lsn) -> bool {
    plant::is(Bug::LostSync) && at.is_multiple_of(4)
}

/// Why a chunk could not be created.
pub(crate) enum NoChunk {
    /// The file could not be created.
    Create(Error),
    /// The file exists, and its contents are unknown.
    Header(Error),
}

impl From<NoChunk> for Error {
    fn from(none: NoChunk) -> Error {
        match none {
            NoChunk::Create(error) | NoChunk::Header(error) => error,
        }
    }
}

/// Creates a chunk file with a durable header and no records.
pub(crate) fn create_chunk(
    store: &dyn LocalStore,
    database_id: u64,
    start: Lsn,
) -> std::result::Result<Arc<dyn LocalFile>, NoChunk> {
    let name = FileKind::Chunk.name(start);
    let file = store.create(&name).map_err(|e| NoChunk::Create(e.context(&name)))?;
    write_chunk_header(file.as_ref(), database_id, start)
        .map_err(|e| NoChunk::Header(e.context(&name)))?;
    Ok(file)
}

/// Writes and syncs the header of an empty chunk.
pub(crate) fn write_chunk_header(file: &dyn LocalFile, database_id: u64, start: Lsn) -> Result<()> {
    let header = FileHeader {
        kind: FileKind::Chunk,
        database_id,
        lsn: start,
        payload_bytes: 0,
        payload_checksum: 0,
    }
    .encode();
    file.write(0, &header)?;
    file.sync()
}
