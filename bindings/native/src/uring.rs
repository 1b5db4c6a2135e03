//! Linux's io_uring: many reads in one submission, and a write with the following sync in one
//! submission.
//!
//! A call waits for its submission to complete, so buffers are only borrowed. The caller repeats
//! requests that did not complete as requested (a short read, a rejected request) with plain calls,
//! which also report the error. Only a failed sync is final: nothing may be assumed after one.
//!
//! A pool keeps rings: a thread takes one for the duration of a call, so that calls do not wait for
//! each other. If the system has no io_uring, or forbids it, [`Uring::new`] returns `None`.

use io_uring::{IoUring, Probe, opcode, squeue, types};
use nacre_host::ReadRange;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

/// Maximum number of requests in one submission; longer batches are split.
const ENTRIES: u32 = 128;

/// Maximum number of idle rings that the pool keeps.
const SPARE_RINGS: usize = 16;

/// Maximum size of the range of one request, in bytes; the system's own limit is slightly below
/// 2^31.
const LARGEST: usize = 1 << 30;

/// Outcome of a write with its sync.
pub(crate) enum Written {
    /// Both completed.
    Durable,
    /// The write did not complete and nothing was synced: repeat it with plain calls.
    NotDone,
    /// The write completed but the sync failed.
    SyncFailed(io::Error),
}

/// A pool of rings.
pub(crate) struct Uring {
    rings: Mutex<Vec<IoUring>>,
}

impl Uring {
    /// Creates a pool, if this system has io_uring and supports the required requests.
    pub(crate) fn new() -> Option<Uring> {
        let ring = IoUring::new(ENTRIES).ok()?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).ok()?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
        needed
            .iter()
            .all(|code| probe.is_supported(*code))
            .then(|| Uring { rings: Mutex::new(vec![ring]) })
    }

    /// Submits at most [`ENTRIES`] requests to a free ring and waits for all of them. Returns the
    /// user data and the result of each completed request.
    ///
    /// # Safety
    /// The memory that the requests point to must be valid until this returns.
    unsafe fn submit(&self, requests: &[squeue::Entry]) -> Vec<(u64, i32)> {
        let kept = self.rings.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(mut ring) = kept.or_else(|| IoUring::new(ENTRIES).ok()) else { return Vec::new() };
        // SAFETY: as promised by the caller.
        let (done, usable) = unsafe { submit(&mut ring, requests) };
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if usable && rings.len() < SPARE_RINGS {
            rings.push(ring);
        }
        done
    }

    /// Reads ranges. Returns for each whether it was filled completely; otherwise it may have been
    /// filled in part.
    pub(crate) fn read(&self, file: &File, ranges: &mut [ReadRange<'_>]) -> Vec<bool> {
        let mut filled = vec![false; ranges.len()];
        let fd = types::Fd(file.as_raw_fd());
        for (batch, filled) in
            ranges.chunks_mut(ENTRIES as usize).zip(filled.chunks_mut(ENTRIES as usize))
        {
            let lengths: Vec<usize> = batch.iter().map(|range| range.buffer.len()).collect();
            let requests = batch
                .iter_mut()
                .enumerate()
                .filter(|(_, range)| {
                    range.buffer.len() <= LARGEST && i64::try_from(range.offset).is_ok()
                })
                .map(|(at, range)| {
                    opcode::Read::new(fd, range.buffer.as_mut_ptr(), range.buffer.len() as u32)
                        .offset(range.offset)
                        .build()
                        .user_data(at as u64)
                })
                .collect::<Vec<_>>();
            // SAFETY: the buffers are borrowed for longer than the call.
            for (at, result) in unsafe { self.submit(&requests) } {
                filled[at as usize] =
                    usize::try_from(result).is_ok_and(|bytes| bytes == lengths[at as usize]);
            }
        }
        filled
    }

    /// Writes and, if all bytes were written, syncs the file's data, in one submission.
    pub(crate) fn write_synced(&self, file: &File, offset: u64, bytes: &[u8]) -> Written {
        if bytes.len() > LARGEST || i64::try_from(offset).is_err() {
            return Written::NotDone;
        }
        let fd = types::Fd(file.as_raw_fd());
        let write =
            opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32).offset(offset).build();
        let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build();
        let requests = [write.flags(squeue::Flags::IO_LINK).user_data(0), sync.user_data(1)];
        // SAFETY: the bytes are borrowed for longer than the call.
        let done = unsafe { self.submit(&requests) };
        let result = |of: u64| done.iter().find(|(at, _)| *at == of).map(|(_, result)| *result);
        match (result(0), result(1)) {
            (Some(written), Some(0))
                if usize::try_from(written).is_ok_and(|n| n == bytes.len()) =>
            {
                Written::Durable
            }
            (Some(written), Some(failed))
                if usize::try_from(written).is_ok_and(|n| n == bytes.len()) =>
            {
                Written::SyncFailed(io::Error::from_raw_os_error(-failed))
            }
            // A short or failed write breaks the link, which cancels the sync.
            _ => Written::NotDone,
        }
    }
}

/// Submits requests and waits for all of them. Returns the user data and the result of each, and
/// whether the ring may be used again. In any case, no request is in flight afterwards.
///
/// # Safety
/// The memory that the requests point to must be valid until this returns.
unsafe fn submit(ring: &mut IoUring, requests: &[squeue::Entry]) -> (Vec<(u64, i32)>, bool) {
    let mut done = Vec::with_capacity(requests.len());
    // SAFETY: as promised by the caller. The queue has room: a reused ring has an empty queue.
    if unsafe { ring.submission().push_multiple(requests) }.is_err() {
        return (done, false);
    }
    let mut refused = false;
    loop {
        done.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
        let queued = ring.submission().len();
        let under_way = requests.len() - queued - done.len();
        if under_way == 0 && (queued == 0 || refused) {
            return (done, !refused);
        }
        if refused {
            // Requests in flight still write to the buffers: wait for them before giving the
            // buffers back.
            std::thread::yield_now();
            continue;
        }
        if let Err(error) = ring.submit_and_wait(under_way + queued) {
            refused = error.kind() != io::ErrorKind::Interrupted;
        }
    }
}
