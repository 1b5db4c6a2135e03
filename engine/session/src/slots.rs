//! Bounds how many statements with operators run at a time, so that a thousand sessions do not each
//! take a share of memory and threads.
//!
//! A statement holds a slot only while it computes, never while it waits: for a lock, for absent
//! bytes, for its commit to be durable, or for the consumer of a stream. Hence a holder never waits
//! for a statement that waits for a slot. Point statements hold no memory of operators and run
//! without one.
//!
//! Invariants: slots are given in the order of asking; none is free while a statement waits.

use crate::timed::completes_before;
use nacre_host::Clock;
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// How often a waiter checks for cancellation, in nanoseconds: first soon, then less often, because
/// there may be many waiters.
const FIRST_CHECK_NS: u64 = 10_000_000;
const LATER_CHECKS_NS: u64 = 160_000_000;

/// The slots of a database.
pub(crate) struct Slots {
    limit: usize,
    /// How long a statement waits to begin.
    timeout_ns: u64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    taken: usize,
    /// Waiters by ticket, with the waker of those that were polled. One that was given a slot is no
    /// longer among them.
    waiting: SortedMap<u64, Option<Waker>>,
    next_ticket: u64,
}

/// A slot, or the right to one for a waiter that has been given it; dropping it passes it on.
pub(crate) struct Slot<'a>(&'a Slots);

/// A place in the queue; dropping it leaves the queue.
struct Ticket<'a> {
    slots: &'a Slots,
    number: u64,
}

impl Slots {
    /// Creates this many free slots, at least one.
    pub fn new(limit: usize, timeout_ns: u64) -> Slots {
        Slots { limit: limit.max(1), timeout_ns, queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, or a place in the queue.
    fn ask(&self) -> Result<Slot<'_>, Ticket<'_>> {
        let mut queue = self.queue();
        if queue.taken < self.limit {
            debug_assert!(queue.waiting.is_empty(), "a slot is free while statements wait");
            queue.taken += 1;
            return Ok(Slot(self));
        }
        let number = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.insert(number, None);
        Err(Ticket { slots: self, number })
    }

    /// Waits for a slot for a statement that begins.
    ///
    /// Errors: `cancelled`; `unavailable` if there was none in time.
    pub async fn begin(&self, cancel: &AtomicBool, clock: &dyn Clock) -> Result<Slot<'_>> {
        let deadline_ns = clock.monotonic_ns().saturating_add(self.timeout_ns);
        self.take(cancel, clock, deadline_ns).await
    }

    /// Waits for a slot for a statement that has begun, which does not fail because others run.
    ///
    /// Errors: `cancelled`.
    pub async fn go_on(&self, cancel: &AtomicBool, clock: &dyn Clock) -> Result<Slot<'_>> {
        self.take(cancel, clock, u64::MAX).await
    }

    async fn take(
        &self,
        cancel: &AtomicBool,
        clock: &dyn Clock,
        deadline_ns: u64,
    ) -> Result<Slot<'_>> {
        let ticket = match self.ask() {
            Ok(slot) => return Ok(slot),
            Err(ticket) => ticket,
        };
        let mut check_ns = FIRST_CHECK_NS;
        loop {
            let next_ns = clock.monotonic_ns().saturating_add(check_ns).min(deadline_ns);
            let given = poll_fn(|context| ticket.poll(context.waker()));
            if completes_before(given, clock.sleep_until(next_ns)).await {
                return Ok(ticket.into_slot());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            if next_ns == deadline_ns {
                return Err(self.refusal());
            }
            check_ns = (2 * check_ns).min(LATER_CHECKS_NS);
        }
    }

    #[cold]
    fn refusal(&self) -> Error {
        let (limit, waiting) = (self.limit, self.queue().waiting.len());
        let message = format!("{limit} statements run, and {waiting} wait to begin");
        Error::new(ErrorKind::Unavailable, message)
            .with_sqlstate("53000")
            .with_hint("retry later, or raise concurrent_statements or admission_timeout_ms")
    }
}

impl<'a> Ticket<'a> {
    /// Whether the waiter has been given a slot; wakes it when it is.
    fn poll(&self, waker: &Waker) -> Poll<()> {
        match self.slots.queue().waiting.get_mut(&self.number) {
            Some(known) => {
                *known = Some(waker.clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// The slot that the waiter has been given.
    fn into_slot(self) -> Slot<'a> {
        let ticket = std::mem::ManuallyDrop::new(self);
        let is_waiting = ticket.slots.queue().waiting.contains_key(&ticket.number);
        invariant!(!is_waiting, "a statement begins without a slot");
        Slot(ticket.slots)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // A slot that arrived too late goes to the next waiter.
        if self.slots.queue().waiting.remove(&self.number).is_none() {
            drop(Slot(self.slots));
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.queue();
            invariant!(queue.taken > 0, "a slot is returned that was not taken");
            let next = queue.waiting.pop_first();
            queue.taken -= usize::from(next.is_none());
            next
        };
        if let Some((_, Some(waker))) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn is_given(ticket: &Ticket<'_>) -> bool {
        ticket.poll(Waker::noop()).is_ready()
    }

    #[test]
    fn slots_are_given_in_the_order_of_asking() {
        let slots = Slots::new(2, 0);
        let (first, second) = (slots.ask().ok().unwrap(), slots.ask().ok().unwrap());
        let waiting: Vec<Ticket<'_>> = (0..3).map(|_| slots.ask().err().unwrap()).collect();
        assert!(!waiting.iter().any(is_given));
        drop(second);
        assert_eq!(waiting.iter().map(is_given).collect::<Vec<_>>(), [true, false, false]);
        drop(first);
        assert_eq!(waiting.iter().map(is_given).collect::<Vec<_>>(), [true, true, false]);
    }

    /// A waiter that gives up leaves the queue; if it has just been given a slot, the next one gets
    /// it.
    #[test]
    fn a_waiter_that_gives_up_loses_no_slot() {
        let slots = Slots::new(1, 0);
        let holder = slots.ask().ok().unwrap();
        let [given, left, last] = [0; 3].map(|_| slots.ask().err().unwrap());
        drop(left);
        drop(holder);
        assert!(is_given(&given) && !is_given(&last));
        drop(given);
        assert!(is_given(&last));
        drop(last.into_slot());
        assert!(slots.ask().is_ok(), "the slot is free again");
        assert!(slots.queue().waiting.is_empty());
    }
}
