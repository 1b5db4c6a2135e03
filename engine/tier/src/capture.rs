//! One state of the database that is being uploaded: how far the log is durable locally, and the files that
//! a database at this position needs.
//!
//! It is taken under the lock of the state, under which a sync of the log and a removal of a file are noted
//! as well. So it has every file that the log names at its position: such a file was complete before the record
//! that names it was appended, and it is removed only after the record that drops it is durable. It may have
//! files that no record names yet.

use crate::entry::{Entry, Kind};
use crate::manifest::Piece;
use nacre_types::invariant;
use nacre_types::sorted::SortedMap;
use std::sync::Arc;

/// Pieces of a chunk that are at least this long are not joined with what follows.
const PIECE_BYTES: u64 = 8 << 20;

/// Syncs of the log after which the record that names a file is durable: it was appended before that was noted.
/// The sync in progress may have taken its records before; the next one takes all.
pub(crate) const NAMING_SYNCS: u64 = 2;

/// What is being uploaded.
pub(crate) struct Capture {
    /// Position of the log.
    pub position: u64,
    /// The newest snapshot before it.
    pub snapshot: Option<(u64, Arc<Entry>)>,
    /// The chunks after the snapshot, ascending, with the end of their bytes.
    pub chunks: Vec<(u64, Arc<Entry>, u64)>,
    /// All other files, and whether the log is known to name each of them at the position.
    pub files: Vec<(Arc<Entry>, bool)>,
    /// Of a history that is kept: the chunks before the others, from the first one that the newest manifest has on,
    /// as far as they are here.
    pub older: Vec<(u64, Arc<Entry>, u64)>,
    /// Of a history that is kept: files that were removed before they were uploaded.
    pub gone: Vec<Arc<Entry>>,
    /// The history that ends with it, once it is written: the name of its blob.
    pub history: Option<Arc<str>>,
    /// Whether what the log names between the newest manifest and it may never have been uploaded: another
    /// instance wrote that.
    pub is_gap: bool,
}

/// The files of a store.
pub(crate) struct Present<'a> {
    pub files: &'a SortedMap<Arc<str>, Arc<Entry>>,
    /// Removed files whose bytes are here.
    pub leaving: &'a [Arc<Entry>],
    /// Start of the first chunk of which older states are kept; `u64::MAX` if they are not.
    pub older_from: u64,
    /// How many syncs of the log have returned.
    pub syncs: u64,
}

/// A part of a chunk to be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextPiece {
    /// How many of the pieces before are kept; it stands for the others.
    pub keep: usize,
    pub from: u64,
    pub to: u64,
}

impl Capture {
    /// The present state; `None` if there is no log yet.
    pub fn take(present: &Present<'_>) -> Option<Capture> {
        let (mut snapshot, mut chunks, mut files) = (None, Vec::new(), Vec::new());
        let syncs = present.syncs;
        for entry in present.files.values() {
            let meta = entry.meta();
            if meta.is_removed {
                continue;
            }
            match entry.kind {
                Kind::Snapshot(at) if meta.is_named => {
                    // Names are in the order of positions.
                    snapshot = Some((at, entry.clone()));
                }
                Kind::Chunk(start) => chunks.push((start, entry.clone(), meta.synced)),
                Kind::Data if meta.synced > 0 && !meta.is_dirty => {
                    let is_known = syncs >= meta.named_at + NAMING_SYNCS;
                    files.push((entry.clone(), meta.is_named && is_known));
                }
                Kind::Snapshot(_) | Kind::Data | Kind::Local => {}
            }
        }
        debug_assert!(chunks.is_sorted_by(|a, b| a.0 < b.0), "chunks do not ascend");
        // Its header is not durable yet, or it is being created.
        let is_begun = |chunk: &(u64, Arc<Entry>, u64)| chunk.2 >= nacre_log::HEADER_BYTES;
        chunks.pop_if(|chunk| !is_begun(chunk));
        let from = snapshot.as_ref().map_or(0, |(at, _)| *at);
        let first = chunks.iter().rposition(|(start, ..)| *start <= from)?;
        // A chunk begins once everything before it is durable.
        for at in 1..chunks.len() {
            let end = nacre_log::HEADER_BYTES + (chunks[at].0 - chunks[at - 1].0);
            invariant!(
                chunks[at - 1].2 <= end,
                "the chunk at {} has {} bytes before the next one",
                chunks[at - 1].0,
                chunks[at - 1].2
            );
            chunks[at - 1].2 = end;
        }
        let (mut older, gone) = removed(present.leaving);
        older.extend(chunks.drain(..first));
        older.retain(|(start, ..)| *start >= present.older_from && *start <= from);
        older.sort_by_key(|(start, ..)| *start);
        let (start, _, end) = chunks.last()?;
        let position = nacre_log::position_at(*start, *end);
        invariant!(from <= position, "a snapshot at {from} of a log that is durable to {position}");
        let (gone, history) = (if present.older_from < u64::MAX { gone } else { Vec::new() }, None);
        let is_gap = false;
        Some(Capture { position, snapshot, chunks, files, older, gone, history, is_gap })
    }

    /// Whether the bytes of a file are still needed for it.
    pub fn needs(&self, entry: &Arc<Entry>) -> bool {
        let is_it = |other: &Arc<Entry>| Arc::ptr_eq(other, entry);
        let chunk = self.older.iter().chain(&self.chunks).find(|(_, chunk, _)| is_it(chunk));
        if let Some((_, _, end)) = chunk {
            return next_piece(&entry.meta().pieces, *end).is_some();
        }
        let is_member = self.snapshot.iter().any(|(_, snapshot)| is_it(snapshot))
            || self.files.iter().any(|(file, _)| is_it(file))
            || self.gone.iter().any(is_it);
        is_member && entry.meta().blob.is_none()
    }
}

/// Of removed files, the chunks, and the files that the log may have named and that are not uploaded.
#[allow(clippy::type_complexity, reason = "a chunk is what a capture has of one")]
fn removed(leaving: &[Arc<Entry>]) -> (Vec<(u64, Arc<Entry>, u64)>, Vec<Arc<Entry>>) {
    let (mut chunks, mut files) = (Vec::new(), Vec::new());
    for entry in leaving {
        match entry.kind {
            Kind::Chunk(start) => chunks.push((start, entry.clone(), entry.meta().synced)),
            Kind::Data if is_owed(entry) => files.push(entry.clone()),
            Kind::Data | Kind::Snapshot(_) | Kind::Local => {}
        }
    }
    (chunks, files)
}

/// Whether a state of the past needs bytes of a removed file that are not uploaded.
pub(crate) fn is_owed(entry: &Arc<Entry>) -> bool {
    let meta = entry.meta();
    match entry.kind {
        Kind::Data => {
            let is_whole = meta.synced > 0 && !meta.is_dirty;
            // What another instance left may not be named at all, and its number be given to another file.
            let is_new = !meta.is_found && meta.is_named;
            meta.is_here && is_new && is_whole && meta.blob.is_none()
        }
        Kind::Chunk(_) => {
            let uploaded = meta.pieces.last().map_or(0, |last| last.to);
            meta.is_here && uploaded < meta.synced && nacre_log::HEADER_BYTES <= meta.synced
        }
        Kind::Snapshot(_) | Kind::Local => false,
    }
}

/// What is to be uploaded of a chunk that ends at an offset, after some pieces. A piece also stands for those
/// before it that are not longer, so that a chunk has few pieces, and a byte is uploaded few times.
pub(crate) fn next_piece(pieces: &[Piece], to: u64) -> Option<NextPiece> {
    let mut from = pieces.last().map_or(0, |last| last.to);
    invariant!(from <= to, "a chunk of {to} bytes of which {from} are uploaded");
    if from == to {
        return None;
    }
    let mut keep = pieces.len();
    while let Some(last) = pieces[..keep].last()
        && last.to - last.from <= to - from
        && last.to - last.from < PIECE_BYTES
    {
        (keep, from) = (keep - 1, last.from);
    }
    Some(NextPiece { keep, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_few_pieces_and_a_byte_is_uploaded_few_times() {
        let (mut pieces, mut uploaded): (Vec<Piece>, u64) = (Vec::new(), 0);
        let mut end = 0;
        for step in 1..=1_000 {
            end += 100 + step % 7;
            let next = next_piece(&pieces, end).unwrap();
            pieces.truncate(next.keep);
            pieces.push(Piece { writer: 1, from: next.from, to: next.to, checksum: 0 });
            uploaded += next.to - next.from;
            assert!(pieces.windows(2).all(|pair| pair[0].to == pair[1].from));
            assert!(pieces[0].from == 0 && pieces[pieces.len() - 1].to == end);
            assert!(pieces.len() <= 12, "{} pieces after {step} steps", pieces.len());
            assert_eq!(next_piece(&pieces, end), None);
        }
        assert!(uploaded <= 12 * end, "{uploaded} bytes for {end}");
    }
}
