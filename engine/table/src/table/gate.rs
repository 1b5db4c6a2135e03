//! Lets one caller look at the rows of a table while no commit changes them, without the commit
//! lock, which the commits of all tables need.
//!
//! A commit that changes a table passes its gate before it takes the commit lock. What has to see
//! the last change of a table closes the gate: a change of the schema with rules that all rows must
//! satisfy, and a load that writers overtake again and again. Only threads that change this table
//! wait meanwhile. Between two steps of background work or of a load, and between two statements, no
//! gate is passed or closed, so a host with one thread never waits.

use nacre_types::invariant;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The gate of a table, in all its versions.
#[derive(Default)]
pub(crate) struct Gate {
    /// How many commits have passed it and are not done.
    passing: AtomicUsize,
    is_closed: AtomicBool,
    /// The same, to wait for a change of either.
    closed: Mutex<bool>,
    changed: Condvar,
}

/// The right of a commit to change the table. To be held until the change is made.
pub(crate) struct Passing(Arc<Gate>);

/// A closed gate, opened when this is dropped.
pub(crate) struct Closed(Arc<Gate>);

/// Gates of several tables.
#[derive(Default)]
pub(crate) struct Gates {
    passing: Vec<Passing>,
    closed: Vec<Closed>,
}

impl Gate {
    fn guard(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the gate, once it is open. The caller must not hold the commit lock, nor this gate.
    pub fn pass(self: &Arc<Self>) -> Passing {
        loop {
            self.passing.fetch_add(1, Ordering::SeqCst);
            // Either this finds the gate closed, or the one that closes it finds the passing commit.
            if !self.is_closed.load(Ordering::SeqCst) {
                return Passing(self.clone());
            }
            self.leave();
            let mut closed = self.guard();
            while *closed {
                closed = self.wait(closed);
            }
        }
    }

    fn leave(&self) {
        let before = self.passing.fetch_sub(1, Ordering::SeqCst);
        invariant!(before > 0, "a commit leaves a gate that it has not passed");
        if before == 1 && self.is_closed.load(Ordering::SeqCst) {
            // Under the lock: the one that waits has either seen the count, or hears this.
            let _guard = self.guard();
            self.changed.notify_all();
        }
    }

    /// Whether commits wait for it.
    #[cfg(test)]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Closes the gate, and waits until no commit is passing. The caller must not hold the commit
    /// lock, nor this gate.
    pub fn close(self: &Arc<Self>) -> Closed {
        let mut closed = self.guard();
        while *closed {
            closed = self.wait(closed);
        }
        *closed = true;
        self.is_closed.store(true, Ordering::SeqCst);
        while self.passing.load(Ordering::SeqCst) > 0 {
            closed = self.wait(closed);
        }
        debug_assert!(*closed, "a gate was opened by another than the one that closed it");
        Closed(self.clone())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut closed = self.0.guard();
        invariant!(*closed, "a gate is opened that is not closed");
        *closed = false;
        self.0.is_closed.store(false, Ordering::SeqCst);
        self.0.changed.notify_all();
    }
}

impl Gates {
    /// Passes gates, each once however often it is given, and closes others. In one order for all
    /// callers, so that two of them never wait for each other.
    pub fn take<'a>(pass: impl Iterator<Item = &'a Arc<Gate>>, close: &[&Arc<Gate>]) -> Gates {
        let mut all: Vec<(&Arc<Gate>, bool)> = close.iter().map(|gate| (*gate, true)).collect();
        for gate in pass {
            if all.iter().rev().all(|(known, _)| !Arc::ptr_eq(known, gate)) {
                all.push((gate, false));
            }
        }
        all.sort_unstable_by_key(|(gate, _)| Arc::as_ptr(gate));
        debug_assert!(
            all.windows(2).all(|pair| !Arc::ptr_eq(pair[0].0, pair[1].0)),
            "a gate is closed twice"
        );
        let mut gates = Gates::default();
        for (gate, closes) in all {
            match closes {
                true => gates.closed.push(gate.close()),
                false => gates.passing.push(gate.pass()),
            }
        }
        gates
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn nothing_passes_a_closed_gate() {
        let gates: [Arc<Gate>; 2] = Default::default();
        let inside = [AtomicU32::new(0), AtomicU32::new(0)];
        std::thread::scope(|scope| {
            for own in 0..4 {
                let (gates, inside) = (&gates, &inside);
                scope.spawn(move || {
                    for round in 0..2_000 {
                        let (a, b) = ((own + round) % 2, (own + round + 1) % 2);
                        let taken = match round % 3 {
                            0 => Gates::take([&gates[a]].into_iter(), &[&gates[b]]),
                            _ => Gates::take([&gates[a], &gates[b], &gates[a]].into_iter(), &[]),
                        };
                        if taken.closed.is_empty() {
                            assert_eq!(taken.passing.len(), 2);
                            inside[b].fetch_add(1, Ordering::SeqCst);
                            std::hint::spin_loop();
                            inside[b].fetch_sub(1, Ordering::SeqCst);
                        } else {
                            let others = inside[b].load(Ordering::SeqCst);
                            assert_eq!(others, 0, "a commit is inside of a closed gate");
                        }
                    }
                });
            }
        });
        assert_eq!(gates[0].passing.load(Ordering::SeqCst), 0);
        drop((gates[0].close(), gates[1].close()));
    }
}
