//! Who syncs next, and who waits for it: the meeting place of group commit.
//!
//! At most one caller at a time *leads*: it takes what everybody appended so far, writes and syncs it. Callers that
//! come meanwhile join the open *group*. When a leader takes, it closes the group: what those in it appended is part
//! of what it takes, so that they are served together, and all woken by one signal, when its sync is done. Just
//! before, one of the group that was opened since is told to lead: the next sync starts at once and covers all that
//! was appended during this one.
//!
//! Invariants: leading ends by dropping [`Lead`], also by a panic, and never leaves somebody in the open group
//! without a leader. Who is woken and neither served nor told to lead (a sync failed, or it joined between a
//! leader's taking and its closing of the group) begins anew. Knows nothing of files.

use crate::sync::{Condvar, Mutex};
use crate::{Lsn, lock};
use std::sync::{Arc, PoisonError};

/// The meeting place.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// Whether somebody leads, or was told to.
    led: bool,
    /// The open group.
    open: Arc<Group>,
    /// How many joined it.
    joined: usize,
}

/// Callers that wait for the same signal.
#[derive(Default)]
struct Group {
    told: Mutex<Told>,
    bell: Condvar,
}

#[derive(Default)]
struct Told {
    /// One of the group is to lead.
    lead: bool,
    /// The leader that closed this group is done.
    done: bool,
}

impl Group {
    /// Waits; whether the caller is the one to lead.
    fn wait(&self) -> bool {
        let mut told = lock(&self.told);
        loop {
            if told.lead {
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
    /// Waits until either `lsn` is durable, answered with `None`, or it is the caller's turn to make it so.
    /// `durable` answers how far the log is durable; what a leader did shows in it before the leader ends.
    pub(crate) fn wait(&self, lsn: Lsn, durable: &dyn Fn() -> Lsn) -> Option<Lead<'_>> {
        loop {
            let group = {
                let mut queue = lock(&self.0);
                // Looked at under the lock: a leader that ended before has shown its work, a later one will see us.
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
    /// How many callers are in the open group.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).joined
    }
}

/// The right to sync, for as long as it lives.
pub(crate) struct Lead<'t> {
    turns: &'t Turns,
    closed: Option<Arc<Group>>,
}

impl Lead<'_> {
    /// Closes the open group. Called once what is appended has been taken: the group waits for its sync.
    pub(crate) fn taken(&mut self) {
        let mut queue = lock(&self.turns.0);
        queue.joined = 0;
        self.closed = Some(std::mem::take(&mut queue.open));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let next = {
            let mut queue = lock(&self.turns.0);
            queue.led = queue.joined > 0;
            queue.led.then(|| queue.open.clone())
        };
        if let Some(next) = next {
            lock(&next.told).lead = true;
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

    /// A leader that fails before it takes anything leaves the lead to the group that waits; the last of them leaves
    /// it to whoever comes.
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
