//! Reads ahead of scans: requests that go on while the scan computes.
//!
//! A [`Flight`] is a request for a run of absent blocks. Its slots are taken when it is planned and belong to it
//! until its guard is dropped or the disk is full, a quarter of all slots at most; so blocks that were read ahead
//! neither displace each other, nor what is read again. A fetch of one of its blocks waits for it instead of
//! asking again. If it fails, the fetch asks itself. It is dropped with the last scan or fetch that waits for it,
//! which gives up its request.
//!
//! Nothing here runs by itself: each read of an absent file, and each fetch, looks at the requests whose
//! answers have come, and begins the next ones.

use crate::at_once::AT_ONCE;
use crate::blocks::{blocks_of, merged};
use crate::entry::Entry;
use crate::evict;
use crate::kept;
use crate::manifest::blob_name;
use crate::shared::{Flight, Pins, Shared, Signal, Stage, locked, pins};
use nacre_host::{Ahead, Resident, Result};
use nacre_types::plant::{self, Bug};
use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// Most bytes of a request.
const REQUEST_BYTES: u64 = 4 << 20;

/// Plans requests for the absent blocks of ranges of a file, and begins as many as may be in progress.
pub(crate) fn begin(shared: &Arc<Shared>, entry: &Arc<Entry>, ranges: &[Range<u64>]) -> Ahead {
    let Some(blob) = entry.meta().blob else { return Ahead::Nothing };
    let most = evict::most_slots(shared);
    let mut planned: Vec<Arc<Flight>> = Vec::new();
    let mut held = pins(shared, true);
    let mut blocks = shared.blocks();
    let size = blocks.block_bytes();
    let within = |range: &Range<u64>| blocks_of(&(range.start..range.end.min(blob.len)), size);
    let wanted = merged(ranges.iter().map(within), 0);
    let mut plan = |held: &mut Pins, end: u64| {
        let count = held.slots.len() as u64;
        if count > 0 {
            let run = end - count..end;
            planned.push(Arc::new(Flight {
                entry: entry.clone(),
                range: run.start * size..(run.end * size).min(blob.len),
                len: blob.len,
                blocks: run,
                blob: blob_name(blob.writer, &entry.name),
                pins: Mutex::new(std::mem::replace(held, pins(shared, true))),
                stage: Mutex::new(Stage::Planned),
                signal: Arc::new(Signal { is_due: AtomicBool::new(true), ..Signal::default() }),
            }));
        }
    };
    let mut is_full = false;
    for run in wanted {
        for number in run.clone() {
            if blocks.has((entry.id, number)) {
                plan(&mut held, number);
                continue;
            }
            let Some(at) = blocks.reserve_ahead((entry.id, number), most) else {
                plan(&mut held, number);
                is_full = true;
                break;
            };
            held.slots.push(at);
            if held.slots.len() as u64 * size >= REQUEST_BYTES {
                plan(&mut held, number + 1);
            }
        }
        if is_full {
            break;
        }
        plan(&mut held, run.end);
    }
    drop(blocks);
    debug_assert!(held.slots.is_empty(), "blocks are taken and no request is planned");
    if planned.is_empty() {
        return if is_full { Ahead::NoRoom } else { Ahead::Nothing };
    }
    locked(&shared.flights).extend(planned.iter().map(Arc::downgrade));
    advance(shared);
    Ahead::Fetching(Resident::new(planned))
}

/// Takes answers that have come, and begins the next requests.
pub(crate) fn advance(shared: &Shared) {
    // Answers are written to the disk without the lock, and given up without it: the last owner may be this one.
    let all: Vec<Arc<Flight>> = {
        let mut flights = locked(&shared.flights);
        flights.retain(|flight| flight.strong_count() > 0);
        flights.iter().filter_map(Weak::upgrade).collect()
    };
    let (mut flying, mut landed) = (0, Vec::new());
    for flight in &all {
        if flying < AT_ONCE || !flight.is_planned() {
            match flight.poll(shared, None) {
                true => landed.push(Arc::as_ptr(flight)),
                false => flying += 1,
            }
        }
    }
    if !landed.is_empty() {
        let mut flights = locked(&shared.flights);
        let is_landed = |flight: &mut Weak<Flight>| landed.contains(&flight.as_ptr());
        let landed: Vec<Weak<Flight>> = flights.extract_if(.., is_landed).collect();
        drop(flights);
        let mut all = locked(&shared.landed);
        all.retain(|flight| flight.strong_count() > 0);
        all.extend(landed);
    }
}

/// Gives back the slots of all requests that read ahead, since the disk is full: the blocks that are there may
/// leave, and a scan that comes to one that has left fetches it. Returns whether there were any.
pub(crate) fn give_up(shared: &Arc<Shared>) -> bool {
    let lists = [&shared.flights, &shared.landed];
    let all: Vec<Arc<Flight>> = lists
        .iter()
        .flat_map(|list| locked(list).clone())
        .filter_map(|one| one.upgrade())
        .collect();
    let mut given_up = false;
    for flight in all {
        let taken = std::mem::replace(&mut *locked(&flight.pins), pins(shared, true));
        given_up |= !taken.slots.is_empty();
        if let Some(mut stage) = flight.stage()
            && let Stage::Planned = *stage
        {
            *stage = Stage::Landed;
            flight.signal.wake_by_ref();
        }
    }
    given_up
}

/// The request that has, or will have, the first block of `wanted`; otherwise the end of the blocks that no
/// request has.
pub(crate) fn flying(shared: &Shared, file: u64, wanted: &Range<u64>) -> Result<Arc<Flight>, u64> {
    let flights = locked(&shared.flights);
    let mut end = wanted.end;
    let mut others = Vec::new();
    for flight in flights.iter().filter_map(Weak::upgrade) {
        if flight.entry.id == file && !flight.has_landed() {
            if flight.blocks.contains(&wanted.start) {
                return Ok(flight);
            }
            if flight.blocks.start > wanted.start {
                end = end.min(flight.blocks.start);
            }
        }
        others.push(flight);
    }
    drop(flights);
    debug_assert!(end > wanted.start, "a block that is in flight is asked for");
    Err(end)
}

impl Flight {
    /// Its stage, unless another caller is looking for its answer.
    fn stage(&self) -> Option<MutexGuard<'_, Stage>> {
        match self.stage.try_lock() {
            Ok(stage) => Some(stage),
            Err(TryLockError::Poisoned(panicked)) => Some(panicked.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn is_planned(&self) -> bool {
        self.stage().is_some_and(|stage| matches!(*stage, Stage::Planned))
    }

    fn has_landed(&self) -> bool {
        self.stage().is_some_and(|stage| matches!(*stage, Stage::Landed))
    }

    /// Waits until the answer has come, right or wrong.
    pub async fn landed(&self, shared: &Shared) {
        poll_fn(|context| match self.poll(shared, Some(context.waker())) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Looks for the answer, and begins the request if it is only planned. Returns whether it has landed.
    fn poll(&self, shared: &Shared, waker: Option<&Waker>) -> bool {
        if let Some(waker) = waker {
            let mut waiting = locked(&self.signal.waiting);
            if !waiting.iter().any(|other| other.will_wake(waker)) {
                waiting.push(waker.clone());
            }
        }
        // Another caller wakes all that wait once the answer has come.
        let Some(mut stage) = self.stage() else { return false };
        if let Stage::Planned = *stage {
            let (blobs, name, range) =
                (shared.blobs.clone(), self.blob.clone(), self.range.clone());
            shared.count_request();
            *stage = Stage::Flying(Box::pin(async move { blobs.read(&name, range).await }));
        }
        let Stage::Flying(answer) = &mut *stage else { return true };
        if !self.signal.is_due.swap(false, Ordering::AcqRel) {
            return false;
        }
        let signal = Waker::from(self.signal.clone());
        let Poll::Ready(answer) = answer.as_mut().poll(&mut Context::from_waker(&signal)) else {
            return false;
        };
        // What fails is asked for again by the fetch that needs it.
        if let Ok(bytes) = answer {
            self.store(shared, bytes).ok();
        }
        *stage = Stage::Landed;
        drop(stage);
        self.signal.wake_by_ref();
        true
    }

    /// Writes the bytes of an answer to the slots.
    fn store(&self, shared: &Shared, mut bytes: Vec<u8>) -> Result<()> {
        if bytes.len() as u64 != self.range.end - self.range.start {
            return Ok(());
        }
        shared.count_bytes(bytes.len());
        shared.reads.bytes_ahead.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let size = shared.blocks().block_bytes() as usize;
        if plant::is(Bug::AheadShift) {
            let by = size.min(bytes.len() / 2);
            bytes.rotate_left(by);
        }
        let pins = locked(&self.pins);
        match pins.slots.is_empty() {
            // They were given up.
            true => Ok(()),
            false => {
                kept::fill(shared, &self.entry, &pins.slots, (self.range.start, self.len), &bytes)
            }
        }
    }
}
