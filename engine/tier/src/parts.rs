//! The parts of a capture: what is uploaded as one blob each, some of them at once.

use crate::at_once::{AT_ONCE, at_once};
use crate::capture::{Capture, NextPiece, next_piece};
use crate::entry::Entry;
use crate::manifest::{Blob, Piece, blob_name, piece_name};
use crate::shared::Shared;
use nacre_host::WriteIf;
use nacre_types::Result;
use nacre_types::checksum::checksum;
use std::sync::Arc;

/// Bytes of the parts that are uploaded at once, unless the first has more.
const PARTS_BYTES: u64 = 16 << 20;

/// What is uploaded as one blob.
pub(crate) enum Part {
    /// A file whole.
    File(Arc<Entry>),
    /// A part of a chunk, by its start.
    Piece(u64, Arc<Entry>, NextPiece),
}

impl Part {
    fn bytes(&self) -> u64 {
        match self {
            Part::File(entry) => entry.meta().written,
            Part::Piece(.., next) => next.to - next.from,
        }
    }
}

/// The next parts of a capture that are not uploaded; none if all are.
pub(crate) fn missing(capture: &Capture) -> Vec<Part> {
    let is_missing = |entry: &&Arc<Entry>| entry.meta().blob.is_none();
    let snapshot = capture.snapshot.iter().map(|(_, snapshot)| snapshot);
    let files = capture.files.iter().map(|(file, _)| file);
    let files = files.chain(snapshot).chain(&capture.gone).filter(is_missing);
    let pieces = capture.older.iter().chain(&capture.chunks).filter_map(|(start, entry, end)| {
        let next = next_piece(&entry.meta().pieces, *end)?;
        Some(Part::Piece(*start, entry.clone(), next))
    });
    let mut bytes = 0;
    let fits = |part: &Part| {
        let is_first = bytes == 0;
        bytes += part.bytes();
        is_first || bytes <= PARTS_BYTES
    };
    let parts = files.map(|entry| Part::File(entry.clone())).chain(pieces);
    parts.take(AT_ONCE).take_while(fits).collect()
}

/// Uploads parts beside each other. Those that are uploaded are noted, also if another one fails.
///
/// # Errors
/// The first error; the others are given up.
pub(crate) async fn upload(shared: &Shared, parts: Vec<Part>) -> Result<()> {
    let uploads = parts.into_iter().map(|part| upload_part(shared, part));
    at_once(uploads, AT_ONCE).await.map(drop)
}

async fn upload_part(shared: &Shared, part: Part) -> Result<()> {
    match part {
        Part::File(entry) => upload_file(shared, &entry).await,
        Part::Piece(start, entry, next) => upload_piece(shared, start, &entry, next).await,
    }
}

async fn upload_file(shared: &Shared, entry: &Arc<Entry>) -> Result<()> {
    let len = entry.meta().written;
    let bytes = shared.read_local(entry, 0, len)?;
    let blob = Blob { writer: shared.writer(), len, checksum: checksum(&bytes), is_named: false };
    let name = blob_name(blob.writer, &entry.name);
    shared.blobs.write(&name, bytes.into(), WriteIf::Any).await?;
    entry.meta().blob = Some(blob);
    Ok(())
}

async fn upload_piece(
    shared: &Shared,
    start: u64,
    entry: &Arc<Entry>,
    next: NextPiece,
) -> Result<()> {
    let bytes = shared.read_local(entry, next.from, next.to)?;
    let (writer, checksum) = (shared.writer(), checksum(&bytes));
    let piece = Piece { writer, from: next.from, to: next.to, checksum };
    shared.blobs.write(&piece_name(start, &piece), bytes.into(), WriteIf::Any).await?;
    let mut meta = entry.meta();
    meta.pieces.truncate(next.keep);
    meta.pieces.push(piece);
    Ok(())
}
