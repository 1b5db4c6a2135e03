//! Waits for absent bytes inside the read that misses them.
//!
//! Opening and binding hold state that cannot be called again after an error; the first rounds of a
//! load would only repeat much. Where the host's threads can block, they run inside [`waiting`], and a
//! read of theirs fetches what it misses itself. Where threads cannot block, the miss is their error,
//! as any other failed read.

use crate::fetched::Fetched;
use crate::{LocalStore, Parallelism};
use nacre_types::{Error, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// What a read needs in order to wait.
#[derive(Clone)]
struct Means {
    store: Arc<dyn LocalStore>,
    threads: Arc<dyn Parallelism>,
}

thread_local! {
    static MEANS: RefCell<Option<Means>> = const { RefCell::new(None) };
}

/// Restores the means of the scope around on drop.
struct Scope(Option<Means>);

impl Drop for Scope {
    fn drop(&mut self) {
        MEANS.replace(self.0.take());
    }
}

/// Runs `work`, whose reads on this thread wait for absent bytes.
pub fn waiting<T>(
    store: &Arc<dyn LocalStore>,
    threads: &Arc<dyn Parallelism>,
    work: impl FnOnce() -> T,
) -> T {
    let means = Means { store: store.clone(), threads: threads.clone() };
    let _scope = Scope(MEANS.replace(Some(means)));
    work()
}

/// Runs `work`, whose reads on this thread do not wait.
pub fn not_waiting<T>(work: impl FnOnce() -> T) -> T {
    let _scope = Scope(MEANS.take());
    work()
}

/// Whether reads on this thread wait.
pub fn is_waiting() -> bool {
    MEANS.with_borrow(Option::is_some)
}

/// Reads, again if need be: within [`waiting`] what the read misses is fetched, and stays resident
/// until the read has ended. Elsewhere it fails with the miss.
pub fn read(mut read: impl FnMut() -> Result<()>) -> Result<()> {
    match read() {
        Err(error) if error.missing().is_some() => again(error, &mut read),
        done => done,
    }
}

/// Like [`read`], for a call that reads several things and ends with all that they miss: within [`waiting`] they
/// do not wait one by one.
pub fn read_together(mut call: impl FnMut() -> Result<()>) -> Result<()> {
    read(|| not_waiting(&mut call))
}

#[cold]
fn again(error: Error, read: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let Some(Means { store, threads }) = MEANS.with_borrow(Clone::clone) else {
        return Err(error);
    };
    let mut fetched = Fetched::default();
    let mut error = error;
    loop {
        fetched.resolve_now(error, &*store, &*threads)?;
        error = match read() {
            Err(error) if error.missing().is_some() => error,
            done => return done,
        };
    }
}
