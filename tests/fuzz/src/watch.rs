//! Statements that take too long are cancelled; one that does not hear it is a finding.
//!
//! Time is no part of what a target decides otherwise: a cancelled statement is a statement that failed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// After this a statement is asked to stop.
const CANCEL: Duration = Duration::from_secs(2);
/// So long after that it has to have stopped.
const GRACE: Duration = Duration::from_secs(30);

type Watched = Option<(Instant, Arc<AtomicBool>, String)>;

fn watched() -> &'static Mutex<Vec<Watched>> {
    static WATCHED: OnceLock<Mutex<Vec<Watched>>> = OnceLock::new();
    WATCHED.get_or_init(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let slots = watched().lock().unwrap_or_else(PoisonError::into_inner);
                for (since, flag, what) in slots.iter().flatten() {
                    if since.elapsed() > CANCEL {
                        flag.store(true, Ordering::Relaxed);
                    }
                    if since.elapsed() > CANCEL + GRACE {
                        eprintln!("does not hear that it is cancelled: {what}");
                        std::process::abort();
                    }
                }
            }
        });
        Mutex::new(Vec::new())
    })
}

/// Runs something that can be cancelled.
pub fn within<T>(flag: Arc<AtomicBool>, what: &str, work: impl FnOnce() -> T) -> T {
    let lock = || watched().lock().unwrap_or_else(PoisonError::into_inner);
    let entry = Some((Instant::now(), flag.clone(), what.to_string()));
    let at = {
        let mut slots = lock();
        match slots.iter().position(Option::is_none) {
            Some(at) => {
                slots[at] = entry;
                at
            }
            None => {
                slots.push(entry);
                slots.len() - 1
            }
        }
    };
    let result = work();
    lock()[at] = None;
    flag.store(false, Ordering::Relaxed);
    result
}
