//! Who syncs next, and who waits for it: the meeting place of group commit.
//!
//! At most one caller at a time *leads*: it writes and syncs what everybody appended so far. Callers that come
//! meanwhile queue here with the position they need. When the leader is done, the first of those it did not serve is
//! told to lead, before anybody else is woken: the next sync starts at once and covers all that was appended during
//! this one. Only then those who were served are woken, each by a signal of its own, so that they do not stand in
//! line for a lock that the next leader holds through its sync.
//!
//! Invariants: leading ends by dropping [`Lead`], also by a panic, and never leaves somebody queued without a leader.
//! Knows nothing of files; whether a position is durable is the caller's to look at.

use crate::sync::{Condvar, Mutex};
use crate::{Lsn, lock};
use std::sync::{Arc, PoisonError};

/// The queue.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Whether somebody leads, or was told to.
    led: bool,
    /// In order of arrival.
    waiting: Vec<(Lsn, Arc<Waiter>)>,
}

/// One caller that waits, and what it is told.
#[derive(Default)]
struct Waiter {
    told: Mutex<Option<Told>>,
    bell: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// What you need is durable.
    Served,
    /// Sync yourself.
    Lead,
}

impl Waiter {
    fn tell(&self, what: Told) {
        *lock(&self.told) = Some(what);
        self.bell.notify_one();
    }

    fn wait(&self) -> Told {
        let mut told = lock(&self.told);
        loop {
            if let Some(told) = *told {
                return told;
            }
            told = self.bell.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Turns {
    /// Waits until either `lsn` is durable, answered with `None`, or it is the caller's turn to make it so.
    /// `durable` answers how far the log is durable; what a leader did shows in it before the leader ends.
    pub(crate) fn wait<'t>(&'t self, lsn: Lsn, durable: &'t dyn Fn() -> Lsn) -> Option<Lead<'t>> {
        let waiter = {
            let mut queue = lock(&self.0);
            // Looked at under the lock: a leader that ended before has shown its work, a later one will see us.
            if durable() >= lsn {
                return None;
            }
            if !queue.led {
                queue.led = true;
                return Some(Lead { turns: self, durable });
            }
            let waiter = Arc::new(Waiter::default());
            queue.waiting.push((lsn, waiter.clone()));
            waiter
        };
        // Made only by who leads: dropping one ends the lead.
        (waiter.wait() == Told::Lead).then(|| Lead { turns: self, durable })
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl Turns {
    /// How many callers wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).waiting.len()
    }
}

/// The right to sync, for as long as it lives.
pub(crate) struct Lead<'t> {
    turns: &'t Turns,
    durable: &'t dyn Fn() -> Lsn,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let (next, served) = {
            let mut queue = lock(&self.turns.0);
            let durable = (self.durable)();
            let (served, rest): (Vec<_>, Vec<_>) =
                std::mem::take(&mut queue.waiting).into_iter().partition(|(lsn, _)| *lsn <= durable);
            queue.waiting = rest;
            queue.led = !queue.waiting.is_empty();
            let next = queue.led.then(|| queue.waiting.remove(0).1);
            (next, served)
        };
        if let Some(next) = next {
            next.tell(Told::Lead);
        }
        served.iter().for_each(|(_, waiter)| waiter.tell(Told::Served));
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
#[allow(clippy::disallowed_methods, clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread;

    /// Who is served ends nobody's lead: while one leads, whoever comes waits.
    #[test]
    fn one_leads_at_a_time() {
        let (turns, durable) = (Turns::default(), AtomicU64::new(0));
        let durable_now = || durable.load(Ordering::SeqCst);
        let waiting = |count| {
            while turns.waiting() != count {
                thread::yield_now();
            }
        };
        let first = turns.wait(1, &durable_now);
        assert!(first.is_some());
        thread::scope(|scope| {
            let served = scope.spawn(|| turns.wait(2, &durable_now).is_none());
            waiting(1);
            let (leads, told) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let (line, now) = (&turns, &durable_now);
            scope.spawn(move || {
                let lead = line.wait(3, now);
                leads.send(lead.is_some()).unwrap();
                ended.into_iter().next();
            });
            waiting(2);
            durable.store(2, Ordering::SeqCst);
            drop(first);
            assert!(served.join().unwrap(), "what it needs is durable");
            assert!(told.recv().unwrap(), "the next in line leads");
            let late = scope.spawn(|| turns.wait(4, &durable_now).is_some());
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(turns.waiting(), 1, "somebody leads already");
            durable.store(3, Ordering::SeqCst);
            end.send(()).unwrap();
            assert!(late.join().unwrap(), "and then it is the late one's turn");
        });
    }
}
