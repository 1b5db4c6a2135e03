//! The lease of a database that only reads: what it shows is not removed as long as it renews its lease.
//!
//! A reader begins without a lease, protected by the retention. In the background it writes one, and then compares
//! what it shows with the newest manifest: from then on it holds. If it cannot be renewed in time, it is lost, and a
//! new one is taken under another name, so that a renewal of the old one that arrives late changes nothing. A reader
//! without the right to write goes on without a lease.
//!
//! Times are those of the monotonic clock of the reader; [`SKEW_US`](crate::collect::SKEW_US) stands for the
//! difference of the clocks.

use crate::attach::Attach;
use crate::entry::Kind;
use crate::hold::{LEASES, Lease, hold_name};
use crate::leasing::Leasing;
use crate::manifest::blob_name;
use crate::retry::{backoff_ns, is_transient};
use crate::shared::{Shared, State};
use core::time::Duration;
use nacre_host::{ErrorKind, LeaseState, Rest, WriteIf};
use nacre_types::{Error, Result, invariant};
use std::sync::Arc;

/// A lease is renewed this many times before it ends.
const RENEWALS: u64 = 3;
/// A reader whose lease was refused tries again after this many times its duration.
const REFUSED: u64 = 30;

/// Renews the lease of a reader if that is due.
pub(crate) async fn step(shared: &Arc<Shared>) -> Rest {
    let lease_ns = shared.options.lease.as_nanos() as u64;
    if lease_ns == 0 {
        return Rest::UntilWoken;
    }
    let now_ns = shared.clock.monotonic_ns();
    {
        let state = shared.state();
        if state.leasing.is_over {
            return Rest::UntilWoken;
        }
        if now_ns < state.leasing.next_ns {
            return Rest::For(Duration::from_nanos(state.leasing.next_ns - now_ns));
        }
    }
    let renewed = renew(shared, now_ns).await;
    let ended_ns = shared.clock.monotonic_ns();
    let mut state = shared.state();
    let leasing = &mut state.leasing;
    let rest_ns = match &renewed {
        Ok(()) => {
            (leasing.failures, leasing.is_lost, leasing.is_refused) = (0, false, false);
            lease_ns / RENEWALS
        }
        Err(error) => {
            leasing.is_lost |= leasing.until_ns.is_some_and(|until_ns| until_ns <= ended_ns);
            leasing.failures += 1;
            let is_kept = matches!(error.kind(), ErrorKind::Conflict) || is_transient(error);
            leasing.is_refused = !is_kept;
            match is_kept {
                true => backoff_ns(leasing.failures - 1, &*shared.entropy).min(lease_ns),
                false => lease_ns.saturating_mul(REFUSED),
            }
        }
    };
    leasing.next_ns = ended_ns.saturating_add(rest_ns);
    Rest::For(Duration::from_nanos(rest_ns))
}

/// Writes the lease, and verifies what it is for unless it was held until now.
async fn renew(shared: &Arc<Shared>, began_ns: u64) -> Result<()> {
    let lease_ns = shared.options.lease.as_nanos() as u64;
    let lease_us = i64::try_from(shared.options.lease.as_micros()).unwrap_or(i64::MAX);
    let (lease, when) = {
        let mut state = shared.state();
        let position = state.leasing.needs.unwrap_or(state.remote.position);
        let database = state.remote.database;
        let is_held = state.leasing.state(&*shared.clock) == LeaseState::Held;
        let leasing = &mut state.leasing;
        if !is_held && leasing.until_ns.take().is_some() {
            // The writer may be removing it.
            (leasing.id, leasing.is_lost) = (0, true);
        }
        if leasing.id == 0 {
            (leasing.id, leasing.tag) = (shared.entropy.next_u64() | 1, None);
        }
        leasing.renewals += 1;
        let expires_us = shared.clock.wall_us().saturating_add(lease_us);
        let Leasing { id, renewals, .. } = *leasing;
        let when = leasing.tag.clone().map_or(WriteIf::Absent, WriteIf::Tagged);
        (Lease { database, id, renewals, position, expires_us }, when)
    };
    let name = hold_name(LEASES, lease.id);
    let tag = match shared.blobs.write(&name, lease.encode().into(), when).await {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            // An answer was lost, or the writer has removed it.
            let found = shared.blobs.read_all(&name).await;
            let mut state = shared.state();
            match found {
                Ok((_, tag)) => state.leasing.tag = Some(tag),
                Err(gone) if gone.kind() == ErrorKind::NotFound => {
                    let leasing = &mut state.leasing;
                    leasing.is_lost |= leasing.until_ns.take().is_some();
                    leasing.id = 0;
                }
                Err(other) => return Err(other),
            }
            return Err(error);
        }
        written => written?,
    };
    let was_held = {
        let mut state = shared.state();
        state.leasing.tag = Some(tag);
        state.leasing.state(&*shared.clock) == LeaseState::Held
    };
    if !was_held {
        verify(shared).await?;
    }
    let leasing = &mut shared.state().leasing;
    leasing.until_ns = Some(began_ns.saturating_add(lease_ns));
    leasing.until_us = lease.expires_us;
    Ok(())
}

/// Checks that the newest manifest keeps everything that may be read.
///
/// # Errors
/// `conflict` if it does not.
async fn verify(shared: &Arc<Shared>) -> Result<()> {
    let Some((newest, _)) = Attach::of(shared).newest().await? else {
        return Err(Error::corrupt("the manifest is missing"));
    };
    let kept = newest.kept();
    let mut state = shared.state();
    let gone = needed(&state).find(|name| !kept.contains(name));
    state.leasing.is_lost = gone.is_some();
    match gone {
        None => Ok(()),
        Some(name) => Err(Error::conflict(format!("{name} may be gone"))),
    }
}

/// The blobs that may be read, and are not here.
fn needed(state: &State) -> impl Iterator<Item = String> {
    let needs = state.leasing.needs.unwrap_or(0);
    let is_read =
        move |name: &str| state.unnamed.get(name).is_none_or(|unnamed| needs < unnamed.position);
    let data =
        state.files.values().filter(move |entry| entry.kind == Kind::Data && is_read(&entry.name));
    data.filter_map(|entry| {
        let meta = entry.meta();
        let blob = meta.blob.filter(|_| !meta.is_here)?;
        Some(blob_name(blob.writer, &entry.name))
    })
}

/// Notes the lowest position at which something reads.
pub(crate) fn note_needs(shared: &Shared, position: u64) {
    invariant!(shared.is_read_only(), "a writer notes what it reads");
    let mut state = shared.state();
    debug_assert!(
        state.leasing.needs.is_none_or(|before| before <= position),
        "a reader needs position {position} again"
    );
    state.leasing.needs = Some(position);
}

/// Gives the lease up.
pub(crate) async fn release(shared: &Shared) -> Result<()> {
    let id = {
        let mut state = shared.state();
        state.leasing.is_over = true;
        (state.leasing.until_ns, state.leasing.is_lost) = (None, false);
        state.leasing.id
    };
    if id != 0 {
        // Otherwise it ends by itself.
        shared.blobs.remove(&hold_name(LEASES, id)).await.ok();
    }
    Ok(())
}

/// The error of a blob that a reader misses.
pub(crate) fn gone(shared: &Shared, error: &Error) -> Error {
    match shared.state().leasing.state(&*shared.clock) {
        LeaseState::Held => {
            Error::corrupt(format!("a blob is missing that is held: {}", error.message()))
        }
        LeaseState::Lost => Error::lease_lost(error.message()),
        LeaseState::None | LeaseState::Refused => Error::new(
            ErrorKind::Unavailable,
            format!("the blobs have gone on without this reader: {}", error.message()),
        )
        .with_hint("refresh the database, more often"),
    }
}
