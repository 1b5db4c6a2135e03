//! Recovery: newest valid snapshot, the records after it, the end of the log.
//!
//! Damage and torn tails. Bytes are *known durable* if they lie before the start of the last chunk,
//! before the position of any snapshot file (even a damaged one), before the recorded reach of the
//! log, or before the durable position in the header of any later record. A bad record among known
//! durable bytes is `corrupt`. A bad record anywhere else may be the remains of writes that no sync
//! covered, which may have reached the medium in any order, and the log is cut there. One case
//! cannot be distinguished: later damage to the records of the very last sync looks like a torn
//! tail, unless the log was closed (`Log::close` appends a mark and records the reach) or a
//! snapshot follows it.
//!
//! If the caller accepts a loss, damage at the end of the log is cut like a torn tail, and the reach
//! is lowered to what is left. A log that ends before its newest snapshot goes on at the snapshot.
//! Damage before the last chunk stays `corrupt`.
//!
//! The cut is a truncation, synced before anything is appended, so that the bytes behind it can
//! never be read as a record again. Recovery writes nothing before it has read and verified
//! everything.

use crate::format::{FILE_HEADER_BYTES, FileHeader, FileKind, RECORD_HEADER_BYTES, RecordHeader};
use crate::options::LogOptions;
use crate::position::Lsn;
use crate::reach::{Reach, ReachFile};
use crate::reader::WindowReader;
use crate::snapshot::{self, Snapshots};
use crate::writer::{create_chunk, write_chunk_header};
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::checksum::checksum;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::sync::Arc;

/// A fully recovered log, ready for the next record.
pub(crate) struct Recovered {
    pub(crate) database_id: u64,
    pub(crate) is_new: bool,
    /// The last chunk.
    pub(crate) active: Arc<dyn LocalFile>,
    /// Start positions of the chunks still needed, ascending; the last one is `active`.
    pub(crate) chunks: Vec<Lsn>,
    /// End of the last record.
    pub(crate) end: Lsn,
    /// End of the last mark.
    pub(crate) marked: Lsn,
    pub(crate) snapshots: Snapshots,
    /// Bytes of the newest snapshot's payload; 0 if there is none.
    pub(crate) snapshot_bytes: u64,
    pub(crate) reach: ReachFile,
    /// Damage that was cut off because its loss is accepted.
    pub(crate) losses: Vec<Error>,
}

/// What is known about the durable part of the log before its records are read, and what becomes of
/// damage in it.
struct Known {
    /// Position of the newest snapshot file, valid or not; zero without one.
    snapshot: Lsn,
    reach: Option<Reach>,
    accept_loss: bool,
    losses: Vec<Error>,
}

impl Known {
    /// The position up to which the log is known to be durable.
    fn durable(&self) -> Lsn {
        self.snapshot.max(self.reach.map_or(0, |reach| reach.position))
    }

    /// Fails with the error of damage at the end of the log unless its loss is accepted.
    fn lose(&mut self, error: Error) -> Result<()> {
        match self.accept_loss {
            true => {
                self.losses.push(error);
                Ok(())
            }
            false => Err(error),
        }
    }
}

/// Size of a rewrite, in bytes.
const REWRITE_BYTES: u64 = 1 << 20;

type OnRecord<'a> = &'a mut dyn FnMut(Lsn, &[u8]) -> Result<()>;

pub(crate) fn recover(
    store: &dyn LocalStore,
    names: &[String],
    options: &LogOptions,
    on_snapshot: &mut dyn FnMut(&[u8]) -> Result<()>,
    on_record: OnRecord<'_>,
) -> Result<Recovered> {
    let positions = |kind: FileKind| {
        let mut found: Vec<Lsn> = names.iter().filter_map(|name| kind.parse(name)).collect();
        found.sort_unstable();
        found
    };
    let mut chunks = positions(FileKind::Chunk);
    let snapshot_files = positions(FileKind::Snapshot);
    let mut reach = ReachFile::open(store, names)?;
    let mut known = Known {
        snapshot: snapshot_files.last().copied().unwrap_or(0),
        reach: reach.newest(),
        accept_loss: options.accept_loss,
        losses: Vec::new(),
    };
    debug_assert!(chunks.is_sorted_by(|a, b| a < b), "a store lists a chunk twice");
    if chunks.is_empty() && snapshot_files.is_empty() {
        // It is created after the first chunk.
        if reach.exists() {
            let missing = FileKind::Chunk.name(reach.newest().map_or(0, |reach| reach.chunk));
            known.lose(Error::corrupt(format!("{missing} is missing, and so is the whole log")))?;
        }
        let database_id = reach.database_id().unwrap_or(options.database_id);
        let active = create_chunk(store, database_id, 0)?;
        if !known.losses.is_empty() {
            reach.lower(store, database_id, Reach { chunk: 0, position: 0 })?;
        }
        return Ok(Recovered {
            database_id,
            is_new: true,
            active,
            chunks: vec![0],
            end: 0,
            marked: 0,
            snapshots: Snapshots::new(None),
            snapshot_bytes: 0,
            reach,
            losses: known.losses,
        });
    }

    let (newest, damaged) = newest_snapshot(store, &snapshot_files)?;
    let from = newest.as_ref().map_or(0, |(header, _)| header.lsn);
    if let Some((header, payload)) = &newest {
        check_reach_is_of(&reach, header.database_id)?;
        on_snapshot(payload)?;
    }
    if let Some(Reach { chunk, position }) = known.reach
        && chunks.last().is_none_or(|last| *last < chunk)
    {
        known.lose(Error::corrupt(format!(
            "{} is missing, although the log reached position {position}",
            FileKind::Chunk.name(chunk)
        )))?;
        known.reach = None;
        // The snapshot stands for the chunks that are left.
        if newest.is_some() && (chunk <= from || chunks.is_empty()) {
            return start_after_snapshot(store, newest, names, reach, known);
        }
    }
    let Some(first) = chunks.iter().rposition(|start| *start <= from) else {
        let missing = match chunks.first() {
            Some(start) => format!("the log from position {from} to {start} is missing"),
            None => format!("the log from position {from} on is missing"),
        };
        let error = match damaged {
            Some(error) => error.context(missing),
            None => Error::corrupt(missing),
        };
        if newest.is_none() || !chunks.is_empty() {
            return Err(error);
        }
        known.lose(error)?;
        return start_after_snapshot(store, newest, names, reach, known);
    };
    let unneeded: Vec<Lsn> = chunks.drain(..first).collect();

    let mut database_id = newest.as_ref().map(|(header, _)| header.database_id);
    let snapshot_bytes = newest.as_ref().map_or(0, |(header, _)| header.payload_bytes);
    let mut snapshots = Snapshots::new(newest.as_ref().map(|(header, _)| header.lsn));
    snapshots.discard_chunks(unneeded);
    for at in &snapshot_files {
        if Some(*at) != snapshots.newest {
            snapshots.discard(FileKind::Snapshot.name(*at));
        }
    }

    let mut tail = None;
    let mut at = from;
    let mut proved = 0;
    let mut marked = 0;
    for (index, start) in chunks.iter().copied().enumerate() {
        let chunk = Chunk::open(store, start, chunks.get(index + 1).copied(), &mut database_id)?;
        let new_id = reach.database_id().unwrap_or(options.database_id);
        let id = *database_id.get_or_insert(new_id);
        check_reach_is_of(&reach, id)?;
        if let Some(error) = chunk.ends_before(at)? {
            if chunk.next.is_some() {
                return Err(error);
            }
            known.lose(error)?;
            return start_after_snapshot(store, newest, names, reach, known);
        }
        let replay = chunk.replay(id, at.max(start), &mut known, on_record)?;
        debug_assert!(replay.end >= at.max(start), "replay went back");
        at = replay.end;
        proved = replay.proved;
        marked = if replay.ends_in_mark { at } else { marked };
        tail = Some((chunk, id));
    }
    let Some((chunk, id)) = tail else {
        return Err(Error::corrupt("the log has no chunk"));
    };
    if let Some((header, payload)) = newest
        && snapshots.has_garbage()
    {
        // The files that it replaces are about to be removed, so it must be certain to be durable.
        snapshot::write_again(store, &header, &payload)?;
    }
    let start = chunk.start;
    if !known.losses.is_empty() {
        proved = proved.min(at);
    }
    // The reach is written after the log is durable as far as it says: a log that was
    // closed, and has no space left that was reserved, stays as it is.
    let reaches_end = known.reach == Some(Reach { chunk: start, position: at });
    let is_whole = reaches_end && chunk.file.len()? == chunk.offset(at);
    let active = match is_whole && known.losses.is_empty() {
        true => {
            chunk.file.note_durable()?;
            chunk.file
        }
        false => chunk.finish(id, proved, at)?,
    };
    if !known.losses.is_empty() {
        reach.lower(store, id, Reach { chunk: start, position: at })?;
    }
    Ok(Recovered {
        database_id: id,
        is_new: false,
        active,
        chunks,
        end: at,
        marked,
        snapshots,
        snapshot_bytes,
        reach,
        losses: known.losses,
    })
}

/// Checks that the reach is that of the database with this identity.
fn check_reach_is_of(reach: &ReachFile, database_id: u64) -> Result<()> {
    match reach.database_id() {
        Some(other) if other != database_id => Err(Error::corrupt(format!(
            "{}: belongs to another database, by its header at byte 0",
            FileKind::Reach.name(0)
        ))),
        _ => Ok(()),
    }
}

/// Starts a new chunk at the position of the newest snapshot, which the caller has loaded. The loss of
/// everything after it is accepted.
fn start_after_snapshot(
    store: &dyn LocalStore,
    newest: Option<Loaded>,
    names: &[String],
    mut reach: ReachFile,
    known: Known,
) -> Result<Recovered> {
    let Some((header, payload)) = newest else {
        return Err(Error::corrupt("the log has no snapshot to start from"));
    };
    let (id, at) = (header.database_id, header.lsn);
    debug_assert!(!known.losses.is_empty(), "the log after the snapshot at {at} is not lost");
    // All other files are about to be removed, so it must be certain to be durable.
    snapshot::write_again(store, &header, &payload)?;
    let mut snapshots = Snapshots::new(Some(at));
    for kind in [FileKind::Chunk, FileKind::Snapshot] {
        let others = names.iter().filter(|name| {
            kind.parse(name).is_some_and(|lsn| kind == FileKind::Chunk || lsn != at)
        });
        others.for_each(|name| snapshots.discard(name.clone()));
    }
    let active = create_chunk(store, id, at)?;
    reach.lower(store, id, Reach { chunk: at, position: at })?;
    Ok(Recovered {
        database_id: id,
        is_new: false,
        active,
        chunks: vec![at],
        end: at,
        marked: 0,
        snapshots,
        snapshot_bytes: header.payload_bytes,
        reach,
        losses: known.losses,
    })
}

type Loaded = (FileHeader, Vec<u8>);

/// The newest valid snapshot, and the error of the newest damaged one after it.
fn newest_snapshot(
    store: &dyn LocalStore,
    files: &[Lsn],
) -> Result<(Option<Loaded>, Option<Error>)> {
    let mut damaged = None;
    for at in files.iter().rev() {
        match snapshot::load(store, *at) {
            Ok(found) => return Ok((Some(found), damaged)),
            // Never finished, or damaged later. The preceding snapshot with the log since then is
            // equivalent, if both exist.
            Err(error) if error.kind() == ErrorKind::Corrupt => damaged = damaged.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Ok((None, damaged))
}

struct Chunk {
    name: String,
    file: Arc<dyn LocalFile>,
    start: Lsn,
    /// Start of the next chunk, where this one must end.
    next: Option<Lsn>,
    /// The header never became durable, so there are no records.
    headless: bool,
}

struct Replay {
    end: Lsn,
    /// The records prove that everything before this position is durable.
    proved: Lsn,
    ends_in_mark: bool,
}

impl Chunk {
    /// Opens a chunk and checks its header, which also supplies the database's identity if it is
    /// unknown.
    fn open(
        store: &dyn LocalStore,
        start: Lsn,
        next: Option<Lsn>,
        database_id: &mut Option<u64>,
    ) -> Result<Chunk> {
        let name = FileKind::Chunk.name(start);
        let file = store.open(&name).map_err(|e| e.context(&name))?;
        let mut reader = WindowReader::new(file.as_ref()).map_err(|e| e.context(&name))?;
        let head = reader.at_least(0, FILE_HEADER_BYTES).map_err(|e| e.context(&name))?;
        let header = FileHeader::decode(FileKind::Chunk, head, &name);
        let headless = match header {
            Ok(header) if header.database_id != *database_id.get_or_insert(header.database_id) => {
                return Err(Error::corrupt(format!(
                    "{name}: belongs to another database, by its header at byte 0"
                )));
            }
            Ok(_) => false,
            // The header is synced before the first record is written. So a last chunk with a bad
            // header and no further bytes was being created at the time of the crash; with further
            // bytes, it is damaged.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                if next.is_some() || !reader.is_zero_from(FILE_HEADER_BYTES as u64)? {
                    return Err(error);
                }
                true
            }
            Err(error) => return Err(error),
        };
        Ok(Chunk { name, file, start, next, headless })
    }

    /// File offset of a log position.
    fn offset(&self, lsn: Lsn) -> u64 {
        invariant!(lsn >= self.start, "position {lsn} lies before the chunk at {}", self.start);
        FILE_HEADER_BYTES as u64 + (lsn - self.start)
    }

    #[cold]
    fn corrupt(&self, lsn: Lsn, why: &str) -> Error {
        Error::corrupt(format!(
            "{}: {why} at byte {} (log position {lsn})",
            self.name,
            self.offset(lsn)
        ))
    }

    /// The error of a chunk that ends before the snapshot at position `at`, if it does.
    fn ends_before(&self, at: Lsn) -> Result<Option<Error>> {
        if at <= self.start {
            return Ok(None);
        }
        debug_assert!(
            self.next.is_none_or(|next| at < next),
            "position {at} is in a chunk after {}",
            self.name
        );
        let is_cut = self.headless || self.offset(at) > self.file.len()?;
        let error = || self.corrupt(at, "the log ends early, before the position of the snapshot");
        Ok(is_cut.then(error))
    }

    /// Replays the records from position `from`, up to the end of the chunk or of the log.
    fn replay(
        &self,
        id: u64,
        from: Lsn,
        known: &mut Known,
        on_record: OnRecord<'_>,
    ) -> Result<Replay> {
        debug_assert!(from >= self.start, "records from {from} on of {}", self.name);
        let mut replay = Replay { end: from, proved: known.durable(), ends_in_mark: false };
        if self.headless {
            let needs_header = |r: Reach| r.chunk >= self.start || r.position > self.start;
            // Records represented by a snapshot once followed the header.
            if from < known.snapshot {
                known.lose(self.corrupt(from, "the log ends early"))?;
            } else if known.reach.is_some_and(needs_header) {
                let error = self.corrupt(from, "the log ends early: it reached further");
                known.lose(error)?;
            }
            return Ok(replay);
        }
        let mut reader = WindowReader::new(self.file.as_ref())?;
        loop {
            let lsn = replay.end;
            if self.next == Some(lsn) {
                return if reader.is_zero_from(self.offset(lsn))? {
                    Ok(replay)
                } else {
                    Err(self.corrupt(lsn, "unexpected bytes after the last record"))
                };
            }
            let record = self.read_record(&mut reader, id, lsn)?;
            let (header, payload) = match record {
                Found::Record(header, payload) => (header, payload),
                Found::Nothing { why, search_from } => {
                    match self.check_torn(&mut reader, id, lsn, known, why, search_from) {
                        Err(error) if self.next.is_none() => known.lose(error)?,
                        checked => checked?,
                    }
                    return Ok(replay);
                }
            };
            let end = lsn + (RECORD_HEADER_BYTES + payload.len()) as u64;
            if self.next.is_some_and(|next| end > next) {
                return Err(self.corrupt(lsn, "record reaches into the next chunk"));
            }
            if !header.mark {
                on_record(end, payload)?;
            }
            let proved = replay.proved.max(header.durable_before(lsn));
            replay = Replay { end, proved, ends_in_mark: header.mark };
        }
    }

    fn read_record<'r>(
        &self,
        reader: &'r mut WindowReader<'_>,
        id: u64,
        lsn: Lsn,
    ) -> Result<Found<'r>> {
        let offset = self.offset(lsn);
        let body = offset + RECORD_HEADER_BYTES as u64;
        let head = reader.bytes(offset, RECORD_HEADER_BYTES)?.and_then(|bytes| bytes.first_chunk());
        let Some(head) = head else {
            return Ok(Found::Nothing {
                why: "record header ends early",
                search_from: reader.len(),
            });
        };
        let Some(header) = RecordHeader::decode(head, lsn, id) else {
            return Ok(Found::Nothing { why: "bad record header", search_from: offset + 1 });
        };
        let length = header.length as usize;
        if body + length as u64 > reader.len() {
            return Ok(Found::Nothing { why: "record ends early", search_from: reader.len() });
        }
        match reader.bytes(body, length)? {
            Some(payload)
                if checksum(payload) == header.payload_checksum || plant::is(Bug::TornLog) =>
            {
                Ok(Found::Record(header, payload))
            }
            // The length is valid, so the search need not try offsets inside the payload.
            _ => Ok(Found::Nothing {
                why: "record checksum does not match",
                search_from: body + length as u64,
            }),
        }
    }

    /// Fails unless a crash explains why there is no valid record at `lsn`.
    ///
    /// # Errors
    /// `corrupt` if the bytes at `lsn` are known to have been durable.
    fn check_torn(
        &self,
        reader: &mut WindowReader<'_>,
        id: u64,
        lsn: Lsn,
        known: &Known,
        why: &str,
        search_from: u64,
    ) -> Result<()> {
        if let Some(next) = self.next {
            return Err(self
                .corrupt(lsn, &format!("{why}, before the chunk that starts at position {next}")));
        }
        if lsn < known.snapshot {
            let snapshot = known.snapshot;
            return Err(
                self.corrupt(lsn, &format!("{why}, before the snapshot at position {snapshot}"))
            );
        }
        if let Some(Reach { position, .. }) = known.reach
            && lsn < position
        {
            let why = format!("{why}, although the log reached position {position},");
            return Err(self.corrupt(lsn, &why));
        }
        debug_assert!(search_from >= self.offset(lsn), "a search for records from {search_from}");
        let mut offset = search_from;
        loop {
            let bytes = reader.at_least(offset, RECORD_HEADER_BYTES)?;
            let count = (bytes.len() + 1).saturating_sub(RECORD_HEADER_BYTES);
            if count == 0 {
                return Ok(());
            }
            let mut next = 0;
            while let Some(head) = bytes.get(next..).and_then(<[u8]>::first_chunk) {
                // Most of the searched bytes are zeroes that reserved space ahead of the records.
                if *head == [0; RECORD_HEADER_BYTES] {
                    let zeroes = bytes[next..].iter().take_while(|byte| **byte == 0).count();
                    next += zeroes + 1 - RECORD_HEADER_BYTES;
                    continue;
                }
                let at = offset + next as u64;
                next += 1;
                let found = self.start + (at - FILE_HEADER_BYTES as u64);
                let header = RecordHeader::decode(head, found, id);
                if header.is_some_and(|header| header.durable_before(found) > lsn) {
                    let why = format!(
                        "{why}, although the record at byte {at} was written after it was durable,"
                    );
                    return Err(self.corrupt(lsn, &why));
                }
            }
            offset += count as u64;
        }
    }

    /// Truncates the file at the end of the log and makes it durable. Rewrites records not proved
    /// durable: if their sync failed in the previous process, another sync alone may not persist
    /// them.
    fn finish(self, id: u64, proved: Lsn, end: Lsn) -> Result<Arc<dyn LocalFile>> {
        invariant!(proved <= end, "a log durable up to {proved} ends at {end}");
        let cut = self.offset(end);
        debug_assert!(self.next.is_none(), "only the last chunk is cut");
        let mend = || {
            if self.file.len()? > cut {
                self.file.truncate(cut)?;
            }
            if proved > self.start {
                self.write_again(self.offset(proved), cut)?;
                return self.file.sync();
            }
            if end > self.start {
                self.write_again(FILE_HEADER_BYTES as u64, cut)?;
            }
            write_chunk_header(self.file.as_ref(), id, self.start)
        };
        mend().map_err(|e| e.context(&self.name))?;
        Ok(self.file)
    }
}

impl Chunk {
    /// Rewrites bytes of the file in place.
    fn write_again(&self, mut from: u64, to: u64) -> Result<()> {
        debug_assert!(from <= to, "bytes {from} to {to} of {} are rewritten", self.name);
        let mut buffer = vec![0; (to - from).min(REWRITE_BYTES) as usize];
        while from < to {
            let count = buffer.len().min((to - from) as usize);
            let part = &mut buffer[..count];
            self.file.read(&mut [ReadRange { offset: from, buffer: part }])?;
            self.file.write(from, part)?;
            from += count as u64;
        }
        Ok(())
    }
}

enum Found<'a> {
    Record(RecordHeader, &'a [u8]),
    /// No valid record here. `search_from` is the first byte of the file that may be evidence of
    /// later records.
    Nothing {
        why: &'static str,
        search_from: u64,
    },
}
