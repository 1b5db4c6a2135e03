//! Reads the records of a log that is being written, from a position on: in the instance that writes
//! it, or beside it, from the files alone.
//!
//! In the writing instance a reader stops at the durable position. Beside it, nothing says up to
//! where a sync has returned, so a reader takes the records that recovery would find if the writing
//! process ended now. A crash of the machine may lose the last of them, but ends the reader as well.
//!
//! Invariants: records come in order and without a gap, and each is verified as recovery verifies
//! it. A reader writes nothing. It keeps the chunk that it reads open, so that the chunk may be
//! removed meanwhile where the host's files allow it.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader};
use crate::log::Log;
use crate::position::{Lsn, gone};
use crate::reach::ReachFile;
use crate::snapshot;
use crate::writer::Place;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::checksum::checksum;
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::sync::Arc;

/// Bytes to read at a time. Small in this crate's tests, so that records span several reads.
const WINDOW_BYTES: u64 = if cfg!(test) { 64 } else { 1 << 20 };

/// Reads records from a position on.
pub struct LogReader {
    store: Arc<dyn LocalStore>,
    /// The log, in the instance that writes it.
    log: Option<Arc<Log>>,
    database_id: u64,
    position: Lsn,
    /// The log is damaged if it ends before this position.
    reach: Lsn,
    chunk: Option<Chunk>,
    /// Bytes of the chunk.
    window: Vec<u8>,
    /// Offset of the window in the file.
    window_at: u64,
}

/// The chunk being read.
struct Chunk {
    start: Lsn,
    name: String,
    file: Arc<dyn LocalFile>,
    database_id: u64,
}

impl LogReader {
    /// Reads a log that this instance writes, from a position on that is the end of a record or
    /// zero. Records that are not durable yet are not read.
    pub fn of(log: &Arc<Log>, position: Lsn) -> LogReader {
        LogReader {
            store: log.store().clone(),
            log: Some(log.clone()),
            database_id: log.database_id(),
            position,
            reach: 0,
            chunk: None,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// Opens the log of a database that another instance may be writing: passes the payload of the
    /// newest snapshot to `snapshot`, if there is one, and reads from its position on.
    ///
    /// # Errors
    /// `not_found` if there is no log, or only one that has no header yet; `corrupt` if a file is
    /// damaged or missing; the errors of the host's files and of the callback.
    pub fn beside(
        store: Arc<dyn LocalStore>,
        snapshot: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<LogReader> {
        let mut seen: Option<Vec<String>> = None;
        loop {
            let mut names = store.list()?;
            names.retain(|name| crate::format::has_log(std::slice::from_ref(name)));
            names.sort_unstable();
            if names.is_empty() {
                return Err(Error::not_found("no database: there is neither a log nor a snapshot"));
            }
            // Read before the log, which reaches at least as far.
            let reach = ReachFile::open(store.as_ref(), &store.list()?)?;
            let opened = LogReader::start(&store, &names, &reach);
            match opened {
                Ok((reader, payload)) => {
                    payload.map_or(Ok(()), |payload| snapshot(&payload))?;
                    return Ok(reader);
                }
                // A newer snapshot may have replaced the files meanwhile.
                Err(error) if seen.as_ref() == Some(&names) => return Err(error),
                Err(_) => seen = Some(names),
            }
        }
    }

    /// Opens the newest snapshot and the chunk after it. `names` are the files of the log.
    fn start(
        store: &Arc<dyn LocalStore>,
        names: &[String],
        reach: &ReachFile,
    ) -> Result<(LogReader, Option<Vec<u8>>)> {
        let mut snapshots: Vec<Lsn> =
            names.iter().filter_map(|name| FileKind::Snapshot.parse(name)).collect();
        snapshots.sort_unstable();
        let mut newest = None;
        for at in snapshots.iter().rev() {
            match snapshot::load(store.as_ref(), *at) {
                Ok(found) => {
                    newest = Some(found);
                    break;
                }
                // It is being written, or was never finished.
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        let (header, payload) = newest.unzip();
        let position = header.as_ref().map_or(0, |header| header.lsn);
        let Some(place) = locate(store.as_ref(), position)? else {
            return Err(Error::corrupt(format!("the log from position {position} on is missing")));
        };
        let chunk = Chunk::open(store.as_ref(), &place, position)?;
        let known = header.map(|header| header.database_id).or(reach.database_id());
        let Some(database_id) = known.or(chunk.as_ref().map(|chunk| chunk.database_id)) else {
            // Without an identity, the reader could not tell this database from another one.
            return Err(Error::not_found("no database: the log has no header yet"));
        };
        if let Some(chunk) = &chunk {
            chunk.check_is_of(database_id)?;
        }
        let reader = LogReader {
            store: store.clone(),
            log: None,
            database_id,
            position,
            reach: reach.newest().map_or(0, |reach| reach.position),
            chunk,
            window: Vec::new(),
            window_at: 0,
        };
        Ok((reader, payload))
    }

    /// A reader of the same log that begins with its newest snapshot, beside the instance that writes it.
    ///
    /// # Errors
    /// As [`LogReader::beside`]; `not_found` with [`Reason::LogGone`](nacre_types::Reason::LogGone) if there is no
    /// snapshot; `corrupt` if the log is of another database now.
    pub fn again(&self, snapshot: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<LogReader> {
        debug_assert!(self.log.is_none(), "the writer begins again to read its own log");
        let mut is_loaded = false;
        let reader = LogReader::beside(self.store.clone(), &mut |payload| {
            is_loaded = true;
            snapshot(payload)
        })?;
        match () {
            () if reader.database_id != self.database_id => {
                Err(Error::corrupt("the log is that of another database now"))
            }
            () if !is_loaded => Err(gone(self.position)),
            () => Ok(reader),
        }
    }

    /// The end of the last record returned, or the position at which the reader began.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Identity of the database.
    pub fn database_id(&self) -> u64 {
        self.database_id
    }

    /// The next record and the position of its end; `None` at the end of the log, for now.
    ///
    /// # Errors
    /// `not_found` with [`Reason::LogGone`](nacre_types::Reason::LogGone) if the position
    /// was removed, so that the reader must start again from a snapshot; `corrupt` for damage; the
    /// errors of the host's files.
    #[allow(
        clippy::should_implement_trait,
        reason = "a record borrows from its reader, which an iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<(Lsn, &[u8])>> {
        loop {
            let durable = self.log.as_ref().map(|log| log.durable());
            if durable.is_some_and(|durable| durable == self.position) {
                shrink(&mut self.window, 0);
                return Ok(None);
            }
            if durable.is_some_and(|durable| durable < self.position) {
                return Err(gone(self.position));
            }
            if let Some(header) = self.read()? {
                let begin = self.position + RECORD_HEADER_BYTES as u64;
                self.position = begin + u64::from(header.length);
                if header.mark {
                    continue;
                }
                let at = (self.offset(begin) - self.window_at) as usize;
                let payload = &self.window[at..at + header.length as usize];
                return Ok(Some((self.position, payload)));
            }
            let place = self.locate()?;
            let is_same = |chunk: &Chunk| {
                place.as_ref().is_some_and(|place| place.is_last && place.start == chunk.start)
            };
            if self.log.is_none() && self.chunk.as_ref().is_some_and(is_same) {
                return self.end().map(|()| None);
            }
            // The chunk may have been filled between the read and the look for the next one.
            shrink(&mut self.window, 0);
            if self.read()?.is_none() && !self.follow(place)? {
                return self.end().map(|()| None);
            }
        }
    }

    /// Ends for now.
    fn end(&self) -> Result<()> {
        match self.position < self.reach {
            true => Err(Error::corrupt(format!(
                "the log ends at position {}, although it reached position {}",
                self.position, self.reach
            ))),
            false => Ok(()),
        }
    }

    /// File offset of a position in the open chunk.
    fn offset(&self, lsn: Lsn) -> u64 {
        let start = self.chunk.as_ref().map_or(0, |chunk| chunk.start);
        invariant!(lsn >= start, "position {lsn} lies before the chunk at {start}");
        FILE_HEADER_BYTES as u64 + (lsn - start)
    }

    /// Reads the record at the position into the window; `None` if there is no valid one.
    fn read(&mut self) -> Result<Option<RecordHeader>> {
        if self.chunk.is_none() {
            return Ok(None);
        }
        let id = self.database_id;
        let (lsn, offset) = (self.position, self.offset(self.position));
        for is_fresh in [false, true] {
            // What was read before may have been written since.
            if is_fresh {
                shrink(&mut self.window, 0);
            }
            let head = self.bytes(offset, RECORD_HEADER_BYTES)?.and_then(<[u8]>::first_chunk);
            let Some(header) = head.and_then(|h| RecordHeader::decode(h, lsn, id)) else {
                continue;
            };
            let count = RECORD_HEADER_BYTES + header.length as usize;
            let record = self.bytes(offset, count)?;
            let payload = record.and_then(|record| record.get(RECORD_HEADER_BYTES..));
            if payload.is_some_and(|payload| checksum(payload) == header.payload_checksum) {
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    /// Exactly `count` bytes at an offset of the chunk; `None` if it ends earlier.
    fn bytes(&mut self, offset: u64, count: usize) -> Result<Option<&[u8]>> {
        let held = offset.checked_sub(self.window_at).filter(|skip| {
            skip.checked_add(count as u64).is_some_and(|end| end <= self.window.len() as u64)
        });
        let skip = match held {
            Some(skip) => skip as usize,
            None => {
                let Some(chunk) = &self.chunk else { return Ok(None) };
                let left = chunk.file.len()?.saturating_sub(offset);
                if left < count as u64 {
                    return Ok(None);
                }
                let size = left.min(WINDOW_BYTES.max(count as u64)) as usize;
                shrink(&mut self.window, size);
                self.window.resize(size, 0);
                self.window_at = offset;
                let range = ReadRange { offset, buffer: &mut self.window };
                match chunk.file.read(&mut [range]) {
                    // The writer has started again and cut what it had reserved.
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        shrink(&mut self.window, 0);
                        return Ok(None);
                    }
                    read => read.map_err(|e| e.context(&chunk.name))?,
                }
                0
            }
        };
        debug_assert!(skip + count <= self.window.len(), "the window ends before {count} bytes");
        Ok(self.window.get(skip..skip + count))
    }

    /// The chunk that should have the record at the position.
    fn locate(&self) -> Result<Option<Place>> {
        match &self.log {
            Some(log) => Ok(log.place_of(self.position)),
            None => locate(self.store.as_ref(), self.position),
        }
    }

    /// Goes on in another chunk, after the open one has no further record. Returns `false` if the
    /// log ends here for now.
    fn follow(&mut self, place: Option<Place>) -> Result<bool> {
        let Some(place) = place else { return Err(gone(self.position)) };
        match &self.chunk {
            None => {}
            Some(chunk) if chunk.start == place.start => {
                let at = self.offset(self.position);
                return Err(Error::corrupt(format!(
                    "{}: bad record at byte {at} (log position {}), among those that are durable",
                    chunk.name, self.position
                )));
            }
            // The open chunk was removed, and so were those after it.
            Some(_) if place.start != self.position => return Err(gone(self.position)),
            Some(_) => {}
        }
        self.enter(&place)
    }

    /// Goes on in a chunk. Returns `false` if it has no valid header yet.
    fn enter(&mut self, place: &Place) -> Result<bool> {
        let Some(chunk) = Chunk::open(self.store.as_ref(), place, self.position)? else {
            return Ok(false);
        };
        chunk.check_is_of(self.database_id)?;
        self.chunk = Some(chunk);
        shrink(&mut self.window, 0);
        Ok(true)
    }
}

/// Cuts the window to a size, and frees the memory that only a longer record needed.
fn shrink(window: &mut Vec<u8>, size: usize) {
    window.truncate(size);
    window.shrink_to(WINDOW_BYTES as usize);
}

/// The chunk that should have the record at a position: the last one that starts there or before.
fn locate(store: &dyn LocalStore, position: Lsn) -> Result<Option<Place>> {
    let names = store.list()?;
    let starts = || names.iter().filter_map(|name| FileKind::Chunk.parse(name));
    let Some(start) = starts().filter(|start| *start <= position).max() else {
        return Ok(None);
    };
    let is_last = starts().all(|other| other <= start);
    debug_assert!(
        starts().all(|other| other <= start || other > position),
        "a later chunk has position {position}"
    );
    Ok(Some(Place { start, is_last, file: None }))
}

impl Chunk {
    /// Opens the chunk with the record at a position; `None` if it has no valid header yet.
    fn open(store: &dyn LocalStore, place: &Place, position: Lsn) -> Result<Option<Chunk>> {
        debug_assert!(place.start <= position, "records before {} are left out", place.start);
        let name = FileKind::Chunk.name(place.start);
        let file = match &place.file {
            Some(file) => file.clone(),
            None => match store.open(&name) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(gone(position)),
                opened => opened.map_err(|e| e.context(&name))?,
            },
        };
        let mut head = [0; FILE_HEADER_BYTES];
        let has_header = file.len()? >= head.len() as u64;
        if has_header {
            let range = ReadRange { offset: 0, buffer: &mut head };
            file.read(&mut [range]).map_err(|e| e.context(&name))?;
        }
        let header = match FileHeader::decode(FileKind::Chunk, &head, &name) {
            // It is being created.
            Err(error) if error.kind() == ErrorKind::Corrupt && place.is_last => return Ok(None),
            header => header?,
        };
        Ok(Some(Chunk { start: place.start, name, file, database_id: header.database_id }))
    }

    fn check_is_of(&self, database_id: u64) -> Result<()> {
        match self.database_id == database_id {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "{}: belongs to another database, by its header at byte 0",
                self.name
            ))),
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use super::*;
    use crate::LogOptions;
    use nacre_host::memory::MemoryStore;

    #[test]
    fn a_long_record_leaves_a_reader_no_more_memory_than_a_short_one() {
        let options = LogOptions { database_id: 7, ..LogOptions::default() };
        let store = Arc::new(MemoryStore::new());
        let log = Log::open(store, options, &mut |_| Ok(()), &mut |_, _| Ok(())).unwrap();
        let log = Arc::new(log);
        let mut reader = LogReader::of(&log, 0);
        for after in [None, Some(b"short")] {
            log.append(&[1; 10_000]).unwrap();
            if let Some(after) = after {
                log.append(after).unwrap();
            }
            log.sync(log.position()).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().1.len(), 10_000);
            assert!(reader.window.capacity() >= 10_000, "the record is in the window");
            assert_eq!(reader.next().unwrap().is_some(), after.is_some());
            let held = reader.window.capacity();
            assert!(held as u64 <= WINDOW_BYTES, "{held} bytes are held");
        }
    }
}
