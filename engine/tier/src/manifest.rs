//! The manifest: the blob that names everything that belongs to one state of the database.
//! `docs/FORMAT.md` describes its bytes in the chapter "Blobs".
//!
//! Independent of how it is written and of what is local.

use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Name of the blob.
pub const MANIFEST: &str = "manifest";

const MAGIC: &[u8; 8] = b"NACREMAN";
/// The version that this build writes. Version 1 is read, too: it ends with the dropped blobs, of which it has
/// less.
const VERSION: u32 = 2;
/// Bytes before the fields.
const HEAD_BYTES: usize = 12;
/// Bytes of the checksum after them.
const SUM_BYTES: usize = 8;

/// A file as a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Number of the writer that uploaded it.
    pub writer: u64,
    /// Its length in bytes.
    pub len: u64,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
    /// Whether the log is known to name the file at the position of the manifest.
    pub is_named: bool,
}

/// A range of a log chunk's file as a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Number of the writer that uploaded it.
    pub writer: u64,
    /// Offset of its first byte in the file.
    pub from: u64,
    /// Offset of its end.
    pub to: u64,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
}

/// A chunk of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Position of its first record.
    pub start: u64,
    /// The pieces of its file, without gaps.
    pub pieces: Vec<Piece>,
}

/// A blob that no manifest names any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Its name.
    pub name: Arc<str>,
    /// When it was last named, by the writer's clock, in microseconds since 1970-01-01 UTC.
    pub since_us: i64,
    /// Position of the first manifest that did not name it any more: what is at an earlier position may need it.
    pub position: u64,
    /// Of a file that is written once, what the manifests named.
    pub file: Option<Blob>,
}

/// How far the log reached at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Position of a manifest.
    pub position: u64,
    /// When it was written, by the writer's clock, in microseconds since 1970-01-01 UTC.
    pub at_us: i64,
}

/// A database that this one is a branch of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The blobs of writers up to this number are there.
    pub up_to: u64,
    /// Its URL.
    pub url: Arc<str>,
}

/// What the blobs hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Identity of the database; 0 while there is none yet.
    pub database: u64,
    /// Number of the writer. Each instance that writes takes the next one.
    pub writer: u64,
    /// Tells instances apart that tried to take the same number.
    pub token: u64,
    /// Identity of the writer's local folder.
    pub folder: u64,
    /// Differs in all manifests of a writer, so that no two of them have the same bytes.
    pub sequence: u64,
    /// When it was written, by the writer's clock, in microseconds since 1970-01-01 UTC.
    pub written_us: i64,
    /// Position of the log that it reaches.
    pub position: u64,
    /// The newest snapshot: its position, and the blob.
    pub snapshot: Option<(u64, Blob)>,
    /// The chunks after it, ascending.
    pub chunks: Vec<Chunk>,
    /// All other files, by name.
    pub files: SortedMap<Arc<str>, Blob>,
    /// What is to be removed later.
    pub dropped: Vec<Dropped>,
    /// Blobs that were dropped up to this time may be gone, unless something holds them. Never decreases.
    pub horizon_us: i64,
    /// The first position of which it has all that a state needs, with what it has dropped.
    pub floor: u64,
    /// Positions and their times, ascending: since the snapshot, and the last one before it.
    pub marks: Vec<Mark>,
    /// The databases that this one is a branch of, by ascending numbers of their writers.
    pub origins: Vec<Origin>,
    /// Identity as a branch, by which its origins know it; 0 for none.
    pub branch: u64,
}

/// The name of the blob of a file.
pub(crate) fn blob_name(writer: u64, file: &str) -> String {
    format!("{writer:08x}/{file}")
}

/// The name of the blob of a piece of a log chunk.
pub(crate) fn piece_name(start: u64, piece: &Piece) -> String {
    let file = nacre_log::chunk_name(start);
    blob_name(piece.writer, &format!("{file}.{:x}-{:x}", piece.from, piece.to))
}

impl Manifest {
    /// Whether it names a database, not only a writer.
    pub fn has_state(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// The file that is written once whose blob has this name.
    pub fn file_of(&self, name: &str) -> Option<Blob> {
        let (_, file) = name.split_once('/')?;
        self.files.get(file).copied().filter(|blob| blob_name(blob.writer, file) == name)
    }

    /// Whether a blob that it has dropped may be gone.
    pub fn is_over(&self, dropped: &Dropped) -> bool {
        dropped.since_us <= self.horizon_us
    }

    /// The blobs that are there as long as it is the newest manifest: those that it names, and those that it has
    /// dropped not long ago.
    pub fn kept(&self) -> BTreeSet<String> {
        let mut names = self.names();
        let dropped = self.dropped.iter().filter(|dropped| !self.is_over(dropped));
        names.extend(dropped.map(|dropped| dropped.name.to_string()));
        names
    }

    /// The names of all blobs that belong to its state.
    pub fn names(&self) -> BTreeSet<String> {
        let snapshot = self.snapshot.iter();
        let snapshot =
            snapshot.map(|(at, blob)| blob_name(blob.writer, &nacre_log::snapshot_name(*at)));
        let files = self.files.iter().map(|(name, blob)| blob_name(blob.writer, name));
        let pieces = self
            .chunks
            .iter()
            .flat_map(|chunk| chunk.pieces.iter().map(|piece| piece_name(chunk.start, piece)));
        snapshot.chain(files).chain(pieces).collect()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(200 + 40 * self.files.len());
        out.extend_from_slice(MAGIC);
        out.put_u32(VERSION);
        out.put_u64(self.database);
        out.put_varint(self.writer);
        out.put_u64(self.token);
        out.put_u64(self.folder);
        out.put_varint(self.sequence);
        out.put_u64(self.written_us as u64);
        out.put_varint(self.position);
        out.put_varint(u64::from(self.snapshot.is_some()));
        if let Some((at, blob)) = &self.snapshot {
            out.put_varint(*at);
            put_blob(&mut out, blob);
        }
        out.put_varint(self.chunks.len() as u64);
        for chunk in &self.chunks {
            out.put_varint(chunk.start);
            out.put_varint(chunk.pieces.len() as u64);
            for piece in &chunk.pieces {
                out.put_varint(piece.writer);
                out.put_varint(piece.to - piece.from);
                out.put_u64(piece.checksum);
            }
        }
        out.put_varint(self.files.len() as u64);
        for (name, blob) in self.files.iter() {
            out.put_bytes(name.as_bytes());
            put_blob(&mut out, blob);
        }
        out.put_varint(self.dropped.len() as u64);
        for dropped in &self.dropped {
            out.put_bytes(dropped.name.as_bytes());
            out.put_u64(dropped.since_us as u64);
            out.put_varint(dropped.position << 1 | u64::from(dropped.file.is_some()));
            if let Some(blob) = &dropped.file {
                put_blob(&mut out, blob);
            }
        }
        out.put_u64(self.horizon_us as u64);
        out.put_varint(self.floor);
        out.put_varint(self.marks.len() as u64);
        for mark in &self.marks {
            out.put_varint(mark.position);
            out.put_u64(mark.at_us as u64);
        }
        out.put_u64(self.branch);
        out.put_varint(self.origins.len() as u64);
        for origin in &self.origins {
            out.put_varint(origin.up_to);
            out.put_bytes(origin.url.as_bytes());
        }
        let sum = checksum(&out);
        out.put_u64(sum);
        debug_assert!(
            Manifest::decode(&out).is_ok_and(|read| read == *self),
            "a manifest does not read back"
        );
        out
    }

    /// # Errors
    /// `corrupt` unless these are the bytes of a manifest; `unsupported` for a version that this build does
    /// not know.
    pub fn decode(bytes: &[u8]) -> Result<Manifest> {
        let corrupt = |why: &str| Error::corrupt(format!("{MANIFEST}: {why}"));
        if bytes.len() < HEAD_BYTES + SUM_BYTES || !bytes.starts_with(MAGIC) {
            return Err(corrupt("is not a manifest of this database engine"));
        }
        let (fields, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
        if sum != checksum(fields).to_le_bytes() {
            return Err(corrupt("checksum does not match"));
        }
        let mut reader = Reader::new(fields, MANIFEST);
        reader.take(MAGIC.len())?;
        let version = reader.u32()?;
        if version == 0 || version > VERSION {
            return Err(Error::unsupported(format!(
                "the {MANIFEST} has format version {version}; this build reads up to {VERSION}"
            )));
        }
        let manifest = read(&mut reader, version)?;
        reader.finish()?;
        Ok(manifest)
    }
}

fn put_blob(out: &mut Vec<u8>, blob: &Blob) {
    out.put_varint(blob.writer << 1 | u64::from(blob.is_named));
    out.put_varint(blob.len);
    out.put_u64(blob.checksum);
}

fn read_blob(reader: &mut Reader<'_>) -> Result<Blob> {
    let writer = reader.varint()?;
    let (writer, is_named) = (writer >> 1, writer & 1 == 1);
    Ok(Blob { writer, is_named, len: reader.varint()?, checksum: reader.u64()? })
}

fn read(reader: &mut Reader<'_>, version: u32) -> Result<Manifest> {
    let mut manifest = Manifest {
        horizon_us: i64::MIN,
        database: reader.u64()?,
        writer: reader.varint()?,
        token: reader.u64()?,
        folder: reader.u64()?,
        sequence: reader.varint()?,
        written_us: reader.u64()? as i64,
        position: reader.varint()?,
        ..Manifest::default()
    };
    if reader.count(1)? == 1 {
        manifest.snapshot = Some((reader.varint()?, read_blob(reader)?));
    }
    for _ in 0..reader.count(reader.remaining())? {
        let (start, mut pieces, mut from) = (reader.varint()?, Vec::new(), 0u64);
        for _ in 0..reader.count(reader.remaining())? {
            let writer = reader.varint()?;
            let to = from.checked_add(reader.varint()?).ok_or_else(|| reader.corrupt("length"))?;
            pieces.push(Piece { writer, from, to, checksum: reader.u64()? });
            from = to;
        }
        manifest.chunks.push(Chunk { start, pieces });
    }
    for _ in 0..reader.count(reader.remaining())? {
        let name = reader.text()?;
        nacre_host::check_file_name(name).map_err(|_| reader.corrupt("bad file name"))?;
        manifest.files.insert(name.into(), read_blob(reader)?);
    }
    for _ in 0..reader.count(reader.remaining())? {
        let name = reader.text()?;
        nacre_host::check_blob_name(name).map_err(|_| reader.corrupt("bad blob name"))?;
        let (name, since_us) = (name.into(), reader.u64()? as i64);
        let (mut position, mut file) = (manifest.position, None);
        if version > 1 {
            let field = reader.varint()?;
            position = field >> 1;
            file = if field & 1 == 1 { Some(read_blob(reader)?) } else { None };
        }
        manifest.dropped.push(Dropped { name, since_us, position, file });
    }
    match version {
        1 => manifest.floor = manifest.position,
        _ => read_history(reader, &mut manifest)?,
    }
    if !manifest.chunks.is_sorted_by(|a, b| a.start < b.start) {
        return Err(reader.corrupt("chunks do not ascend"));
    }
    Ok(manifest)
}

/// Reads what version 1 did not have.
fn read_history(reader: &mut Reader<'_>, manifest: &mut Manifest) -> Result<()> {
    manifest.horizon_us = reader.u64()? as i64;
    manifest.floor = reader.varint()?;
    for _ in 0..reader.count(reader.remaining())? {
        let (position, at_us) = (reader.varint()?, reader.u64()? as i64);
        // Writers whose clocks were apart have written times that go back.
        let at_us = manifest.marks.last().map_or(at_us, |last| last.at_us.max(at_us));
        manifest.marks.push(Mark { position, at_us });
    }
    manifest.branch = reader.u64()?;
    for _ in 0..reader.count(reader.remaining())? {
        let (up_to, url) = (reader.varint()?, reader.text()?.into());
        manifest.origins.push(Origin { up_to, url });
    }
    let ascend = manifest.marks.is_sorted_by_key(|mark| mark.position)
        && manifest.origins.is_sorted_by(|a, b| a.up_to < b.up_to);
    if ascend { Ok(()) } else { Err(reader.corrupt("marks or origins do not ascend")) }
}

/// Lists the blobs that a manifest names, one line each, for tools and tests.
///
/// # Errors
/// As when it is read: `corrupt`, `unsupported`.
pub fn describe(bytes: &[u8]) -> Result<Vec<String>> {
    let manifest = Manifest::decode(bytes)?;
    let head = format!(
        "database {:016x}, writer {}, position {}",
        manifest.database, manifest.writer, manifest.position
    );
    Ok(std::iter::once(head).chain(manifest.names()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(writer: u64) -> Blob {
        Blob { writer, len: 1_000 + writer, checksum: writer * 77, is_named: writer % 2 == 1 }
    }

    fn manifest() -> Manifest {
        let piece = |from, to| Piece { writer: 2, from, to, checksum: from ^ to };
        Manifest {
            database: 0x1234_5678_9abc_def0,
            writer: 3,
            token: 99,
            folder: 98,
            sequence: 300,
            written_us: -5,
            position: 5_000,
            snapshot: Some((4_000, blob(1))),
            chunks: vec![
                Chunk { start: 3_900, pieces: vec![piece(0, 64), piece(64, 564)] },
                Chunk { start: 4_400, pieces: Vec::new() },
            ],
            files: [("seg-0000000000000001".into(), blob(2)), ("x".into(), blob(3))]
                .into_iter()
                .collect(),
            dropped: vec![
                Dropped { name: "00000001/x".into(), since_us: 12, position: 4_200, file: None },
                Dropped {
                    name: "00000002/seg-0000000000000009".into(),
                    since_us: 14,
                    position: 4_300,
                    file: Some(blob(2)),
                },
            ],
            horizon_us: 12,
            floor: 4_100,
            marks: vec![Mark { position: 3_950, at_us: -9 }, Mark { position: 5_000, at_us: -5 }],
            origins: vec![Origin { up_to: 1, url: "s3://bucket/parent".into() }],
            branch: 7,
        }
    }

    #[test]
    fn a_blob_that_was_dropped_long_ago_is_not_kept() {
        let kept = manifest().kept();
        assert!(kept.contains("00000002/seg-0000000000000009"), "{kept:?}");
        assert!(!kept.contains("00000001/x"), "{kept:?}");
        assert!(kept.is_superset(&manifest().names()));
    }

    #[test]
    fn a_manifest_reads_back() {
        let manifest = manifest();
        assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
        let names = manifest.names();
        assert!(names.contains("00000002/log-0000000000000f3c.40-234"), "{names:?}");
        assert!(names.contains("00000001/snap-0000000000000fa0"), "{names:?}");
        assert_eq!(names.len(), 5);
        assert_eq!(describe(&manifest.encode()).unwrap().len(), 6);
    }

    #[test]
    fn times_of_clocks_that_were_apart_are_read_as_ascending() {
        let mut manifest = manifest();
        let mark = |position, at_us| Mark { position, at_us };
        let (second, third) = (0x1122_3344_5566, 0x1122_3344_5577);
        manifest.marks = vec![mark(1, 50), mark(2, second), mark(3, third)];
        let mut bytes = manifest.encode();
        bytes.truncate(bytes.len() - 8);
        let place = bytes.windows(8).position(|bytes| *bytes == second.to_le_bytes()).unwrap();
        bytes[place..place + 8].copy_from_slice(&20_i64.to_le_bytes());
        let read = Manifest::decode(&summed(bytes)).unwrap();
        assert_eq!(read.marks, [mark(1, 50), mark(2, 50), mark(3, third)]);
    }

    fn number(low: u8) -> [u8; 8] {
        [low, 0, 0, 0, 0, 0, 0, 0]
    }

    /// The fields that both versions have, up to the number of dropped blobs, which is 1.
    fn golden(version: u8) -> Vec<u8> {
        [
            &b"NACREMAN"[..],
            &[version, 0, 0, 0],
            &[8, 7, 6, 5, 4, 3, 2, 1],
            // The writer, its token and its folder; the sequence, the time, the position.
            &[3],
            &number(9),
            &number(10),
            &[0xac, 2],
            &number(5),
            &[0xe8, 7],
            // A snapshot at 900, of 700 bytes, by writer 2.
            &[1, 0x84, 7, 5, 0xbc, 5],
            &number(0x11),
            // A chunk from 800 on, in two pieces.
            &[1, 0xa0, 6, 2, 2, 64],
            &number(0x22),
            &[3, 0xc8, 1],
            &number(0x33),
            &[1, 20],
            b"seg-0000000000000001",
            &[2, 5],
            &number(0x44),
            &[1, 10],
            b"00000001/x",
            &number(6),
        ]
        .concat()
    }

    fn summed(mut fields: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&fields);
        fields.extend_from_slice(&sum.to_le_bytes());
        fields
    }

    /// What the bytes of both versions say.
    fn of_the_golden() -> Manifest {
        let blob = |writer, len, checksum, is_named| Blob { writer, len, checksum, is_named };
        let piece = |writer, from, to, checksum| Piece { writer, from, to, checksum };
        Manifest {
            database: 0x0102_0304_0506_0708,
            writer: 3,
            token: 9,
            folder: 10,
            sequence: 300,
            written_us: 5,
            position: 1_000,
            snapshot: Some((900, blob(2, 700, 0x11, true))),
            chunks: vec![Chunk {
                start: 800,
                pieces: vec![piece(2, 0, 64, 0x22), piece(3, 64, 264, 0x33)],
            }],
            files: [("seg-0000000000000001".into(), blob(1, 5, 0x44, false))].into_iter().collect(),
            dropped: vec![Dropped {
                name: "00000001/x".into(),
                since_us: 6,
                position: 1_000,
                file: None,
            }],
            horizon_us: i64::MIN,
            floor: 1_000,
            marks: Vec::new(),
            origins: Vec::new(),
            branch: 0,
        }
    }

    #[test]
    fn version_1_stays_readable() {
        assert_eq!(Manifest::decode(&summed(golden(1))).unwrap(), of_the_golden());
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let blob = Blob { writer: 1, len: 9, checksum: 0x55, is_named: true };
        let manifest = Manifest {
            dropped: vec![Dropped {
                name: "00000001/x".into(),
                since_us: 6,
                position: 700,
                file: Some(blob),
            }],
            horizon_us: 4,
            floor: 600,
            marks: vec![Mark { position: 1_000, at_us: 5 }],
            branch: 12,
            origins: vec![Origin { up_to: 1, url: "s3://b/p".into() }],
            ..of_the_golden()
        };
        let fields = [
            &golden(2)[..],
            // It was dropped at 700, and is a file of 9 bytes by writer 1.
            &[0xf9, 10, 3, 9],
            &number(0x55),
            &number(4),
            &[0xd8, 4],
            &[1, 0xe8, 7],
            &number(5),
            &number(12),
            &[1, 1, 8],
            b"s3://b/p",
        ]
        .concat();
        assert_eq!(manifest.encode(), summed(fields));
        assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
    }

    #[test]
    fn damage_and_newer_versions_are_told_apart() {
        let bytes = manifest().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(
                Manifest::decode(&damaged).unwrap_err().kind(),
                nacre_types::ErrorKind::Corrupt
            );
        }
        let mut newer = bytes.clone();
        newer[8] = 9;
        let end = newer.len() - SUM_BYTES;
        let sum = checksum(&newer[..end]);
        newer[end..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(
            Manifest::decode(&newer).unwrap_err().kind(),
            nacre_types::ErrorKind::Unsupported
        );
        for end in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..end]).is_err());
        }
    }
}
