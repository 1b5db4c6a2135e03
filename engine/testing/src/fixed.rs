//! A host without surprises: time advances by a microsecond per look, randomness counts up through
//! a hash, tasks run one after another.

use crate::absent::Absent;
use nacre_host::{
    Background, BackgroundTask, Clock, Entropy, Fetch, Host, LocalStore, Parallelism, Resident,
    Result,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

/// Clock, entropy and parallelism that are the same in every run.
pub struct Fixed(AtomicU64);

impl Default for Fixed {
    fn default() -> Fixed {
        Fixed(AtomicU64::new(1))
    }
}

impl Clock for Fixed {
    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
    fn wall_us(&self) -> i64 {
        0
    }
    fn sleep_until(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

impl Entropy for Fixed {
    fn next_u64(&self) -> u64 {
        nacre_types::hash::hash_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Parallelism for Fixed {
    fn width(&self) -> usize {
        1
    }
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        Some(wait(fetch))
    }
}

/// Waits for a fetch by asking for it again and again.
pub fn wait(mut fetch: Fetch<'_>) -> Result<Resident> {
    loop {
        if let Poll::Ready(outcome) = fetch.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return outcome;
        }
    }
}

/// The threads of a host, without its background thread.
struct Callers {
    threads: Arc<dyn Parallelism>,
    /// Whether the host has one, which the system refuses when it is wanted.
    is_refused: bool,
}

impl Parallelism for Callers {
    fn width(&self) -> usize {
        self.threads.width()
    }
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.threads.run(count, task);
    }
    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        self.threads.wait(fetch)
    }
    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        drop(task);
        self.is_refused.then(|| Box::new(Refused) as Box<dyn Background>)
    }
}

/// A background thread that the system refuses.
struct Refused;

impl Background for Refused {
    fn wake(&self) -> bool {
        false
    }
}

/// Threads that wait for absent bytes only now and then, or never.
struct Reluctant {
    threads: Arc<dyn Parallelism>,
    asked: AtomicU64,
    /// How many of three fetches are not waited for.
    refuses: u64,
}

impl Parallelism for Reluctant {
    fn width(&self) -> usize {
        self.threads.width()
    }
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.threads.run(count, task);
    }
    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        let waits = self.asked.fetch_add(1, Ordering::Relaxed) % 3 >= self.refuses;
        waits.then(|| wait(fetch))
    }
    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        self.threads.background(task)
    }
}

/// A host whose threads wait for absent bytes in two of three cases only, as those of a browser
/// never do: calls that missed something must be repeated as a whole, too.
pub fn reluctant(host: Host) -> Host {
    refusing(host, 1)
}

/// A host whose threads never wait for absent bytes.
pub fn unblocked(host: Host) -> Host {
    refusing(host, 3)
}

fn refusing(host: Host, refuses: u64) -> Host {
    let (threads, asked) = (host.parallelism, AtomicU64::new(0));
    Host { parallelism: Arc::new(Reluctant { threads, asked, refuses }), ..host }
}

/// A host whose files lack parts of their bytes, by a seed. Everything is absent when it is read
/// first, and evicted before three of ten reads.
pub fn lacking(host: Host, seed: u64) -> (Host, Arc<Absent>) {
    let files = Absent::new(host.store, seed, |name| {
        // The log and temporary files are always there.
        ["seg-", "hsh-", "idx-"].iter().any(|prefix| name.starts_with(prefix))
    });
    files.deny(100, 30);
    (Host { store: files.clone(), ..host }, files)
}

/// A host whose callers do the background work, so that a test finds the segments and files that
/// the statement before it has left.
pub fn without_background(host: Host) -> Host {
    calling(host, false)
}

/// A host to which the system refuses a background thread.
pub fn with_refused_background(host: Host) -> Host {
    calling(host, true)
}

fn calling(host: Host, is_refused: bool) -> Host {
    let callers = Callers { threads: host.parallelism, is_refused };
    Host { parallelism: Arc::new(callers), ..host }
}

/// A fixed host on these files.
pub fn host(files: Arc<dyn LocalStore>) -> Host {
    let fixed = Arc::new(Fixed::default());
    Host { store: files, clock: fixed.clone(), entropy: fixed.clone(), parallelism: fixed }
}
