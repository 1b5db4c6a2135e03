//! Ctrl-C in the shell cancels the running statement and keeps the shell, with its open transaction
//! or in-memory database. A second Ctrl-C during the same statement ends the process.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Exit code of a process ended by SIGINT, by shell convention (128 + 2).
const INTERRUPTED: i32 = 130;

/// Cancellation flags of the running statements.
static RUNNING: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Arc<AtomicBool>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the Ctrl-C handler. If that fails, Ctrl-C ends the process, as by default.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if interrupt() {
            process::exit(INTERRUPTED);
        }
    });
}

/// Cancels the running statements. Returns whether one of them had already been cancelled.
fn interrupt() -> bool {
    let mut again = false;
    running().iter().for_each(|flag| again |= flag.swap(true, Ordering::Relaxed));
    again
}

/// Guard that makes a statement cancellable by Ctrl-C until it is dropped.
pub struct Interruptible(Arc<AtomicBool>);

impl Interruptible {
    /// Clears the flag and registers it with the Ctrl-C handler.
    pub fn new(flag: Arc<AtomicBool>) -> Interruptible {
        flag.store(false, Ordering::Relaxed);
        running().push(flag.clone());
        Interruptible(flag)
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        running().retain(|flag| !Arc::ptr_eq(flag, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancels_running_statements_only() {
        let flags: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::new(AtomicBool::new(true))).collect();
        let set = |flags: &[Arc<AtomicBool>]| {
            flags.iter().map(|f| f.load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        let first = Interruptible::new(flags[0].clone());
        let second = Interruptible::new(flags[1].clone());
        assert_eq!(set(&flags), [false, false, true]);
        drop(second);
        assert!(!interrupt());
        assert_eq!(set(&flags), [true, false, true]);
        assert!(interrupt());
        drop(first);
        let _again = Interruptible::new(flags[0].clone());
        assert!(!interrupt());
    }
}
