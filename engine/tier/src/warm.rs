//! Warming: brings bytes to the local disk before anything asks for them, while there is nothing else to do.

use crate::evict;
use crate::fetch::fetch;
use crate::retry::{backoff_ns, is_transient};
use crate::shared::Shared;
use core::time::Duration;
use nacre_host::{Missing, Rest, Result, Warming};
use nacre_types::plant::{self, Bug};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Most bytes of a step: other requests come between two steps.
const STEP_BYTES: u64 = 1 << 20;

/// The part of the room for blocks that is warmed: one in this many.
const SHARE: u64 = 4;

/// What is left to be brought.
#[derive(Default)]
pub(crate) struct Warmer {
    /// Names what comes next; `None` once there is nothing more.
    next: Option<Warming>,
    /// What was named, in order.
    named: VecDeque<(Arc<str>, Range<u64>)>,
    /// Bytes that were asked for.
    asked: u64,
    failures: u32,
    /// No step is taken before this time.
    retry_ns: u64,
}

impl Warmer {
    pub fn new(next: Warming) -> Warmer {
        Warmer { next: Some(next), ..Warmer::default() }
    }

    /// What is brought next, at most a step's bytes.
    ///
    /// # Errors
    /// Those of the reads that tell what is wanted.
    fn step(&mut self) -> Result<Vec<Missing>> {
        while self.named.is_empty()
            && let Some(next) = &mut self.next
        {
            let named = match next() {
                Ok(Some(named)) => named,
                Ok(None) => {
                    self.next = None;
                    break;
                }
                // What tells what is wanted is wanted first.
                Err(error) => match error.missing() {
                    Some(missing) => missing.to_vec(),
                    None => return Err(error),
                },
            };
            let ranges = |Missing { file, ranges }| {
                let file: Arc<str> = file;
                ranges.into_iter().map(move |range| (file.clone(), range))
            };
            self.named = named.into_iter().flat_map(ranges).collect();
        }
        let (mut step, mut left): (Vec<Missing>, u64) = (Vec::new(), STEP_BYTES);
        while left > 0
            && let Some((file, range)) = self.named.front_mut()
        {
            let end = range.end.min(range.start.saturating_add(left));
            left -= end - range.start;
            let part = range.start..end;
            match step.last_mut() {
                Some(last) if last.file == *file => last.ranges.push(part),
                _ => step.push(Missing { file: file.clone(), ranges: vec![part] }),
            }
            range.start = end;
            if range.is_empty() {
                self.named.pop_front();
            }
        }
        self.asked += STEP_BYTES - left;
        Ok(step)
    }

    /// Puts back what a step has not brought.
    fn put_back(&mut self, step: Vec<Missing>) {
        for Missing { file, ranges } in step.into_iter().rev() {
            for range in ranges.into_iter().rev() {
                self.asked = self.asked.saturating_sub(range.end - range.start);
                self.named.push_front((file.clone(), range));
            }
        }
    }
}

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
    // Its blocks stay until others take their place.
    match fetch(shared.clone(), &step).await {
        Ok(_) => {
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
            if !plant::is(Bug::WarmForget) {
                warming.put_back(step);
            }
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
