//! Ctrl-C in the shell: it ends the statement that runs, not the shell, with its open transaction or its database in
//! memory. Whoever presses it again because nothing happened ends the process.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a shell says that was ended by the signal.
const INTERRUPTED: i32 = 130;

/// Flags of what runs.
static RUNNING: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Arc<AtomicBool>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on Ctrl-C only does what is said here. Where that cannot be had it ends the process, as ever.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if interrupt() {
            process::exit(INTERRUPTED);
        }
    });
}

/// Ends what runs; answers whether that had been done before, in vain.
fn interrupt() -> bool {
    let mut again = false;
    running().iter().for_each(|flag| again |= flag.swap(true, Ordering::Relaxed));
    again
}

/// Something that Ctrl-C ends while this lives.
pub struct Interruptible(Arc<AtomicBool>);

impl Interruptible {
    /// By this flag, which is taken back first.
    pub fn by(flag: Arc<AtomicBool>) -> Interruptible {
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
    fn what_runs_is_ended_and_nothing_else() {
        let flags: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::new(AtomicBool::new(true))).collect();
        let set = |flags: &[Arc<AtomicBool>]| {
            flags.iter().map(|f| f.load(Ordering::Relaxed)).collect::<Vec<_>>()
        };
        let first = Interruptible::by(flags[0].clone());
        let second = Interruptible::by(flags[1].clone());
        assert_eq!(set(&flags), [false, false, true]);
        drop(second);
        assert!(!interrupt());
        assert_eq!(set(&flags), [true, false, true]);
        assert!(interrupt());
        drop(first);
        let _again = Interruptible::by(flags[0].clone());
        assert!(!interrupt());
    }
}
