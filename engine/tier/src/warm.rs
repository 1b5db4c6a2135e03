//! Warming: brings bytes to the local disk before anything asks for them, while there is nothing else to do. It makes
//! way for fetches that something waits for: after one it rests, and then begins with short steps again.

use crate::evict;
use crate::fetch;
use crate::retry::{backoff_ns, is_transient};
use crate::shared::Shared;
use core::time::Duration;
use nacre_host::Rest;
use std::sync::Arc;

/// Rest after a fetch that something waited for: the next one is often soon, in nanoseconds.
const YIELD_NS: u64 = 100_000_000;

/// The part of the room for blocks that is warmed: one in this many.
const SHARE: u64 = 4;

/// Takes a step if there is nothing else to do; `rest` is until when. Returns when to call again.
pub(crate) async fn step(shared: &Arc<Shared>, rest: Rest) -> Rest {
    if rest == Rest::No {
        return rest;
    }
    let now_ns = shared.clock.monotonic_ns();
    let step = {
        let mut warmer = shared.warmer();
        let Some(warming) = &mut *warmer else { return rest };
        if now_ns < warming.retry_ns {
            return sooner(rest, warming.retry_ns - now_ns);
        }
        // Another caller may be taking the answer of a request that reads ahead.
        let last_ns = match shared.flights.try_lock().is_ok_and(|flights| flights.is_empty()) {
            true => shared.demand.last_ns(now_ns),
            false => now_ns,
        };
        if last_ns > 0 && now_ns < last_ns.saturating_add(YIELD_NS) {
            warming.make_way();
            return sooner(rest, last_ns + YIELD_NS - now_ns);
        }
        let room = {
            let most = evict::most_slots(shared) as u64;
            most.saturating_mul(shared.blocks().block_bytes())
        };
        let is_over = warming.asked >= room / SHARE;
        match warming.step() {
            Ok(step) if !step.is_empty() && !is_over => step,
            // Whatever needs bytes that cannot be read will say why.
            _ => {
                *warmer = None;
                return rest;
            }
        }
    };
    match fetch::warm(shared, &step).await {
        Ok(()) => {
            if let Some(warming) = &mut *shared.warmer() {
                warming.failures = 0;
            }
            Rest::No
        }
        Err(error) => {
            let mut warmer = shared.warmer();
            let Some(warming) = &mut *warmer else { return rest };
            if !is_transient(&error) {
                *warmer = None;
                return rest;
            }
            let delay_ns = backoff_ns(warming.failures, &*shared.entropy);
            warming.failures += 1;
            warming.retry_ns = shared.clock.monotonic_ns().saturating_add(delay_ns);
            warming.put_back(step);
            sooner(rest, delay_ns)
        }
    }
}

/// The shorter of two rests.
fn sooner(rest: Rest, other_ns: u64) -> Rest {
    let other = Duration::from_nanos(other_ns);
    match rest {
        Rest::For(time) if time < other => rest,
        _ => Rest::For(other),
    }
}
