//! Cancels statements that take too long; one that does not react is a finding.
//!
//! Otherwise results do not depend on time: a cancelled statement counts as a failed one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time after which a statement is cancelled.
const CANCEL: Duration = Duration::from_secs(2);
/// Time within which it must then stop.
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

/// Runs cancellable work.
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
