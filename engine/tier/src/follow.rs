//! A store that only reads follows the writer: it takes the newest manifest, downloads what the log has grown
//! by, and knows the files that the manifest names. A log reader above then goes on.
//!
//! Invariants:
//! - The local log is a part of the one of the writer, without a gap, from a snapshot or from where it was
//!   before to the position of a manifest; between a call that failed and the next one it may end earlier.
//! - A file that a manifest has named stays known until its blob may have been removed.
//!
//! Deliberately absent: when a reader looks again, and that only one call is in progress (its caller's part).

use crate::attach::{Attach, away};
use crate::entry::{Kind, Meta};
use crate::manifest::{Chunk, Manifest, blob_name, piece_name};
use crate::shared::{Shared, Unnamed};
use core::time::Duration;
use nacre_host::{ErrorKind, Lag, LeaseState, LocalFile, Tag};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, invariant};
use std::sync::{Arc, Mutex};

/// Takes what the blobs have, for a reader of the log that stands at a position. Returns whether they have a
/// newer state than before.
///
/// # Errors
/// `unavailable`; `corrupt` if a blob is not what the manifest names, or the blobs are those of another database.
/// What was known before can be read as before, and the next call goes on.
pub(crate) async fn advance(shared: &Arc<Shared>, from: u64) -> Result<bool> {
    invariant!(shared.is_read_only(), "a writer follows another one");
    let Some((next, tag)) = Attach::of(shared).newest().await? else {
        return Err(Error::corrupt("the manifest is missing"));
    };
    let (before, is_same) = {
        let state = shared.state();
        (state.remote.clone(), state.tag.as_ref() == Some(&tag))
    };
    let order = |manifest: &Manifest| (manifest.writer, manifest.sequence);
    // An answer may be older than the one before.
    if is_same || order(&next) <= order(&before) {
        shared.state().looked_ns = shared.clock.monotonic_ns();
        return Ok(false);
    }
    if next.database != before.database {
        return Err(Error::corrupt("the blobs hold another database now"));
    }
    if next.position < before.position {
        let (position, known) = (next.position, before.position);
        return Err(Error::corrupt(format!(
            "the log in the blobs ends at position {position}, and ended at {known}"
        )));
    }
    know_files(shared, &next);
    fetch_log(shared, &next, from).await?;
    accept(shared, next, tag);
    Ok(true)
}

/// How far a reader is behind, as far as it knows.
pub(crate) fn lag(shared: &Shared) -> Lag {
    let state = shared.state();
    let now_ns = shared.clock.monotonic_ns();
    let failure = state.damage.as_ref().or(state.last_error.as_ref());
    let looked_ns = if shared.is_read_only() { state.looked_ns } else { now_ns };
    debug_assert!(looked_ns <= now_ns, "it looks at {looked_ns}, and it is {now_ns}");
    Lag {
        position: state.remote.position,
        written_us: state.remote.written_us,
        since_looked: Duration::from_nanos(now_ns.saturating_sub(looked_ns)),
        lease: state.leasing.state(&*shared.clock),
        failure: failure.map(|error| error.message().to_string()),
    }
}

/// Notes the files that a manifest names, before the log that names them is there.
fn know_files(shared: &Shared, next: &Manifest) {
    let now_us = shared.clock.wall_us();
    let mut state = shared.state();
    for (name, blob) in next.files.iter() {
        state.unnamed.remove(name);
        // A writer that has lost track of an upload repeats it: the same bytes, as a blob of its own.
        let is_known = state.files.get(name).is_some_and(|entry| {
            let mut meta = entry.meta();
            let is_same = meta
                .blob
                .is_some_and(|known| (known.len, known.checksum) == (blob.len, blob.checksum));
            if is_same {
                meta.blob = Some(*blob);
            }
            is_same
        });
        if !is_known {
            // One that the log did not name may have been replaced by another.
            state.add(name, away(*blob));
        }
    }
    let retention_us = i64::try_from(shared.options.retention.as_micros()).unwrap_or(i64::MAX);
    let is_held = state.leasing.state(&*shared.clock) == LeaseState::Held;
    let needs = state.leasing.needs.unwrap_or(u64::MAX);
    let is_unnamed =
        |name: &&Arc<str>| Kind::of(name) == Kind::Data && !next.files.contains_key(&***name);
    let unnamed: Vec<Arc<str>> = state.files.keys().filter(is_unnamed).cloned().collect();
    for name in unnamed {
        let since = Unnamed { since_us: now_us, position: next.position };
        let since = *state.unnamed.or_insert_with(name.clone(), || since);
        let is_read = is_held && needs < since.position;
        if since.since_us.saturating_add(retention_us) < now_us && !is_read {
            state.unnamed.remove(&name);
            if let Some(entry) = state.files.remove(&name) {
                shared.blocks().forget(entry.id);
            }
        }
    }
}

/// Downloads what the log of a manifest has beyond the local one.
async fn fetch_log(shared: &Arc<Shared>, next: &Manifest, from: u64) -> Result<()> {
    let first = next.chunks.first().map_or(u64::MAX, |chunk| chunk.start);
    if first > from && !plant::is(Bug::FollowGap) {
        // The reader must begin again with the snapshot, without which there is nothing to begin with.
        let Some((at, blob)) = next.snapshot else {
            return Err(Error::corrupt("the manifest has neither the whole log nor a snapshot"));
        };
        let name = nacre_log::snapshot_name(at);
        // One that was not fetched to its end is fetched again.
        forget(shared, &name)?;
        let file = shared.local.create(&name)?;
        let write = |offset, bytes: &[u8]| file.write(offset, bytes);
        let source = blob_name(blob.writer, &name);
        Attach::of(shared).copy(&source, blob.len, blob.checksum, &write).await?;
        file.sync()?;
        let (written, synced) = (blob.len, blob.len);
        let blob = Some(blob);
        let meta = Meta { is_here: true, written, synced, is_named: true, blob, ..Meta::default() };
        shared.state().add(&name, meta);
    }
    for chunk in &next.chunks {
        fetch_chunk(shared, chunk).await?;
    }
    Ok(())
}

/// Downloads what a chunk has beyond its local file.
async fn fetch_chunk(shared: &Arc<Shared>, chunk: &Chunk) -> Result<()> {
    let name = nacre_log::chunk_name(chunk.start);
    let known = shared.state().files.get(&*name).cloned();
    let entry = match known {
        Some(entry) => entry,
        None => {
            // It may be there, if the call before was given up in between.
            match shared.local.create(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => drop(created?),
            }
            shared.state().add(&name, Meta { is_here: true, ..Meta::default() })
        }
    };
    let handle = entry.open(&*shared.local)?;
    let file: Arc<dyn LocalFile> = match &*handle.file() {
        Some(file) => file.clone(),
        None => return Err(Error::io(format!("{name} is not on the local disk"))),
    };
    for piece in &chunk.pieces {
        let have = entry.meta().written;
        if piece.to <= have {
            continue;
        }
        invariant!(piece.from <= have, "{name}: {have} bytes, and a piece from {}", piece.from);
        // The piece is verified as a whole, before anything reads it.
        let bytes = Mutex::new(Vec::with_capacity((piece.to - piece.from) as usize));
        let keep = |at: u64, part: &[u8]| {
            let mut bytes = bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            bytes.truncate(at as usize);
            bytes.extend_from_slice(part);
            Ok(())
        };
        let source = piece_name(chunk.start, piece);
        let len = piece.to - piece.from;
        Attach::of(shared).copy(&source, len, piece.checksum, &keep).await?;
        let bytes = bytes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let new = bytes.get((have - piece.from) as usize..).unwrap_or_default();
        file.write(have, new)?;
        let mut meta = entry.meta();
        (meta.written, meta.synced) = (piece.to, piece.to);
    }
    entry.meta().pieces.clone_from(&chunk.pieces);
    Ok(())
}

/// Notes what the blob store has now, once the local log has it, and forgets the log before.
fn accept(shared: &Shared, next: Manifest, tag: Tag) {
    let names: Vec<Arc<str>> = shared.state().files.keys().cloned().collect();
    for name in names {
        let is_old = match Kind::of(&name) {
            Kind::Chunk(start) => next.chunks.first().is_some_and(|first| start < first.start),
            Kind::Snapshot(at) => next.snapshot.is_some_and(|(newest, _)| at < newest),
            Kind::Data | Kind::Local => false,
        };
        if is_old {
            // What stays takes room, and is not read again.
            forget(shared, &name).ok();
        }
    }
    let mut state = shared.state();
    debug_assert!(state.remote.position <= next.position, "the log becomes shorter");
    state.looked_ns = shared.clock.monotonic_ns();
    (state.remote, state.tag) = (next, Some(tag));
    // What it shows now is there.
    state.leasing.hurry(&*shared.clock);
    drop(state);
    shared.call_soon();
}

/// Removes a file of the log.
fn forget(shared: &Shared, name: &str) -> Result<()> {
    shared.state().files.remove(name);
    match shared.local.remove(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
