//! Group commit: elects the next caller to sync and wakes the callers served by a sync.
//!
//! At most one caller at a time *leads*: it takes all records appended so far, writes and syncs
//! them. Callers that arrive meanwhile join the open *group*. When a leader takes the records it
//! closes the group: the records of its members are among those taken, so one sync serves them all,
//! and one signal wakes them. Just before that, one member of the group opened since is elected
//! leader: the next sync starts at once and covers everything appended during this one.
//!
//! Invariants: leading ends when [`Lead`] is dropped, even by a panic, and never leaves the open
//! group without a leader. A caller that is woken but neither served nor elected (a sync failed, or
//! the caller joined after a leader took the records and before it closed the group) starts over.
//! Does no file I/O.

use crate::position::Lsn;
use crate::sync::{Condvar, Mutex, lock};
use std::sync::{Arc, PoisonError};

/// The election of leaders and the groups of waiting callers.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Whether a caller leads or has been elected.
    led: bool,
    /// The open group.
    open: Arc<Group>,
    /// Number of callers in the open group.
    joined: usize,
}

/// Callers waiting for the same signal.
#[derive(Default)]
struct Group {
    told: Mutex<Told>,
    bell: Condvar,
}

#[derive(Default)]
struct Told {
    /// A member of the group has been elected leader.
    lead: bool,
    /// The leader that closed this group is done.
    done: bool,
}

impl Group {
    /// Waits. Returns `true` if the caller is elected leader.
    fn wait(&self) -> bool {
        let mut told = lock(&self.told);
        loop {
            if told.lead {
                debug_assert!(!told.done, "a group that was served has a leader");
                told.lead = false;
                return true;
            }
            if told.done {
                return false;
            }
            told = self.bell.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Turns {
    /// Waits until `lsn` is durable (returns `None`) or the caller is elected to make it durable.
    /// `durable` returns the durable position, which includes a leader's sync before that leader
    /// ends.
    pub(crate) fn wait(&self, lsn: Lsn, durable: &dyn Fn() -> Lsn) -> Option<Lead<'_>> {
        loop {
            let group = {
                let mut queue = lock(&self.0);
                // Checked under the lock: a leader that has ended has published its sync, and a
                // later leader will see this caller.
                if durable() >= lsn {
                    return None;
                }
                if !queue.led {
                    queue.led = true;
                    return Some(Lead { turns: self, closed: None });
                }
                queue.joined += 1;
                queue.open.clone()
            };
            if group.wait() {
                return Some(Lead { turns: self, closed: None });
            }
            if durable() >= lsn {
                return None;
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
impl Turns {
    /// Number of callers in the open group.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).joined
    }
}

/// The right to sync; dropping it ends the lead.
pub(crate) struct Lead<'t> {
    turns: &'t Turns,
    closed: Option<Arc<Group>>,
}

impl Lead<'_> {
    /// Closes the open group, whose members wait for this leader's sync. Call it once the appended
    /// records have been taken.
    pub(crate) fn taken(&mut self) {
        let mut queue = lock(&self.turns.0);
        debug_assert!(queue.led, "a group is closed without a leader");
        debug_assert!(self.closed.is_none(), "a leader takes once");
        queue.joined = 0;
        self.closed = Some(std::mem::take(&mut queue.open));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let next = {
            let mut queue = lock(&self.turns.0);
            debug_assert!(queue.led, "a leader ends that did not lead");
            queue.led = queue.joined > 0;
            queue.led.then(|| queue.open.clone())
        };
        if let Some(next) = next {
            let mut told = lock(&next.told);
            debug_assert!(!told.lead, "a group has two leaders");
            told.lead = true;
            drop(told);
            next.bell.notify_one();
        }
        if let Some(closed) = self.closed.take() {
            lock(&closed.told).done = true;
            closed.bell.notify_all();
        }
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

    /// A caller that was served does not end another caller's lead: while one leads, later callers
    /// wait.
    #[test]
    fn one_leads_at_a_time() {
        let (turns, durable) = (Turns::default(), AtomicU64::new(0));
        let durable_now = || durable.load(Ordering::SeqCst);
        let waiting = |count| {
            while turns.waiting() != count {
                thread::yield_now();
            }
        };
        let mut first = turns.wait(1, &durable_now).unwrap();
        thread::scope(|scope| {
            let served = scope.spawn(|| turns.wait(2, &durable_now).is_none());
            waiting(1);
            first.taken();
            let (leads, told) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let (line, now) = (&turns, &durable_now);
            scope.spawn(move || {
                let mut lead = line.wait(3, now);
                lead.iter_mut().for_each(Lead::taken);
                leads.send(lead.is_some()).unwrap();
                ended.into_iter().next();
            });
            waiting(1);
            durable.store(2, Ordering::SeqCst);
            drop(first);
            assert!(served.join().unwrap(), "its position is durable");
            assert!(told.recv().unwrap(), "the next caller leads");
            let late = scope.spawn(|| turns.wait(4, &durable_now).is_some());
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(turns.waiting(), 1, "another caller leads");
            durable.store(3, Ordering::SeqCst);
            end.send(()).unwrap();
            assert!(late.join().unwrap(), "then the late caller leads");
        });
    }

    /// A leader that fails before it takes anything passes the lead to the waiting group; the last
    /// of its members leaves it to the next caller.
    #[test]
    fn a_lead_without_success_passes_on() {
        let turns = Turns::default();
        let nothing = || 0;
        let first = turns.wait(1, &nothing);
        thread::scope(|scope| {
            let others: Vec<_> = (2..5)
                .map(|lsn| {
                    scope.spawn({
                        let turns = &turns;
                        move || turns.wait(lsn, &nothing).is_some()
                    })
                })
                .collect();
            while turns.waiting() != 3 {
                thread::yield_now();
            }
            drop(first);
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
        assert!(turns.wait(9, &nothing).is_some());
    }
}
