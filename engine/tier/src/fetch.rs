//! Reads of files whose bytes are not local, and fetches of their blocks.

use crate::ahead;
use crate::at_once::{AT_ONCE, at_once};
use crate::blocks::{SECTORS, Sectors, blocks_of, by_block, merged, sectors};
use crate::entry::Entry;
use crate::evict;
use crate::kept;
use crate::lease;
use crate::manifest::blob_name;
use crate::retry::retried;
use crate::shared::{Demanded, Pins, Shared, pins};
use nacre_host::{LocalFile, Missing, ReadRange, Resident, Result};
use nacre_types::{Error, ErrorKind, Reason};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most bytes of one request.
const REQUEST_BYTES: u64 = 4 << 20;

/// Blocks of a file that are fetched whole, if no more are needed: what is beside the bytes is often needed next.
const WHOLE: u64 = 3;

/// How often a run is asked for again because the disk was full.
const MOST_REFUSALS: u32 = 8;

/// The part of the blocks of a full disk that a request may take: one in this many.
const SHORTER: usize = 8;

/// Sectors between two runs that one request fetches along: they take less time than another request.
const GAP: u64 = 2;

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
pub(crate) fn absent(
    shared: &Arc<Shared>,
    entry: &Entry,
    ranges: &[Range<u64>],
) -> Vec<Range<u64>> {
    let size = shared.blocks().block_bytes();
    // What is said to be here is read without a request. A disk that cannot be read says so then.
    kept::verify(shared, entry, ranges.iter().flat_map(|range| blocks_of(range, size))).ok();
    let blocks = shared.blocks();
    let size = blocks.sector_bytes();
    let is_absent = |number: &u64| {
        let at = number % SECTORS;
        blocks.lacks((entry.id, number / SECTORS), sectors(at, at + 1)) != 0
    };
    let mut absent: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        for number in blocks_of(range, size).filter(is_absent) {
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
    let (size, sector) = {
        let blocks = shared.blocks();
        (blocks.block_bytes(), blocks.sector_bytes())
    };
    let mut needed: Vec<(u64, Sectors)> = Vec::new();
    for range in ranges.iter().filter(|range| !range.buffer.is_empty()) {
        let bytes = range.offset..range.offset + range.buffer.len() as u64;
        needed.extend(by_block(blocks_of(&bytes, sector)));
    }
    needed.sort_unstable();
    needed.dedup_by(|next, last| {
        last.1 |= if next.0 == last.0 { next.1 } else { 0 };
        next.0 == last.0
    });
    kept::verify(shared, entry, needed.iter().map(|(number, _)| *number))?;
    let mut pins = pins(shared, false);
    let mut blocks = shared.blocks();
    let mut held = Vec::with_capacity(needed.len());
    let mut absent: Vec<Range<u64>> = Vec::new();
    for (number, wanted) in needed {
        if let Some(at) = blocks.pin((entry.id, number), wanted) {
            pins.slots.push(at);
            held.push((number, at));
            continue;
        }
        let lacks = blocks.lacks((entry.id, number), wanted);
        for at in (0..SECTORS).filter(|at| lacks & sectors(*at, at + 1) != 0) {
            let start = number * size + at * sector;
            let end = (start + sector).min(len);
            match absent.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => absent.push(start..end),
            }
        }
    }
    // Before the pins are given back, which takes the lock.
    drop(blocks);
    if !absent.is_empty() {
        return Err(Error::not_resident(Missing { file: entry.name.clone(), ranges: absent }));
    }
    Ok((Held { blocks: held, _pins: pins }, shared.block_file()?, size))
}

/// Sectors of one file that a request may get at once.
struct Part {
    entry: Arc<Entry>,
    blob: String,
    len: u64,
    run: Range<u64>,
}

/// Fetches ranges of files that something waits for, several at a time, and keeps them until the result is dropped.
pub(crate) async fn fetch(shared: Arc<Shared>, missing: &[Missing]) -> Result<Resident> {
    let _demanded = Demanded::new(&shared);
    let parts = parts_of(&shared, missing)?;
    shared.reads.waits.fetch_add(u64::from(!parts.is_empty()), Ordering::Relaxed);
    let fetch = |part| fetch_part(&shared, part, false);
    Ok(Resident::new(at_once(parts.into_iter().map(fetch), AT_ONCE).await?))
}

/// Fetches ranges of files that nothing waits for, one after the other.
pub(crate) async fn warm(shared: &Arc<Shared>, missing: &[Missing]) -> Result<()> {
    for part in parts_of(shared, missing)? {
        // Its blocks stay until others take their place.
        fetch_part(shared, part, true).await?;
    }
    Ok(())
}

/// The requests that ranges of files need.
fn parts_of(shared: &Shared, missing: &[Missing]) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for Missing { file, ranges } in missing {
        let entry = shared.state().files.get(file).cloned();
        let Some(entry) = entry else {
            // A reader forgets what its manifest has not named for long; a writer has removed the file.
            match shared.is_read_only() {
                true => return Err(gone(shared, Error::not_found(&**file))),
                false => continue,
            }
        };
        // It may have become absent only after the read, never the other way round.
        let blob = entry.meta().blob;
        let Some(blob) = blob.filter(|_| !entry.meta().is_here) else { continue };
        let (size, sector) = {
            let blocks = shared.blocks();
            (blocks.block_bytes(), blocks.sector_bytes())
        };
        let most = (REQUEST_BYTES / sector).max(1);
        let within = |unit| {
            let ranges = ranges.iter().map(move |range| range.start..range.end.min(blob.len));
            ranges.map(move |range| blocks_of(&range, unit))
        };
        let mut runs = merged(within(size), 0);
        if runs.iter().map(|run| run.end - run.start).sum::<u64>() > WHOLE {
            runs = merged(within(sector), GAP);
        } else {
            let end = blob.len.div_ceil(sector);
            runs.iter_mut()
                .for_each(|run| *run = run.start * SECTORS..(run.end * SECTORS).min(end));
        }
        for run in runs {
            let mut from = run.start;
            while from < run.end {
                let run = from..run.end.min(from + most);
                from = run.end;
                let (entry, blob_name) = (entry.clone(), blob_name(blob.writer, file));
                parts.push(Part { entry, blob: blob_name, len: blob.len, run });
            }
        }
    }
    Ok(parts)
}

/// Fetches the absent sectors of a part, and pins the blocks of all.
async fn fetch_part(shared: &Arc<Shared>, part: Part, is_warming: bool) -> Result<Pins> {
    let Part { entry, blob, len, mut run } = part;
    let (mut held, mut refusals) = (pins(shared, false), 0);
    while run.start < run.end {
        ahead::advance(shared);
        let blocks = blocks_of(&run, SECTORS);
        let end = match ahead::flying(shared, entry.id, &blocks) {
            // It is there then, unless the request failed.
            Ok(flight) => {
                flight.landed(shared).await;
                blocks.start + 1
            }
            Err(end) => end,
        };
        let free = run.start..run.end.min(end * SECTORS);
        let fetched = fetch_run(shared, &mut held, (&entry, &blob, len), &free, is_warming).await;
        match fetched {
            // The disk was full, and something has left.
            Err(error) if error.reason() == Some(Reason::NoSpace) && refusals < MOST_REFUSALS => {
                let is_news = shared.blocks().note_full();
                let has_space = ahead::give_up(shared) || is_news || evict::make_space(shared);
                if !has_space {
                    return Err(error);
                }
                refusals += 1;
            }
            fetched => {
                run.start += fetched?;
                refusals = 0;
            }
        }
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

/// Pins the blocks of the first sectors of `wanted`: of a block that has them, or of a run of blocks that lack
/// them, which it fetches. Returns how many sectors they are.
///
/// # Errors
/// Nothing is pinned of them then.
async fn fetch_run(
    shared: &Arc<Shared>,
    held: &mut Pins,
    (entry, name, len): (&Entry, &str, u64),
    wanted: &Range<u64>,
    is_warming: bool,
) -> Result<u64> {
    kept::verify(shared, entry, blocks_of(wanted, SECTORS))?;
    let most = evict::make_room(shared);
    let mut pins = pins(shared, false);
    let (size, count) = {
        let mut blocks = shared.blocks();
        let mut count = 0;
        // On a full disk, a long run does not find space for all of its blocks at once.
        let longest = if blocks.is_full() { (most / SHORTER).max(1) } else { usize::MAX };
        for (number, sectors) in by_block(wanted.clone()).take(longest) {
            if count == 0
                && let Some(at) = blocks.pin((entry.id, number), sectors)
            {
                held.slots.push(at);
                return Ok(u64::from(sectors.count_ones()));
            }
            let Some(at) = blocks.reserve((entry.id, number), sectors, most) else { break };
            pins.slots.push(at);
            count += u64::from(sectors.count_ones());
        }
        (blocks.sector_bytes(), count)
    };
    let range = wanted.start * size..((wanted.start + count) * size).min(len);
    let (clock, entropy) = (&*shared.clock, &*shared.entropy);
    let patience_ns = shared.options.patience.as_nanos() as u64;
    let read = || {
        if !is_warming {
            shared.count_request();
        }
        shared.blobs.read(name, range.clone())
    };
    let bytes =
        retried(clock, entropy, patience_ns, read).await.map_err(|error| gone(shared, error))?;
    if bytes.len() as u64 != range.end - range.start {
        return Err(Error::corrupt(format!("{name}: {} bytes for {range:?}", bytes.len())));
    }
    if is_warming {
        shared.reads.bytes_warmed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    } else {
        shared.count_bytes(bytes.len());
    }
    kept::fill(shared, entry, &pins.slots, (range.start, len), &bytes)?;
    held.slots.append(&mut pins.slots);
    Ok(count)
}
