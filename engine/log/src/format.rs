//! The bytes of log chunks and snapshots: file names, the 64-byte file header, the 24-byte record
//! header. `docs/FORMAT.md` describes them in its chapters "Log" and "Snapshot".
//!
//! Invariant: a header counts only if its own checksum matches. The checksum of a record header
//! covers the log position and the database, so a record that is stale, misplaced or from another
//! database does not validate. Does no I/O.

use crate::position::Lsn;
use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result, invariant};

/// The version that this build writes, and the only one it reads. Version 1, which named no
/// partitions, was never released.
pub(crate) const FORMAT_VERSION: u32 = 2;
/// Size of the header of a chunk or snapshot file, in bytes. This size, and the offsets of magic,
/// version and header checksum, are the same in every version, which distinguishes a newer version
/// from damage.
pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// Size of the header of a record, in bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 24;
/// Maximum size of a record's payload in bytes.
pub const MAX_RECORD_BYTES: usize = 256 << 20;

/// Maximum position accepted when reading. A position counts bytes, so a greater one is damage.
const MAX_POSITION: Lsn = i64::MAX as u64;

/// Set in a record's length field if the log itself wrote the record.
const MARK_BIT: u32 = 1 << 31;

const _: () = assert!(MAX_RECORD_BYTES < MARK_BIT as usize);

/// The kind of a file, which determines its name and magic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Chunk,
    Snapshot,
    /// How far the log must reach. There is one, and its name has no position.
    Reach,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Chunk => b"NACRELOG",
            FileKind::Snapshot => b"NACRESNP",
            FileKind::Reach => b"NACREEND",
        }
    }

    /// Start of the name; the whole name if it has no position.
    fn prefix(self) -> &'static str {
        match self {
            FileKind::Chunk => "log-",
            FileKind::Snapshot => "snap-",
            FileKind::Reach => REACH,
        }
    }

    /// The file's name: the prefix and the position in 16 lower-case hexadecimal digits.
    pub(crate) fn name(self, lsn: Lsn) -> String {
        if self == FileKind::Reach {
            return self.prefix().to_string();
        }
        let name = nacre_host::numbered_file_name(self.prefix(), lsn);
        debug_assert!(self.parse(&name) == Some(lsn), "position {lsn} makes the file name {name}");
        name
    }

    /// The position in a name of this kind; `None` for any other file of the store.
    pub(crate) fn parse(self, name: &str) -> Option<Lsn> {
        if self == FileKind::Reach {
            return None;
        }
        nacre_host::number_of_file(self.prefix(), name)
    }
}

/// Whether any of these files belongs to a log.
pub fn has_log(names: &[String]) -> bool {
    let kinds = [FileKind::Chunk, FileKind::Snapshot];
    names.iter().any(|name| kinds.iter().any(|kind| kind.parse(name).is_some()))
}

/// Name of the file that says how far the log must reach.
pub const REACH: &str = "reach";

/// Bytes of a chunk's file before its first record.
pub const HEADER_BYTES: u64 = FILE_HEADER_BYTES as u64;

/// The position of the first record of the chunk with this file name; `None` for any other file.
pub fn chunk_of(name: &str) -> Option<Lsn> {
    FileKind::Chunk.parse(name)
}

/// The file name of the chunk whose first record is at a position.
pub fn chunk_name(start: Lsn) -> String {
    FileKind::Chunk.name(start)
}

/// The position for which the snapshot with this file name stands; `None` for any other file.
pub fn snapshot_of(name: &str) -> Option<Lsn> {
    FileKind::Snapshot.parse(name)
}

/// The file name of the snapshot at a position.
pub fn snapshot_name(at: Lsn) -> String {
    FileKind::Snapshot.name(at)
}

/// The position at an offset in the file of the chunk that starts at `start`.
pub fn position_at(start: Lsn, offset: u64) -> Lsn {
    start.saturating_add(offset.saturating_sub(HEADER_BYTES))
}

/// The identity of the database of a chunk, from the first bytes of its file.
///
/// # Errors
/// `corrupt` unless they are its header; `unsupported` for a version that this build does not know.
pub fn database_of(head: &[u8], name: &str) -> Result<u64> {
    FileHeader::decode(FileKind::Chunk, head, name).map(|header| header.database_id)
}

/// The header of a chunk or a snapshot, or a slot of the reach file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    /// The same in all files of one database.
    pub(crate) database_id: u64,
    /// Chunk: position of its first record. Snapshot: position that it represents. Reach: position
    /// that the log reaches.
    pub(crate) lsn: Lsn,
    /// Snapshot: bytes after the header. Reach: start of the newest chunk. Chunk: zero.
    pub(crate) payload_bytes: u64,
    /// Snapshot: XXH3-64 of the payload. Otherwise zero.
    pub(crate) payload_checksum: u64,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        invariant!(self.lsn <= MAX_POSITION, "a file at log position {}", self.lsn);
        debug_assert!(
            self.kind != FileKind::Chunk || self.payload_bytes == 0,
            "the header of a chunk names a payload of {} bytes",
            self.payload_bytes
        );
        let mut out = Vec::with_capacity(FILE_HEADER_BYTES);
        out.extend_from_slice(self.kind.magic());
        out.put_u32(FORMAT_VERSION);
        out.put_u32(FILE_HEADER_BYTES as u32);
        out.put_u64(self.database_id);
        out.put_u64(self.lsn);
        out.put_u64(self.payload_bytes);
        out.put_u64(self.payload_checksum);
        out.put_u64(0);
        let sum = checksum(&out);
        out.put_u64(sum);
        debug_assert_eq!(out.len(), FILE_HEADER_BYTES, "the header of a file has a fixed size");
        debug_assert!(
            FileHeader::decode(self.kind, &out, &self.kind.name(self.lsn))
                .is_ok_and(|read| read == *self),
            "the header of a file does not read back"
        );
        out
    }

    /// Decodes the first bytes of the file `name`.
    ///
    /// # Errors
    /// `corrupt` unless they are a header of this kind for this name; `unsupported` for a version
    /// that this build does not know.
    pub(crate) fn decode(kind: FileKind, bytes: &[u8], name: &str) -> Result<FileHeader> {
        let corrupt = |why: &str| Error::corrupt(format!("{name}: {why} at byte 0"));
        let (Some(head), Some(sum)) = (bytes.get(..56), bytes.get(56..FILE_HEADER_BYTES)) else {
            return Err(corrupt("file header ends early"));
        };
        if head.get(..8) != Some(kind.magic().as_slice()) {
            return Err(corrupt("file header has the wrong magic"));
        }
        if sum != checksum(head).to_le_bytes() {
            return Err(corrupt("file header checksum does not match"));
        }
        let mut reader = Reader::new(head, "file header");
        reader.take(8)?;
        let version = reader.u32()?;
        if version > 0 && version != FORMAT_VERSION {
            return Err(Error::unsupported(format!(
                "{name} has format version {version}; this build reads version {FORMAT_VERSION}"
            )));
        }
        let header_bytes = reader.u32()?;
        let header = FileHeader {
            kind,
            database_id: reader.u64()?,
            lsn: reader.u64()?,
            payload_bytes: reader.u64()?,
            payload_checksum: reader.u64()?,
        };
        let is_possible = header_bytes as usize == FILE_HEADER_BYTES && header.lsn <= MAX_POSITION;
        if version == 0 || !is_possible {
            return Err(corrupt("file header has impossible fields"));
        }
        if kind != FileKind::Reach && kind.parse(name) != Some(header.lsn) {
            return Err(corrupt(&format!("file header belongs to {}", kind.name(header.lsn))));
        }
        Ok(header)
    }
}

/// The header in front of a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// Bytes of the payload.
    pub(crate) length: u32,
    /// Written by the log itself and not handed out by recovery.
    pub(crate) mark: bool,
    /// Number of bytes right before this record that were not known to be durable when it was
    /// written, capped at `u32::MAX`.
    pub(crate) unsynced: u32,
    /// XXH3-64 of the payload.
    pub(crate) payload_checksum: u64,
}

impl RecordHeader {
    /// Encodes length, unsynced and payload checksum; [`RecordHeader::seal`] fills in the last
    /// eight bytes.
    pub(crate) fn encode_unsealed(&self) -> [u8; RECORD_HEADER_BYTES] {
        // Recovery treats a longer record as the end of the log.
        invariant!(
            self.length as usize <= MAX_RECORD_BYTES,
            "a log record of {} bytes",
            self.length
        );
        let mut out = [0; RECORD_HEADER_BYTES];
        let length = self.length | if self.mark { MARK_BIT } else { 0 };
        out[..4].copy_from_slice(&length.to_le_bytes());
        out[4..8].copy_from_slice(&self.unsynced.to_le_bytes());
        out[8..16].copy_from_slice(&self.payload_checksum.to_le_bytes());
        out
    }

    /// Binds encoded header bytes to a position, a database and the durable position: sets
    /// `unsynced` and the header checksum in place. Returns the payload's length.
    pub(crate) fn seal(
        header: &mut [u8; RECORD_HEADER_BYTES],
        lsn: Lsn,
        durable: Lsn,
        database_id: u64,
    ) -> usize {
        invariant!(durable <= lsn, "a record at {lsn}, which is durable up to {durable} already");
        // Capped: that many bytes or more.
        let unsynced = u32::try_from(lsn - durable).unwrap_or(u32::MAX);
        header[4..8].copy_from_slice(&unsynced.to_le_bytes());
        let sum = header_checksum(header, lsn, database_id);
        header[16..].copy_from_slice(&sum.to_le_bytes());
        debug_assert!(
            RecordHeader::decode(header, lsn, database_id)
                .is_some_and(|read| read.unsynced == unsynced),
            "the header of the record at {lsn} does not read back"
        );
        (u32_at(header, 0) & !MARK_BIT) as usize
    }

    /// Decodes a record header; `None` unless these bytes were written as one at exactly this
    /// position of this database.
    pub(crate) fn decode(
        bytes: &[u8; RECORD_HEADER_BYTES],
        lsn: Lsn,
        database_id: u64,
    ) -> Option<RecordHeader> {
        let field = u32_at(bytes, 0);
        let length = field & !MARK_BIT;
        // Cheap checks first: the search for records after damage tries every byte of a chunk.
        if length as usize > MAX_RECORD_BYTES || bytes[16..] == [0; 8] {
            return None;
        }
        if bytes[16..] != header_checksum(bytes, lsn, database_id).to_le_bytes() {
            return None;
        }
        let mut payload_checksum = [0; 8];
        payload_checksum.copy_from_slice(&bytes[8..16]);
        Some(RecordHeader {
            length,
            mark: field & MARK_BIT != 0,
            unsynced: u32_at(bytes, 4),
            payload_checksum: u64::from_le_bytes(payload_checksum),
        })
    }

    /// The position up to which the log was known to be durable when the record at `lsn` was
    /// written.
    pub(crate) fn durable_before(&self, lsn: Lsn) -> Lsn {
        if self.unsynced == u32::MAX { 0 } else { lsn.saturating_sub(u64::from(self.unsynced)) }
    }
}

fn u32_at(bytes: &[u8; RECORD_HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The checksum that binds the header of a record to its position and its database.
pub(crate) fn header_checksum(
    header: &[u8; RECORD_HEADER_BYTES],
    lsn: Lsn,
    database_id: u64,
) -> u64 {
    let mut bound = [0u8; 32];
    bound[..16].copy_from_slice(&header[..16]);
    bound[16..24].copy_from_slice(&lsn.to_le_bytes());
    bound[24..].copy_from_slice(&database_id.to_le_bytes());
    checksum(&bound)
}
