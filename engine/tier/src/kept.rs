//! Fills the slots of blocks, and notes which blocks they have, so that the next instance begins with the blocks of
//! this one. `docs/FORMAT.md` describes the file of notes.
//!
//! Nothing is synced, and the notes and the blocks may be lost independently of each other: a note has the
//! checksums of the sectors, and each sector is verified before it is first read. A note names the blob, whose bytes
//! never change; what no file has any more is free.

use crate::blocks::{BLOCKS, SECTORS, Sectors, Sums, sectors};
use crate::entry::{Entry, Kind};
use crate::manifest::{Blob, blob_name};
use crate::shared::{Shared, pins};
use nacre_host::{LocalFile, ReadRange};
use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::hash::Map;
use nacre_types::plant::{self, Bug};
use nacre_types::{ErrorKind, Result};
use std::sync::Arc;

/// Name of the file.
pub(crate) const KEPT: &str = "kept";

const MAGIC: &[u8; 8] = b"NACREKPT";
const VERSION: u32 = 1;
/// Bytes of the head, and of the note of a slot.
const NOTE_BYTES: usize = 64;
/// Bytes of a note before its checksum.
const FIELDS_BYTES: usize = NOTE_BYTES - 4;

/// Identifies the bytes of a file.
fn identity(blob: &Blob, file: &str) -> (u64, u64) {
    (checksum(blob_name(blob.writer, file).as_bytes()), blob.checksum)
}

/// Writes the bytes of whole sectors of a file to the slots of their blocks, which a pin holds: from an offset of
/// the file on, which has a length.
pub(crate) fn fill(
    shared: &Shared,
    entry: &Entry,
    slots: &[usize],
    (from, len): (u64, u64),
    bytes: &[u8],
) -> Result<()> {
    let file = shared.block_file()?;
    let (size, sector) = {
        let blocks = shared.blocks();
        (blocks.block_bytes(), blocks.sector_bytes())
    };
    debug_assert!(from % sector == 0, "{from} is in the middle of a sector");
    let (mut at, mut left) = (from, bytes);
    for slot in slots {
        let skip = at % size;
        let (part, others) = left.split_at(left.len().min((size - skip) as usize));
        file.write(*slot as u64 * size + skip, part)?;
        let end = skip + part.len() as u64;
        at += part.len() as u64;
        left = others;
        // What would follow the end of the file is there, too.
        let end = if at == len { SECTORS } else { end / sector };
        let first = skip / sector;
        let sums = sums(shared, first, part, sector);
        shared.blocks().fill(*slot, sectors(first, end), &sums);
    }
    debug_assert!(left.is_empty(), "{} bytes have no slot", left.len());
    note(shared, entry, slots);
    Ok(())
}

/// The checksums of the sectors of a block whose bytes begin with one of them.
fn sums(shared: &Shared, first: u64, bytes: &[u8], sector: u64) -> Sums {
    let mut sums = [sum(&[]); SECTORS as usize];
    if keeps(shared) {
        for (place, bytes) in (first as usize..).zip(bytes.chunks(sector as usize)) {
            sums[place] = sum(bytes);
        }
    }
    sums
}

fn sum(bytes: &[u8]) -> u32 {
    checksum(bytes) as u32
}

/// Whether the next instance on the local store may read the blocks of this one: a reader begins with an empty one.
fn keeps(shared: &Shared) -> bool {
    !shared.is_read_only()
}

/// Adopts the blocks of the instance before.
pub(crate) fn adopt(shared: &Shared, names: &[String]) -> Result<()> {
    let has = |name: &str| names.iter().any(|other| other == name);
    let size = shared.blocks().block_bytes();
    let store = &*shared.local;
    if keeps(shared) && has(BLOCKS) && has(KEPT) {
        let (slots, notes) = (store.open(BLOCKS)?, store.open(KEPT)?);
        let mut bytes = vec![0; notes.len()? as usize / NOTE_BYTES * NOTE_BYTES];
        notes.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }])?;
        let (head, notes_bytes) = bytes.split_at(NOTE_BYTES.min(bytes.len()));
        if *head == self::head(size) {
            let count = slots.len()?.div_ceil(size) as usize;
            let ids = away(shared);
            let mut blocks = shared.blocks();
            for note in notes_bytes.chunks_exact(NOTE_BYTES).take(count) {
                let known = decode(note).and_then(|(identity, number, filled, sums, is_hot)| {
                    Some(((*ids.get(&identity)?, number), filled, sums, is_hot))
                });
                blocks.adopt(known);
            }
            blocks.set_file(slots);
            blocks.set_notes(notes);
            return Ok(());
        }
    }
    for name in [BLOCKS, KEPT] {
        if has(name) {
            store.remove(name)?;
        }
    }
    Ok(())
}

/// The files whose bytes are only in the blob store, by what identifies their bytes.
fn away(shared: &Shared) -> Map<(u64, u64), u64> {
    let state = shared.state();
    let away = state.files.values().filter_map(|entry| {
        let meta = entry.meta();
        let blob = meta.blob.filter(|_| entry.kind == Kind::Data && !meta.is_here)?;
        Some((identity(&blob, &entry.name), entry.id))
    });
    away.collect()
}

/// Notes what slots have, which pins hold. A failure is not the caller's: what is not noted is fetched again.
fn note(shared: &Shared, entry: &Entry, slots: &[usize]) {
    if !keeps(shared) {
        return;
    }
    let Some(blob) = entry.meta().blob else { return };
    let Ok(file) = file(shared) else { return };
    for at in slots {
        let Some(noted) = shared.blocks().noted(*at) else { continue };
        let note = encode(identity(&blob, &entry.name), noted);
        file.write((*at as u64 + 1) * NOTE_BYTES as u64, &note).ok();
    }
}

/// The file of notes, created when it is first needed.
fn file(shared: &Shared) -> Result<Arc<dyn LocalFile>> {
    let (known, size) = {
        let blocks = shared.blocks();
        (blocks.notes(), blocks.block_bytes())
    };
    if let Some(file) = known {
        return Ok(file);
    }
    // Without the lock: it may take time.
    let file = match shared.local.create(KEPT) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => shared.local.open(KEPT)?,
        created => created?,
    };
    file.write(0, &head(size))?;
    Ok(shared.blocks().set_notes(file))
}

/// Verifies those blocks of a file that the instance before has fetched, before they are read.
pub(crate) fn verify(
    shared: &Arc<Shared>,
    entry: &Entry,
    numbers: impl Iterator<Item = u64>,
) -> Result<()> {
    let found = shared.blocks().pin_unverified(entry.id, numbers);
    if found.is_empty() {
        return Ok(());
    }
    let mut pins = pins(shared, false);
    pins.slots.extend(found.iter().map(|(_, at, ..)| *at));
    let (file, len) = (shared.block_file()?, entry.meta().blob.map_or(0, |blob| blob.len));
    let (size, sector) = {
        let blocks = shared.blocks();
        (blocks.block_bytes(), blocks.sector_bytes())
    };
    for (number, at, kept, sums) in found {
        let mut right = 0;
        for place in (0..SECTORS).filter(|place| kept & sectors(*place, place + 1) != 0) {
            let start = number * size + place * sector;
            let mut bytes = vec![0; len.saturating_sub(start).min(sector) as usize];
            let offset = at as u64 * size + place * sector;
            // The slot may have been lost.
            let read = file.read(&mut [ReadRange { offset, buffer: &mut bytes }]);
            let is_right = read.is_ok() && sum(&bytes) == sums[place as usize];
            if is_right || plant::is(Bug::KeptUnverified) {
                right |= sectors(place, place + 1);
            }
        }
        shared.blocks().verify(at, kept, right);
    }
    Ok(())
}

fn head(block_bytes: u64) -> [u8; NOTE_BYTES] {
    let mut out = Vec::with_capacity(NOTE_BYTES);
    out.extend_from_slice(MAGIC);
    out.put_u32(VERSION);
    out.put_u64(block_bytes);
    sealed(out)
}

type Note = ((u64, u64), u64, Sectors, Sums, bool);

fn encode(identity: (u64, u64), noted: ((u64, u64), Sectors, Sums, bool)) -> [u8; NOTE_BYTES] {
    let ((_, number), filled, sums, is_hot) = noted;
    let mut out = Vec::with_capacity(NOTE_BYTES);
    out.put_u64(identity.0);
    out.put_u64(identity.1);
    // A block has 512 bytes at least, so its number has no use for the upper bits.
    out.put_u64(number << 16 | u64::from(filled) << 8 | u64::from(is_hot));
    sums.iter().for_each(|sum| out.put_u32(*sum));
    sealed(out)
}

/// Pads fields, and adds their checksum.
fn sealed(mut fields: Vec<u8>) -> [u8; NOTE_BYTES] {
    debug_assert!(fields.len() <= FIELDS_BYTES, "{} bytes of fields", fields.len());
    fields.resize(FIELDS_BYTES, 0);
    let mut note = [0; NOTE_BYTES];
    note[..FIELDS_BYTES].copy_from_slice(&fields);
    note[FIELDS_BYTES..].copy_from_slice(&sum(&fields).to_le_bytes());
    note
}

/// A note; `None` if there is none, or a damaged one.
fn decode(note: &[u8]) -> Option<Note> {
    let (fields, sealed) = note.split_at(FIELDS_BYTES);
    if sum(fields).to_le_bytes() != *sealed {
        return None;
    }
    let mut reader = Reader::new(fields, "note of a block");
    let identity = (reader.u64().ok()?, reader.u64().ok()?);
    let packed = reader.u64().ok()?;
    let mut sums = Sums::default();
    for sum in &mut sums {
        *sum = reader.u32().ok()?;
    }
    let (number, filled, is_hot) = (packed >> 16, (packed >> 8) as Sectors, packed & 1 != 0);
    if filled == 0 {
        return None;
    }
    Some((identity, number, filled, sums, is_hot))
}
