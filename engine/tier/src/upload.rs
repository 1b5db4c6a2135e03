//! Uploads, step by step: take a capture, write its blobs, some at a time, then the manifest, and remove what
//! nothing names any more.
//!
//! A step writes blobs beside each other, or one, and reads the manifest if the outcome of writing it is not known.
//! It may be dropped at any point: what is not noted as done is done again, with the same name and the same bytes.

use crate::apart;
use crate::capture::{self, Capture, Present, is_owed};
use crate::collect;
use crate::entry::{Entry, Kind};
use crate::evict;
use crate::history;
use crate::join;
use crate::manifest::{
    Blob, Chunk, Dropped, MANIFEST, Manifest, Mark, Origin, blob_name, piece_name,
};
use crate::parts::{self, Part};
use crate::retry::{backoff_ns, is_transient};
use crate::shared::{Shared, State};
use core::time::Duration;
use nacre_host::{Rest, Tag, WriteIf};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, ErrorKind, Reason, Result, invariant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rest of a caller that meets another one's step, in nanoseconds.
const BUSY_NS: u64 = 1_000_000;

/// Time until the disk is asked again to remove files that it has refused to, in nanoseconds.
const LEAVE_AGAIN_NS: u64 = 1_000_000_000;

/// What a step does.
enum Job {
    /// Takes a number, which was not possible when the store was opened.
    Join,
    /// Removes the local bytes of files that the engine has removed.
    Leave(Vec<Arc<Entry>>),
    /// Uploads parts of the capture, beside each other.
    Parts(Vec<Part>),
    /// Writes the history that ends with the capture.
    History,
    /// Replaces the manifest by one that names the capture.
    Manifest,
    /// Removes blobs that nothing needs.
    Collect(collect::Work),
}

/// The right to take a step.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Does the next piece of work, and says when to call again. A failure is kept, and the work retried later.
pub(crate) async fn step(shared: &Shared) -> Rest {
    invariant!(!shared.is_read_only(), "a database that only reads has nothing to upload");
    if shared.check_fence().is_err() {
        return Rest::UntilWoken;
    }
    if shared.is_stepping.swap(true, Ordering::AcqRel) {
        return Rest::For(Duration::from_nanos(BUSY_NS));
    }
    let _turn = Turn(&shared.is_stepping);
    let job = match next_job(shared) {
        Ok(job) => job,
        Err(_) if !evict::evict(shared) => return Rest::For(Duration::from_nanos(BUSY_NS)),
        Err(rest) => return rest,
    };
    let done = run(shared, job).await;
    let mut state = shared.state();
    if !state.is_apart {
        shared.unsent.store(state.unsent_bytes(), Ordering::Relaxed);
    }
    match done {
        Ok(()) => {
            (state.failures, state.retry_ns, state.last_error) = (0, 0, None);
            Rest::No
        }
        Err(error) => {
            let delay_ns = backoff_ns(state.failures, &*shared.entropy);
            state.failures += 1;
            state.retry_ns = shared.clock.monotonic_ns().saturating_add(delay_ns);
            let is_fenced = error.reason() == Some(Reason::Fenced);
            state.last_error = Some(error);
            if is_fenced { Rest::UntilWoken } else { Rest::For(Duration::from_nanos(delay_ns)) }
        }
    }
}

/// Takes steps without waiting for more, until a position of the log is uploaded; without one, until
/// nothing is left.
///
/// # Errors
/// `in_use` if another writer has the blobs; `unavailable`, or what the blob store says, if that takes longer than
/// the patience.
pub(crate) async fn finish(shared: &Shared, position: Option<u64>) -> Result<()> {
    let patience_ns = shared.options.patience.as_nanos() as u64;
    let until_ns = shared.clock.monotonic_ns().saturating_add(patience_ns);
    // The blob store may be back long before the next retry is due.
    shared.state().retry_now();
    loop {
        shared.check_fence()?;
        if shared.is_read_only() {
            return Ok(());
        }
        let is_done = match position {
            Some(position) => shared.state().remote.position >= position,
            None => is_done(shared),
        };
        // Another caller's step may have uploaded the last bytes, and not have evicted any yet.
        if is_done && (position.is_some() || evict::evict(shared)) {
            let mut state = shared.state();
            // Another caller's step may have taken what was hurried for: what comes next is not.
            state.is_hurried &= position.is_some();
            return state.damage.clone().map_or(Ok(()), Err);
        }
        shared.state().is_hurried |= !is_done;
        let rest_ns = match step(shared).await {
            Rest::No => continue,
            Rest::For(time) => time.as_nanos() as u64,
            Rest::UntilWoken => BUSY_NS,
        };
        let now_ns = shared.clock.monotonic_ns();
        if now_ns.saturating_add(rest_ns) > until_ns {
            let error = shared.state().last_error.clone();
            let away = || Error::new(ErrorKind::Unavailable, "the upload did not end");
            return Err(error.unwrap_or_else(away));
        }
        shared.clock.sleep_until(now_ns.saturating_add(rest_ns)).await;
    }
}

/// What is to be done now, or how long there is nothing.
fn next_job(shared: &Shared) -> std::result::Result<Job, Rest> {
    let now_ns = shared.clock.monotonic_ns();
    let mut state = shared.state();
    if now_ns < state.retry_ns {
        return Err(Rest::For(Duration::from_nanos(state.retry_ns - now_ns)));
    }
    if state.is_apart {
        // What stops it for good is not asked for again.
        return if state.damage.is_none() { Ok(Job::Join) } else { Err(Rest::UntilWoken) };
    }
    let leave_in_ns = match state.leaving.is_empty() {
        true => 0,
        false => state.leave_ns.saturating_sub(now_ns),
    };
    if leave_in_ns == 0 {
        let leaving = leaving(&mut state, shared.keeps_history());
        if !leaving.is_empty() {
            return Ok(Job::Leave(leaving));
        }
    }
    if state.capture.is_none() {
        let lag_ns = lag_ns(shared.options.lag, state.upload_ns);
        let due_ns = state.changed_ns.map(|changed_ns| changed_ns.saturating_add(lag_ns));
        let is_due = due_ns.is_some_and(|due_ns| due_ns <= now_ns || state.is_hurried);
        if is_due {
            let older_from = match shared.keeps_history() && !state.is_resumed {
                true => first_chunk(&state.remote),
                false => u64::MAX,
            };
            let State { files, leaving, syncs, .. } = &*state;
            let mut capture = Capture::take(&Present { files, leaving, older_from, syncs: *syncs });
            if let Some(capture) = &mut capture {
                let is_longer = capture.position > state.remote.position;
                capture.is_gap = state.is_resumed && is_longer && state.remote.has_state();
                state.is_resumed = false;
            }
            (state.changed_ns, state.is_hurried) = (None, false);
            if let Some(lost) = capture.as_ref().and_then(|capture| lost(capture, &state.remote)) {
                state.damage = Some(lost);
                return Err(Rest::UntilWoken);
            }
            state.capture = capture;
            state.taken_ns = now_ns;
        } else if let Some(work) = collect::next(shared, &state) {
            return Ok(Job::Collect(work));
        } else {
            let leave_in_ns = (leave_in_ns > 0).then_some(leave_in_ns);
            let due_in_ns = due_ns.map(|due_ns| due_ns - now_ns);
            return Err(match due_in_ns.into_iter().chain(leave_in_ns).min() {
                Some(rest_ns) => Rest::For(Duration::from_nanos(rest_ns)),
                None => Rest::UntilWoken,
            });
        }
    }
    let capture = state.capture.as_ref().ok_or(Rest::UntilWoken)?;
    Ok(match job_of(capture) {
        Job::Manifest if shared.keeps_history() && is_due(&state.remote, capture) => Job::History,
        job => job,
    })
}

/// How long the next upload is expected to take after one: as long, or as the longest before it, less a quarter for
/// each since.
fn expected_ns(before_ns: u64, took_ns: u64) -> u64 {
    let is_first = before_ns == u64::MAX;
    let decayed_ns = if is_first { 0 } else { before_ns - before_ns / 4 };
    took_ns.max(decayed_ns)
}

/// Time from a commit to the capture that has it: the upload ends within the lag if it takes a quarter of the lag, or
/// four times as long as expected, and not more than half of the lag.
fn lag_ns(lag: Duration, upload_ns: u64) -> u64 {
    let lag_ns = lag.as_nanos() as u64;
    lag_ns - upload_ns.saturating_mul(4).clamp(lag_ns / 4, lag_ns / 2)
}

/// Whether a history is to be written before a capture takes the place of what it has.
fn is_due(remote: &Manifest, capture: &Capture) -> bool {
    capture.history.is_none()
        && (capture.is_gap || history::is_replaced(remote, capture))
        && !plant::is(Bug::HistoryGap)
}

/// The error of a log that lacks what was uploaded of it.
fn lost(capture: &Capture, remote: &Manifest) -> Option<Error> {
    let (position, uploaded) = (capture.position, remote.position);
    (position < uploaded).then(|| {
        Error::corrupt(format!(
            "the local log ends at position {position}, and was uploaded to position {uploaded}"
        ))
        .with_hint("open the database with an empty folder")
    })
}

/// The next piece of work for a capture.
fn job_of(capture: &Capture) -> Job {
    if plant::is(Bug::UploadOrder) && capture.position.is_multiple_of(3) {
        return Job::Manifest;
    }
    let parts = parts::missing(capture);
    if parts.is_empty() { Job::Manifest } else { Job::Parts(parts) }
}

/// Start of the first chunk of a manifest.
fn first_chunk(remote: &Manifest) -> u64 {
    remote.chunks.first().map_or(0, |chunk| chunk.start)
}

/// Whether a capture needs the local bytes of a file. The first manifest names the database, which the first chunk
/// tells ([`database_of`]).
fn is_needed(capture: Option<&Capture>, remote: &Manifest, entry: &Arc<Entry>) -> bool {
    let Some(capture) = capture else { return false };
    let is_first = |(_, first, _): &(u64, Arc<Entry>, u64)| Arc::ptr_eq(first, entry);
    capture.needs(entry) || remote.database == 0 && capture.chunks.first().is_some_and(is_first)
}

/// Takes the removed files that no capture needs any more.
fn leaving(state: &mut State, keeps_history: bool) -> Vec<Arc<Entry>> {
    let State { leaving, capture, remote, .. } = state;
    let is_kept = |entry: &Arc<Entry>| match entry.kind {
        Kind::Chunk(start) => start >= first_chunk(remote),
        _ => true,
    };
    let stays = |entry: &Arc<Entry>| {
        is_needed(capture.as_ref(), remote, entry)
            || keeps_history && is_owed(entry) && is_kept(entry)
    };
    leaving.extract_if(.., |entry| !stays(entry)).collect()
}

async fn run(shared: &Shared, job: Job) -> Result<()> {
    match job {
        Job::Join => Box::pin(join::join(shared)).await,
        Job::Leave(entries) => {
            let now_ns = shared.clock.monotonic_ns();
            for entry in entries {
                let rest_ns = match entry.leave(&*shared.local) {
                    Ok(true) => continue,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Ok(false) => BUSY_NS,
                    // The disk refuses it. Uploads go on meanwhile.
                    Err(_) => LEAVE_AGAIN_NS,
                };
                let mut state = shared.state();
                state.leaving.push(entry);
                state.leave_ns = state.leave_ns.max(now_ns.saturating_add(rest_ns));
            }
            Ok(())
        }
        Job::Parts(parts) => parts::upload(shared, parts).await,
        Job::History => Box::pin(write_history(shared)).await,
        Job::Manifest => replace_manifest(shared).await,
        Job::Collect(work) => {
            collect::run(shared, work).await;
            Ok(())
        }
    }
}

/// Writes the history that ends with the capture.
async fn write_history(shared: &Shared) -> Result<()> {
    let database = database_of(shared)?;
    let (name, bytes) = {
        let state = shared.state();
        let Some(capture) = &state.capture else { return Ok(()) };
        let next = manifest_of(shared, &state, capture, database);
        let (name, history) = history::history(&state.remote, &next, capture, &state.collected);
        (name, history.encode())
    };
    shared.blobs.write(&name, bytes.into(), WriteIf::Any).await?;
    if let Some(capture) = &mut shared.state().capture {
        capture.history = Some(name.into());
    }
    Ok(())
}

/// Writes a manifest that names the capture, if the newest one is still this writer's.
///
/// # Errors
/// `in_use` with [`Reason::Fenced`] if it is not.
async fn replace_manifest(shared: &Shared) -> Result<()> {
    let database = database_of(shared)?;
    let (next, when) = {
        let mut state = shared.state();
        state.sequence += 1;
        let Some(capture) = &state.capture else { return Ok(()) };
        let next = manifest_of(shared, &state, capture, database);
        (next, state.tag.clone().map_or(WriteIf::Absent, WriteIf::Tagged))
    };
    let written = shared.blobs.write(MANIFEST, next.encode().into(), when).await;
    match written {
        Ok(tag) => accept(shared, next, tag, true),
        Err(error) if error.kind() == ErrorKind::Conflict || is_transient(&error) => {
            // The answer may have been lost.
            let (bytes, tag) = shared.blobs.read_all(MANIFEST).await.map_err(|second| {
                if second.kind() == ErrorKind::NotFound { error.clone() } else { second }
            })?;
            let found = match Manifest::decode(&bytes) {
                // One of a newer version is not this build's.
                Err(newer) if newer.kind() == ErrorKind::Unsupported => None,
                found => Some(found?),
            };
            if let Some(found) = found.filter(|found| found.token == shared.token()) {
                let is_this = found == next;
                accept(shared, found, tag, is_this);
                // After a conflict with an earlier write of its own, it goes on at once.
                let is_away = !is_this && is_transient(&error);
                return if is_away { Err(error) } else { Ok(()) };
            }
            if plant::is(Bug::FenceLate) {
                shared.state().tag = Some(tag);
                return Err(error);
            }
            join::stop(shared);
            return Err(Error::fenced());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Notes what the blob store has now. If it names the capture, that is done.
fn accept(shared: &Shared, manifest: Manifest, tag: Tag, is_done: bool) {
    {
        let mut state = shared.state();
        invariant!(
            manifest.token == shared.token() && manifest.sequence <= state.sequence,
            "the manifest {} of another writer is taken for one's own",
            manifest.sequence
        );
        if is_done {
            state.capture = None;
            let took_ns = shared.clock.monotonic_ns().saturating_sub(state.taken_ns);
            state.upload_ns = expected_ns(state.upload_ns, took_ns);
        }
        state.collected.retain(|name| manifest.dropped.iter().any(|left| left.name == *name));
        // Before anything leaves because of it. A failure: the blob store must be asked when it is opened.
        let _ = apart::note(shared, &manifest);
        (state.remote, state.tag) = (manifest, Some(tag));
    }
    evict::evict(shared);
}

/// The identity of the database, from its log.
fn database_of(shared: &Shared) -> Result<u64> {
    let (known, chunk) = {
        let state = shared.state();
        let chunk = state.capture.as_ref().and_then(|capture| capture.chunks.first().cloned());
        (state.remote.database, chunk)
    };
    match (known, chunk) {
        (0, Some((_, entry, _))) => {
            let head = shared.read_local(&entry, 0, nacre_log::HEADER_BYTES)?;
            nacre_log::database_of(&head, &entry.name)
        }
        (known, _) => Ok(known),
    }
}

/// The manifest that names a capture whose bytes are all uploaded.
fn manifest_of(shared: &Shared, state: &State, capture: &Capture, database: u64) -> Manifest {
    let before = &state.remote;
    // Times do not go back, though a clock may.
    let now_us = shared.clock.wall_us().max(before.written_us);
    let blob_of = |entry: &Arc<Entry>, is_named| {
        let meta = entry.meta();
        let nothing = Blob { writer: shared.writer(), len: meta.written, checksum: 0, is_named };
        invariant!(
            meta.blob.is_some() || plant::is(Bug::UploadOrder),
            "{} is named before it is uploaded",
            entry.name
        );
        Blob { is_named, ..meta.blob.unwrap_or(nothing) }
    };
    let mut next = Manifest {
        database,
        writer: shared.writer(),
        token: shared.token(),
        folder: state.remote.folder,
        sequence: state.sequence,
        written_us: now_us,
        position: capture.position,
        snapshot: capture.snapshot.as_ref().map(|(at, entry)| (*at, blob_of(entry, true))),
        chunks: Vec::new(),
        files: SortedMap::new(),
        dropped: before.dropped.clone(),
        horizon_us: collect::horizon_us(shared, before, now_us),
        floor: history::floor(shared.keeps_history(), before, capture, &state.collected),
        marks: match shared.keeps_history() {
            true => {
                let snapshot = capture.snapshot.as_ref().map_or(0, |(at, _)| *at);
                let mark = Mark { position: capture.position, at_us: now_us };
                history::marks(before, snapshot, mark)
            }
            false => Vec::new(),
        },
        origins: {
            let is_left = |origin: &&Origin| !state.collecting.is_released(origin);
            before.origins.iter().filter(is_left).cloned().collect()
        },
        branch: before.branch,
    };
    for (entry, is_named) in &capture.files {
        next.files.insert(entry.name.clone(), blob_of(entry, *is_named));
    }
    for (start, entry, end) in &capture.chunks {
        let pieces = entry.meta().pieces.clone();
        invariant!(
            pieces.last().is_some_and(|last| last.to == *end) || plant::is(Bug::UploadOrder),
            "the chunk at {start} is named to {end}, before it is uploaded"
        );
        next.chunks.push(Chunk { start: *start, pieces });
    }
    if plant::is(Bug::StaleManifest) && !state.remote.files.is_empty() {
        next.files = state.remote.files.clone();
    }
    let names = next.names();
    next.dropped.retain(|dropped| {
        !state.collected.contains(&dropped.name) && !names.contains(&*dropped.name)
    });
    let since_us = now_us.max(before.horizon_us.saturating_add(1));
    let position = capture.position;
    // Older states need them, and no manifest has named them.
    for entry in &capture.gone {
        let file = blob_of(entry, true);
        let name = blob_name(file.writer, &entry.name).into();
        next.dropped.push(Dropped { name, since_us, position, file: Some(file) });
    }
    let named = before.names();
    for (start, entry, _) in &capture.older {
        let pieces = entry.meta().pieces.clone();
        let new = pieces.iter().map(|piece| piece_name(*start, piece));
        next.dropped.extend(new.filter(|name| !named.contains(name)).map(|name| Dropped {
            name: name.into(),
            since_us,
            position,
            file: None,
        }));
    }
    if let Some(name) = capture.history.clone() {
        next.dropped.push(Dropped { name, since_us, position, file: None });
    }
    let gone = named.into_iter().filter(|name| !names.contains(name));
    next.dropped.extend(gone.map(|name| {
        let file = before.file_of(&name);
        Dropped { name: name.into(), since_us, position, file }
    }));
    // A manifest that was given up may have taken effect, and names some of them already.
    let mut known = Set::default();
    next.dropped.retain(|dropped| known.insert(dropped.name.clone()));
    next
}

/// Whether everything that was durable when this is called is in a manifest.
fn is_done(shared: &Shared) -> bool {
    let state = shared.state();
    state.capture.is_none() && state.changed_ns.is_none() && !state.is_apart
}

/// Notes that a chunk is durable to its end: another one comes after it.
fn note_end(state: &State, start: u64, entry: &Entry) {
    let mut chunks = state.files.values().filter_map(|entry| match entry.kind {
        Kind::Chunk(other) => Some(other),
        _ => None,
    });
    if let Some(next) = chunks.find(|other| *other > start) {
        let mut meta = entry.meta();
        meta.synced = meta.synced.max(nacre_log::HEADER_BYTES + (next - start));
    }
}

/// Removes a file for the engine; its local bytes stay while a capture needs them.
///
/// # Errors
/// `not_found`; those of the host's files, after which it is not removed.
pub(crate) fn remove(shared: &Shared, name: &str) -> Result<()> {
    let (entry, is_needed, is_here) = {
        let mut state = shared.state();
        let Some(entry) = state.files.get(name).cloned() else {
            return Err(Error::not_found(format!("file {name} does not exist")));
        };
        if let Kind::Chunk(start) = entry.kind {
            note_end(&state, start, &entry);
        }
        let is_owed = shared.keeps_history() && capture::is_owed(&entry);
        let is_needed = is_needed(state.capture.as_ref(), &state.remote, &entry) || is_owed;
        if is_owed {
            shared.note_change(&mut state);
        }
        let is_here = {
            let mut meta = entry.meta();
            meta.is_removed = true;
            meta.is_here
        };
        if is_needed || !is_here {
            state.files.remove(name);
        }
        if is_needed {
            state.leaving.push(entry.clone());
        }
        (entry, is_needed, is_here)
    };
    if !is_needed && is_here {
        let removed = shared.local.remove(name);
        if removed.as_ref().is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            entry.meta().is_removed = false;
            return removed;
        }
        shared.state().files.remove(name);
        removed?;
    }
    if entry.kind == Kind::Data {
        shared.blocks().forget(entry.id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_begins_in_time_to_end_within_the_lag() {
        let (second, ms) = (Duration::from_secs(1), 1_000_000);
        assert_eq!(lag_ns(second, 0), 750 * ms, "a first one of many files may follow one of few");
        assert_eq!(lag_ns(second, 80 * ms), 680 * ms);
        assert_eq!(lag_ns(second, u64::MAX), 500 * ms, "at least half of it");
        assert_eq!(lag_ns(Duration::ZERO, 100 * ms), 0);
        // After a long upload short ones make it late again, one by one.
        assert_eq!(expected_ns(u64::MAX, 100 * ms), 100 * ms, "the first");
        assert_eq!(expected_ns(100 * ms, 400 * ms), 400 * ms);
        assert_eq!(expected_ns(400 * ms, 100 * ms), 300 * ms);
        assert_eq!(expected_ns(100 * ms, 100 * ms), 100 * ms);
    }
}
