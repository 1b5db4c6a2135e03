//! The removal of blobs that nothing needs any more.
//!
//! A manifest lets blobs go that were dropped long enough ago: its horizon passes them. Only then the writer looks
//! for holds, and removes what none of them needs. What looks at a manifest meanwhile sees the horizon, and does not
//! count on such blobs; what has written its hold before is seen.
//!
//! A writer that ends in the middle of an upload leaves blobs that no manifest names. Each later writer looks for
//! them once, by a listing: a blob with a smaller number than its own, which its manifest neither names nor has
//! dropped, is never named again.
//!
//! A failure delays removals only, never an upload.

use crate::collecting::Collecting;
use crate::entry::Kind;
use crate::history;
use crate::hold::{BRANCHES, LEASES, Lease, Reference, hold_name};
use crate::manifest::{Dropped, Manifest, Origin, blob_name};
use crate::origins;
use crate::retry::is_transient;
use crate::shared::{Shared, State};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{ErrorKind, Result, invariant};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Least time between two looks for holds, in nanoseconds.
const LOOK_EVERY_NS: u64 = 10_000_000_000;
/// How far clocks may be apart: a lease counts for this much longer, in microseconds. S3 refuses requests of
/// clocks that are further away.
pub(crate) const SKEW_US: i64 = 15 * 60 * 1_000_000;

/// A piece of the work.
pub(crate) enum Work {
    /// Looks for holds.
    Look,
    /// Removes a blob.
    Remove(Arc<str>),
    /// Looks for what earlier writers have left unnamed.
    Sweep,
    /// Lets an origin of this branch keep nothing for it any more.
    Release(Origin),
}

/// What is held.
#[derive(Default)]
struct Holds {
    /// The lowest position of a lease.
    oldest: Option<u64>,
    /// The blobs of branches.
    names: BTreeSet<String>,
}

/// The time up to which a manifest that is written now lets dropped blobs go.
pub(crate) fn horizon_us(shared: &Shared, before: &Manifest, now_us: i64) -> i64 {
    let keep_us = i64::try_from(shared.options.kept().as_micros()).unwrap_or(i64::MAX);
    before.horizon_us.max(now_us.saturating_sub(keep_us))
}

/// What is to be done next, if anything is due.
pub(crate) fn next(shared: &Shared, state: &State) -> Option<Work> {
    let Collecting { targets, held, next_ns, release_ns, refused, sweep_ns, .. } =
        &state.collecting;
    let now_ns = shared.clock.monotonic_ns();
    if let Some(name) = targets.last() {
        return Some(Work::Remove(name.clone()));
    }
    if now_ns < *next_ns {
        return None;
    }
    if sweep_ns.is_some_and(|sweep_ns| sweep_ns <= now_ns) {
        return Some(Work::Sweep);
    }
    let mut unused = origins::unused(&state.remote);
    unused.retain(|origin| !state.collecting.is_released(origin));
    // Otherwise one that always refuses would keep the others from their turn.
    let after = unused.iter().find(|origin| Some(origin.up_to) > *refused);
    if let Some(origin) = after.or(unused.first())
        && now_ns >= *release_ns
    {
        return Some(Work::Release(origin.clone()));
    }
    let is_due = over(state).any(|dropped| !held.contains(&dropped.name));
    // What was held before may be free now.
    let is_late = || !held.is_empty() && over(state).next().is_some();
    (is_due || is_late()).then_some(Work::Look)
}

/// Blobs that the newest manifest lets go, and that are still there.
fn over(state: &State) -> impl Iterator<Item = &Dropped> {
    let remote = &state.remote;
    let is_left = |dropped: &&Dropped| !state.collected.contains(&dropped.name);
    remote.dropped.iter().filter(|dropped| remote.is_over(dropped)).filter(is_left)
}

/// Does a piece of the work. A failure is not that of an upload: it is tried again later.
pub(crate) async fn run(shared: &Shared, work: Work) {
    let later_ns = || shared.clock.monotonic_ns().saturating_add(LOOK_EVERY_NS);
    match work {
        Work::Look => {
            if look(shared).await.is_err() {
                shared.state().collecting.next_ns = later_ns();
            }
        }
        Work::Sweep => {
            let found = orphans(shared).await;
            let mut state = shared.state();
            state.collecting.sweep_ns = found.is_err().then(later_ns);
            state.collecting.targets.extend(found.unwrap_or_default());
        }
        Work::Remove(name) => {
            let removed = shared.blobs.remove(&name).await;
            let mut state = shared.state();
            match removed {
                Err(error) if is_transient(&error) => {
                    state.collecting.targets.clear();
                    state.collecting.next_ns = later_ns();
                }
                // One that cannot be removed is met again by the next look.
                removed => {
                    state.collecting.targets.retain(|target| *target != name);
                    let is_dropped = |dropped: &Dropped| dropped.name == name;
                    if removed.is_ok() && state.remote.dropped.iter().any(is_dropped) {
                        state.collected.insert(name);
                    }
                }
            }
        }
        Work::Release(origin) => {
            let up_to = origin.up_to;
            if Box::pin(release(shared, origin)).await.is_err() {
                let mut state = shared.state();
                state.collecting.release_ns = later_ns();
                state.collecting.refused = Some(up_to);
            }
        }
    }
}

/// The blobs that earlier writers have left unnamed.
async fn orphans(shared: &Shared) -> Result<Vec<Arc<str>>> {
    let listed = shared.blobs.list("").await?;
    let state = shared.state();
    let mut known = state.remote.names();
    known.extend(state.remote.dropped.iter().map(|dropped| dropped.name.to_string()));
    let newest = match plant::is(Bug::SweepEarly) {
        true => u64::MAX,
        false => shared.writer(),
    };
    let is_orphan = |name: &String| {
        // What others have put beside the blobs is theirs.
        let writer = origins::writer_of(name).filter(|writer| is_of(*writer, name));
        writer.is_some_and(|writer| writer < newest) && !known.contains(name)
    };
    Ok(listed.into_iter().map(|info| info.name).filter(is_orphan).map(Arc::from).collect())
}

/// Whether a name is one that the writer with a number gives to blobs.
fn is_of(writer: u64, name: &str) -> bool {
    let Some((_, file)) = name.split_once('/') else { return false };
    let is_range = |range: &str| {
        let numbers = range.split_once('-');
        numbers.is_some_and(|(from, to)| {
            [from, to].iter().all(|digits| u64::from_str_radix(digits, 16).is_ok())
        })
    };
    let is_piece =
        |(chunk, range): (&str, &str)| nacre_log::chunk_of(chunk).is_some() && is_range(range);
    let is_file = matches!(Kind::of(file), Kind::Data | Kind::Snapshot(_))
        || file.split_once('.').is_some_and(is_piece)
        || history::is_history(name);
    is_file && *blob_name(writer, file) == *name
}

/// Removes the reference that an origin has to this branch. The next manifest does not name the origin.
async fn release(shared: &Shared, origin: Origin) -> Result<()> {
    let branch = shared.state().remote.branch;
    let blobs = shared.blobs.elsewhere(&origin.url)?;
    blobs.remove(&hold_name(BRANCHES, branch)).await?;
    shared.state().collecting.released.push(origin.up_to);
    Ok(())
}

async fn look(shared: &Shared) -> Result<()> {
    let free_at_begin: Set<Arc<str>> =
        over(&shared.state()).map(|dropped| dropped.name.clone()).collect();
    let holds = match plant::is(Bug::GcRace) {
        true => Holds::default(),
        false => holds(shared).await?,
    };
    let mut state = shared.state();
    let is_held = |dropped: &Dropped| {
        holds.oldest.is_some_and(|position| position <= dropped.position)
            || holds.names.contains(&*dropped.name)
    };
    let (mut targets, mut held) = (Vec::new(), Set::default());
    for dropped in over(&state).filter(|dropped| free_at_begin.contains(&dropped.name)) {
        invariant!(
            dropped.since_us <= state.remote.horizon_us,
            "{} is removed before its time",
            dropped.name
        );
        match is_held(dropped) {
            true => drop(held.insert(dropped.name.clone())),
            false => targets.push(dropped.name.clone()),
        }
    }
    let next_ns = shared.clock.monotonic_ns().saturating_add(LOOK_EVERY_NS);
    let before = std::mem::take(&mut state.collecting);
    state.collecting = Collecting { targets, held, next_ns, ..before };
    Ok(())
}

/// Reads all holds. Leases that ended long ago are removed.
async fn holds(shared: &Shared) -> Result<Holds> {
    let mut holds = Holds::default();
    for info in shared.blobs.list(LEASES).await? {
        let Some(bytes) = read(shared, &info.name).await? else { continue };
        let lease = Lease::decode(&bytes, &info.name)?;
        if lease.expires_us.saturating_add(SKEW_US) < shared.clock.wall_us() {
            shared.blobs.remove(&info.name).await?;
            continue;
        }
        let oldest = holds.oldest.unwrap_or(lease.position);
        holds.oldest = Some(oldest.min(lease.position));
    }
    for info in shared.blobs.list(BRANCHES).await? {
        let Some(bytes) = read(shared, &info.name).await? else { continue };
        holds.names.append(&mut Reference::decode(&bytes, &info.name)?.names);
    }
    Ok(holds)
}

/// A blob, unless it was removed meanwhile.
async fn read(shared: &Shared, name: &str) -> Result<Option<Vec<u8>>> {
    match shared.blobs.read_all(name).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(error) => Err(error),
    }
}
