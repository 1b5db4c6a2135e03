//! Keeps the local disk within its limit: segment files leave whole, once they are uploaded, and the blocks
//! that are fetched of absent ones share what is left.
//!
//! The files that were not read for longest leave first. A file leaves in favour of blocks when it was not read
//! during as many reads as there are blocks.

use crate::entry::{Entry, Kind};
use crate::shared::{Shared, State};
use nacre_types::plant::{self, Bug};
use nacre_types::{Reason, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The part of the limit that is left to blocks in any case: one in this many.
const BLOCKS_SHARE: u64 = 8;

/// Bytes that leave together when the disk is full.
const SPACE_BYTES: u64 = 16 << 20;

/// Makes room for a block to be fetched. Returns how many slots blocks may take.
pub(crate) fn make_room(shared: &Shared) -> usize {
    let limit = shared.options.disk_limit;
    if limit == u64::MAX {
        return shared.blocks().most();
    }
    let slots = {
        let blocks = shared.blocks();
        blocks.bytes() / blocks.block_bytes()
    };
    if slots >= most_slots(shared) as u64 {
        let before = shared.tick().saturating_sub(slots);
        let coldest = coldest(&shared.state(), before);
        if let Some(entry) = coldest {
            // Otherwise it is being read.
            entry.leave(&*shared.local).ok();
        }
    }
    most_slots(shared)
}

/// How many slots blocks may take.
pub(crate) fn most_slots(shared: &Shared) -> usize {
    let limit = shared.options.disk_limit;
    let bytes = limit.saturating_sub(local_bytes(&shared.state())).max(limit / BLOCKS_SHARE);
    let blocks = shared.blocks();
    usize::try_from(bytes / blocks.block_bytes()).unwrap_or(usize::MAX).min(blocks.most())
}

/// Lets files and blocks leave until the local disk is within its limit. What cannot leave yet stays. Returns
/// `false` if it is to be called again soon, since a file that is to leave was being read.
pub(crate) fn evict(shared: &Shared) -> bool {
    let limit = shared.options.disk_limit;
    if limit == u64::MAX {
        return true;
    }
    let is_within = evict_files(shared, limit - limit / BLOCKS_SHARE);
    let most = most_slots(shared);
    // A file that cannot be cut is reused as it is.
    shared.blocks().shrink(most).ok();
    is_within
}

/// Changes local files. If the disk is full, what can be fetched again leaves, and the change is tried again.
pub(crate) fn with_space<T>(shared: &Shared, change: impl Fn() -> Result<T>) -> Result<T> {
    match change() {
        Err(error) if error.reason() == Some(Reason::NoSpace) && make_space(shared) => change(),
        done => done,
    }
}

/// Lets files leave, and then blocks, because the disk is full before its limit is reached. Returns whether any
/// has left.
pub(crate) fn make_space(shared: &Shared) -> bool {
    let before = local_bytes(&shared.state());
    evict_files(shared, before.saturating_sub(SPACE_BYTES));
    let files = before.saturating_sub(local_bytes(&shared.state()));
    let mut blocks = shared.blocks();
    let before = blocks.taken();
    let keep = blocks.bytes().saturating_sub(SPACE_BYTES.saturating_sub(files));
    let most = keep / blocks.block_bytes();
    // A file that cannot be cut is reused as it is.
    blocks.shrink(most as usize).ok();
    files > 0 || blocks.taken() < before
}

/// Lets files leave, those that were not read for longest first, until this many bytes are left. Returns `false`
/// if more are left since one was being read.
fn evict_files(shared: &Shared, most: u64) -> bool {
    let (mut stays, mut is_read) = (Vec::new(), false);
    loop {
        let coldest = {
            let state = shared.state();
            if local_bytes(&state) <= most {
                return true;
            }
            let may = |entry: &&Arc<Entry>| !stays.contains(&entry.id);
            can_leave(&state).filter(may).min_by_key(used).cloned()
        };
        let Some(entry) = coldest else { return !is_read };
        let left = entry.leave(&*shared.local);
        is_read |= matches!(left, Ok(false));
        if !matches!(left, Ok(true)) {
            stays.push(entry.id);
        }
    }
}

fn used(entry: &&Arc<Entry>) -> u64 {
    entry.used.load(Ordering::Relaxed)
}

/// Bytes of files that can leave, now or later.
fn local_bytes(state: &State) -> u64 {
    let data = state.files.values().filter(|entry| entry.kind == Kind::Data);
    data.map(|entry| {
        let meta = entry.meta();
        if meta.is_here { meta.written } else { 0 }
    })
    .sum()
}

/// The file that was not read for longest, if that was before a tick.
fn coldest(state: &State, before: u64) -> Option<Arc<Entry>> {
    let coldest = can_leave(state).min_by_key(used)?;
    (used(&coldest) < before).then(|| coldest.clone())
}

/// The files whose bytes may leave: the newest manifest names the file, and so does the log.
fn can_leave(state: &State) -> impl Iterator<Item = &Arc<Entry>> {
    // Without the blob store it is not known what became of the blobs.
    let may_leave = !state.is_apart;
    state.files.values().filter(move |entry| {
        let meta = entry.meta();
        let is_named = meta.is_named && !meta.is_removed && !meta.is_dirty;
        let remote = state.remote.files.get(&entry.name);
        let is_remote = remote.zip(meta.blob).is_some_and(|(remote, blob)| {
            (remote.writer, remote.checksum) == (blob.writer, blob.checksum)
        });
        let may = is_remote || plant::is(Bug::EvictUnuploaded);
        may_leave && entry.kind == Kind::Data && meta.is_here && is_named && may
    })
}
