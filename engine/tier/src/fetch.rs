//! Reads of files whose bytes are not local, and fetches of their blocks.

use crate::ahead;
use crate::at_once::{AT_ONCE, at_once};
use crate::blocks::{blocks_of, merged};
use crate::entry::Entry;
use crate::evict;
use crate::lease;
use crate::manifest::blob_name;
use crate::retry::retried;
use crate::shared::{Pins, Shared, pins};
use nacre_host::{LocalFile, Missing, ReadRange, Resident, Result};
use nacre_types::{Error, ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most bytes of one request.
const REQUEST_BYTES: u64 = 4 << 20;

/// Reads ranges of a file from its blocks.
///
/// # Errors
/// The absent bytes, and then nothing is read; `corrupt` past the end.
pub(crate) fn read(
    shared: &Arc<Shared>,
    entry: &Entry,
    ranges: &mut [ReadRange<'_>],
) -> Result<()> {
    let len = entry.meta().blob.map_or(0, |blob| blob.len);
    let end = |range: &ReadRange<'_>| range.offset.saturating_add(range.buffer.len() as u64);
    if let Some(range) = ranges.iter().find(|range| end(range) > len) {
        let (name, at) = (&entry.name, range.offset);
        return Err(Error::corrupt(format!("{name}: read past the end at byte {at}")));
    }
    ahead::advance(shared);
    let (held, file, size) = hold(shared, entry, ranges, len)?;
    shared.reads.hits.fetch_add(1, Ordering::Relaxed);
    for range in ranges {
        let mut at = 0;
        while at < range.buffer.len() {
            let from = range.offset + at as u64;
            let (block, skip) = (from / size, from % size);
            let count = (range.buffer.len() - at).min((size - skip) as usize);
            let slot = held.blocks.binary_search_by_key(&block, |(number, _)| *number);
            let Some((_, slot)) = slot.ok().and_then(|found| held.blocks.get(found)) else {
                return Err(Error::io(format!("{}: block {block} is not held", entry.name)));
            };
            let buffer = &mut range.buffer[at..at + count];
            file.read(&mut [ReadRange { offset: *slot as u64 * size + skip, buffer }])?;
            at += count;
        }
    }
    Ok(())
}

/// The parts of ranges of a file that no block has.
pub(crate) fn absent(shared: &Shared, entry: &Entry, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let blocks = shared.blocks();
    let size = blocks.block_bytes();
    let mut absent: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        for number in blocks_of(range, size).filter(|number| !blocks.is_there((entry.id, *number)))
        {
            let part = range.start.max(number * size)..range.end.min((number + 1) * size);
            match absent.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => absent.push(part),
            }
        }
    }
    debug_assert!(
        absent.iter().map(|range| range.end - range.start).sum::<u64>()
            <= ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum(),
        "more of {} is absent than was asked for",
        entry.name
    );
    absent
}

/// Blocks of one file that a read holds.
struct Held {
    /// Numbers, ascending, and their slots.
    blocks: Vec<(u64, usize)>,
    _pins: Pins,
}

/// Pins the blocks that a read needs.
fn hold(
    shared: &Arc<Shared>,
    entry: &Entry,
    ranges: &[ReadRange<'_>],
    len: u64,
) -> Result<(Held, Arc<dyn LocalFile>, u64)> {
    let mut pins = pins(shared, false);
    let mut blocks = shared.blocks();
    let size = blocks.block_bytes();
    let mut numbers: Vec<u64> = Vec::new();
    for range in ranges.iter().filter(|range| !range.buffer.is_empty()) {
        numbers.extend(blocks_of(&(range.offset..range.offset + range.buffer.len() as u64), size));
    }
    numbers.sort_unstable();
    numbers.dedup();
    let mut held = Vec::with_capacity(numbers.len());
    let mut absent: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        if let Some(at) = blocks.pin((entry.id, number)) {
            pins.slots.push(at);
            held.push((number, at));
            continue;
        }
        let bytes = number * size..((number + 1) * size).min(len);
        match absent.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            _ => absent.push(bytes),
        }
    }
    // Before the pins are given back, which takes the lock.
    drop(blocks);
    if !absent.is_empty() {
        return Err(Error::not_resident(Missing { file: entry.name.clone(), ranges: absent }));
    }
    Ok((Held { blocks: held, _pins: pins }, shared.block_file()?, size))
}

/// Blocks of one file that a request may get at once.
struct Part {
    entry: Arc<Entry>,
    blob: String,
    len: u64,
    blocks: Range<u64>,
}

/// Fetches ranges of files, several at a time, and keeps them until the result is dropped.
pub(crate) async fn fetch(shared: Arc<Shared>, missing: &[Missing]) -> Result<Resident> {
    let mut parts = Vec::new();
    for Missing { file, ranges } in missing {
        let entry = shared.state().files.get(file).cloned();
        let Some(entry) = entry else { continue };
        // It may have become absent only after the read, never the other way round.
        let blob = entry.meta().blob;
        let Some(blob) = blob.filter(|_| !entry.meta().is_here) else { continue };
        let size = shared.blocks().block_bytes();
        let most = (REQUEST_BYTES / size).max(1);
        for blocks in merged(
            ranges.iter().map(|range| blocks_of(&(range.start..range.end.min(blob.len)), size)),
        ) {
            let mut from = blocks.start;
            while from < blocks.end {
                let blocks = from..blocks.end.min(from + most);
                from = blocks.end;
                let (entry, blob_name) = (entry.clone(), blob_name(blob.writer, file));
                parts.push(Part { entry, blob: blob_name, len: blob.len, blocks });
            }
        }
    }
    shared.reads.waits.fetch_add(u64::from(!parts.is_empty()), Ordering::Relaxed);
    let fetched = at_once(parts.into_iter().map(|part| fetch_part(&shared, part)), AT_ONCE).await?;
    Ok(Resident::new(fetched))
}

/// Fetches the absent blocks of a part, and pins all.
async fn fetch_part(shared: &Arc<Shared>, part: Part) -> Result<Pins> {
    let Part { entry, blob, len, mut blocks } = part;
    let mut held = pins(shared, false);
    while blocks.start < blocks.end {
        ahead::advance(shared);
        let free = match ahead::flying(shared, entry.id, &blocks) {
            // It is there then, unless the request failed.
            Ok(flight) => {
                flight.landed(shared).await;
                blocks.start..blocks.start + 1
            }
            Err(end) => blocks.start..end,
        };
        blocks.start += fetch_run(shared, &mut held, (&entry, &blob, len), &free).await?;
    }
    Ok(held)
}

/// The error of a blob that is not there: its writer keeps what readers may see for some time only.
pub(crate) fn gone(shared: &Shared, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound if shared.is_read_only() => lease::gone(shared, &error),
        ErrorKind::NotFound => Error::corrupt(format!("a blob is missing: {}", error.message())),
        _ => error,
    }
}

/// Pins the first blocks of `wanted`: one that is there, or a run of absent ones, which it fetches. Returns how
/// many they are.
async fn fetch_run(
    shared: &Arc<Shared>,
    held: &mut Pins,
    (entry, name, len): (&Entry, &str, u64),
    wanted: &Range<u64>,
) -> Result<u64> {
    let most = evict::make_room(shared);
    let mut pins = pins(shared, false);
    let size = {
        let mut blocks = shared.blocks();
        if let Some(at) = blocks.pin((entry.id, wanted.start)) {
            held.slots.push(at);
            return Ok(1);
        }
        let size = blocks.block_bytes();
        for number in wanted.clone() {
            match blocks.reserve((entry.id, number), most) {
                Some(at) => pins.slots.push(at),
                None => break,
            }
        }
        size
    };
    let count = pins.slots.len() as u64;
    let range = wanted.start * size..((wanted.start + count) * size).min(len);
    let (clock, entropy) = (&*shared.clock, &*shared.entropy);
    let patience_ns = shared.options.patience.as_nanos() as u64;
    let read = || {
        shared.count_request();
        shared.blobs.read(name, range.clone())
    };
    let bytes =
        retried(clock, entropy, patience_ns, read).await.map_err(|error| gone(shared, error))?;
    if bytes.len() as u64 != range.end - range.start {
        return Err(Error::corrupt(format!("{name}: {} bytes for {range:?}", bytes.len())));
    }
    shared.count_bytes(bytes.len(), false);
    shared.fill(&pins.slots, &bytes)?;
    held.slots.append(&mut pins.slots);
    Ok(count)
}
