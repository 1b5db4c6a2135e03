//! The states of the past: what is kept so that every position of the log can be opened for the time of the
//! history, and the manifest of such a state.
//!
//! As long as the log in the blobs begins with the same snapshot, the newest manifest has all of it, and what it
//! has dropped since. When a snapshot takes the place of the log before, what was named until then is written as a
//! blob of its own, with the end of that log: a *history*, from the snapshot before to the position of the new
//! manifest. So each position is in a history or in the newest manifest.
//!
//! The state at a position has the log up to there, and every file that the log names: those of the manifest, and
//! those that were dropped at later positions. It may have more files, which its log does not name.

use crate::capture::Capture;
use crate::manifest::{Chunk, Dropped, Manifest, Mark, Piece, blob_name};
use nacre_types::hash::Set;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, invariant};
use std::sync::Arc;

/// Start of the file name of a history.
const HISTORY: &str = "history-";
/// Least time between two marks, in microseconds.
const MARK_EVERY_US: i64 = 1_000_000;
/// A manifest has at most this many marks; beyond, every second one of the older half is left out.
const MOST_MARKS: usize = 1_000;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The commits whose records end at this position of the log or before it; `u64::MAX` for all.
    Position(u64),
    /// What was uploaded until this time by the clock of the writer, in microseconds since 1970-01-01 UTC: the
    /// times of uploads are known to a second.
    Time(i64),
}

/// The positions of a history, by the name of its blob.
fn positions_of(name: &str) -> Option<(u64, u64)> {
    let (_, file) = name.split_once('/')?;
    let (from, to) = file.strip_prefix(HISTORY)?.split_once('-')?;
    let parse = |digits| u64::from_str_radix(digits, 16).ok();
    parse(from).zip(parse(to))
}

/// Whether a blob is a history, by its name.
pub(crate) fn is_history(name: &str) -> bool {
    positions_of(name).is_some()
}

/// The first position that a manifest has the log from.
fn first_of(manifest: &Manifest) -> u64 {
    manifest.snapshot.map_or(0, |(at, _)| at)
}

/// The marks of a manifest that is written now.
pub(crate) fn marks(before: &Manifest, snapshot: u64, next: Mark) -> Vec<Mark> {
    let mut marks = before.marks.clone();
    // A time in between has a mark that is not much older.
    if let [.., before, _] = &marks[..]
        && next.at_us - before.at_us < MARK_EVERY_US
    {
        marks.pop();
    }
    if marks.last().is_none_or(|last| last.position < next.position) {
        let at_us = marks.last().map_or(next.at_us, |last| last.at_us.max(next.at_us));
        marks.push(Mark { at_us, ..next });
    }
    let old = marks.iter().rposition(|mark| mark.position <= snapshot).unwrap_or(0);
    marks.drain(..old);
    if marks.len() > MOST_MARKS {
        let mut number = 0;
        marks.retain(|_| {
            number += 1;
            number % 2 == 1 || number > MOST_MARKS / 2
        });
    }
    debug_assert!(marks.is_sorted_by(|a, b| a.position < b.position && a.at_us <= b.at_us));
    marks
}

/// The first position of which a manifest that names a capture has all that a state needs.
pub(crate) fn floor(
    keeps: bool,
    before: &Manifest,
    capture: &Capture,
    collected: &Set<Arc<str>>,
) -> u64 {
    if !keeps || !before.has_state() || capture.is_gap {
        return capture.position;
    }
    floor_without(before, collected)
}

/// The first position of which a manifest has all that a state needs, once some of what it has dropped is removed.
fn floor_without(before: &Manifest, collected: &Set<Arc<str>>) -> u64 {
    // What was dropped later is needed before that, and is not known any more.
    let gone = before.dropped.iter().filter(|dropped| collected.contains(&dropped.name));
    let gone = gone.filter(|dropped| dropped.file.is_some()).map(|dropped| dropped.position);
    before.floor.max(gone.max().unwrap_or(0))
}

/// Whether a capture takes the place of the log of a manifest, in part or whole.
pub(crate) fn is_replaced(before: &Manifest, capture: &Capture) -> bool {
    let snapshot = capture.snapshot.as_ref().map(|(at, _)| *at);
    let first = capture.chunks.first().map(|(start, ..)| *start);
    before.chunks.first().is_some_and(|chunk| Some(chunk.start) != first)
        || before.has_state() && snapshot != before.snapshot.map(|(at, _)| at)
}

/// The history that ends with a capture, and the name of its blob. `next` is the manifest of the capture, without
/// what was collected.
pub(crate) fn history(
    before: &Manifest,
    next: &Manifest,
    capture: &Capture,
    collected: &Set<Arc<str>>,
) -> (String, Manifest) {
    let mut pieces: SortedMap<u64, Vec<Piece>> = SortedMap::new();
    for chunk in &before.chunks {
        pieces.insert(chunk.start, chunk.pieces.clone());
    }
    let first = before.chunks.first().map_or(u64::MAX, |chunk| chunk.start);
    let first = if capture.is_gap { u64::MAX } else { first };
    let newer = capture.older.iter().chain(&capture.chunks).filter(|(start, ..)| *start >= first);
    for (start, entry, _) in newer {
        pieces.insert(*start, entry.meta().pieces.clone());
    }
    let (mut chunks, mut end) = (Vec::<Chunk>::new(), None);
    for (start, pieces) in pieces {
        let to = pieces.last().map_or(0, |last| last.to);
        // What was never here, because the history was not kept then.
        if end.is_some_and(|end| end != start) {
            break;
        }
        end = Some(nacre_log::position_at(start, to));
        chunks.push(Chunk { start, pieces });
    }
    let position = end.unwrap_or(before.position);
    invariant!(
        position >= before.position,
        "a history ends at {position}, and the manifest at {}",
        before.position
    );
    let (from, floor) = (first_of(before), floor_without(before, collected));
    invariant!(floor <= position, "a history ends at {position}, before its floor at {floor}");
    let mark = Mark { position, at_us: next.written_us };
    let history = Manifest {
        position,
        snapshot: before.snapshot,
        floor,
        chunks,
        dropped: next.dropped.iter().filter(|dropped| dropped.file.is_some()).cloned().collect(),
        marks: marks(before, 0, mark),
        ..next.clone()
    };
    (blob_name(next.writer, &format!("{HISTORY}{from:016x}-{position:016x}")), history)
}

/// A state of the past.
pub(crate) struct Past {
    /// The state, with the log up to the end of the last piece that is needed.
    pub manifest: Manifest,
    /// The log after this position does not belong to it.
    pub position: u64,
}

/// The manifest of a point in time. `read` reads a blob whole.
///
/// # Errors
/// `not_found` if it is not kept, any more or yet.
pub(crate) async fn past(
    read: impl AsyncFn(&str) -> Result<Vec<u8>>,
    newest: &Manifest,
    at: AsOf,
) -> Result<Past> {
    let position = position_at(&read, newest, at).await?;
    if position != u64::MAX && position > newest.position {
        return Err(Error::not_found(format!(
            "position {position} is not uploaded: the blobs reach position {}",
            newest.position
        )));
    }
    let position = position.min(newest.position);
    let base = match first_of(newest).max(newest.floor) <= position {
        true => newest.clone(),
        false => {
            let is_it =
                |(_, from, to): &&(&Dropped, u64, u64)| *from <= position && position <= *to;
            let all = histories(newest);
            let Some((dropped, ..)) = all.iter().find(is_it) else {
                return Err(not_kept(position, first_of(newest).max(newest.floor)));
            };
            Manifest::decode(&read(&dropped.name).await?)?
        }
    };
    if position < base.floor {
        return Err(not_kept(position, base.floor));
    }
    let (past, dropped) = cut(base, position);
    let kept = newest.kept();
    if past.manifest.names().iter().chain(&dropped).any(|name| !kept.contains(name)) {
        return Err(not_kept(position, first_of(newest).max(newest.floor)));
    }
    Ok(past)
}

fn not_kept(position: u64, first: u64) -> Error {
    Error::not_found(format!("the state at position {position} is not kept any more"))
        .with_hint(format!("all positions from {first} on are kept"))
}

/// The histories that are kept, with their positions, ascending.
fn histories(newest: &Manifest) -> Vec<(&Dropped, u64, u64)> {
    let kept = newest.dropped.iter().filter(|dropped| !newest.is_over(dropped));
    let mut all: Vec<_> = kept
        .filter_map(|dropped| {
            let (from, to) = positions_of(&dropped.name)?;
            Some((dropped, from, to))
        })
        .collect();
    all.sort_by_key(|(_, from, to)| (*to, *from));
    all
}

/// The position that a point in time has.
async fn position_at(
    read: &impl AsyncFn(&str) -> Result<Vec<u8>>,
    newest: &Manifest,
    at: AsOf,
) -> Result<u64> {
    let at_us = match at {
        AsOf::Position(position) => return Ok(position),
        AsOf::Time(at_us) => at_us,
    };
    let before = |manifest: &Manifest| {
        let mark = manifest.marks.iter().rfind(|mark| mark.at_us <= at_us);
        mark.map(|mark| mark.position)
    };
    if let Some(position) = before(newest) {
        return Ok(position);
    }
    for (dropped, ..) in histories(newest).iter().rev() {
        // It may have begun later, and has the last mark before it.
        if let Some(position) = before(&Manifest::decode(&read(&dropped.name).await?)?) {
            return Ok(position);
        }
    }
    Err(Error::not_found("the state at that time is not kept"))
}

/// The part of a manifest that belongs to a position, and the names of what it has of dropped blobs.
fn cut(base: Manifest, position: u64) -> (Past, Vec<String>) {
    let Manifest { dropped, mut chunks, mut files, .. } = base;
    let mut later: Vec<&Dropped> =
        dropped.iter().filter(|dropped| dropped.position > position).collect();
    later.sort_by_key(|dropped| dropped.file.map(|blob| blob.writer));
    let mut names = Vec::new();
    for dropped in later {
        let (Some(blob), Some((_, file))) = (dropped.file, dropped.name.split_once('/')) else {
            continue;
        };
        // Of two files of one name, the log names the one of the later writer, if any.
        if files.get(file).is_none_or(|known| known.writer < blob.writer) {
            files.insert(file.into(), blob);
        }
        names.push(dropped.name.to_string());
    }
    let first = chunks.first().map_or(0, |chunk| chunk.start);
    chunks.retain(|chunk| chunk.start < position || chunk.start == first);
    if let Some(last) = chunks.last_mut() {
        let end = nacre_log::HEADER_BYTES + position.saturating_sub(last.start);
        last.pieces.retain(|piece| piece.from < end);
    }
    let end = chunks.last().map_or(position, |chunk| {
        nacre_log::position_at(chunk.start, chunk.pieces.last().map_or(0, |last| last.to))
    });
    invariant!(end >= position, "the log of a history ends at {end}, before {position}");
    let manifest =
        Manifest { position: end, chunks, files, dropped: Vec::new(), marks: Vec::new(), ..base };
    (Past { manifest, position }, names)
}
