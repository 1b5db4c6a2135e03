//! A host with one thread, whose statements must give way after a few looks at the clock.

use crate::random::Random;
use nacre_host::{Background, BackgroundTask, Clock, Fetch, Host, Parallelism, Resident, Result};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

/// The length of a time slice, and what a look at the clock advances it by at most: from one look
/// to as many pass in a slice, so that calls that check several times before they have done
/// anything get on.
const SLICE_NS: u64 = 8;

/// The clock and the thread of a host whose statements give way often.
pub struct Slicing {
    clock: Arc<dyn Clock>,
    threads: Arc<dyn Parallelism>,
    random: Mutex<Random>,
    now_ns: AtomicU64,
    given_way: AtomicU64,
}

impl Slicing {
    /// How often statements have given way.
    pub fn given_way(&self) -> u64 {
        self.given_way.load(Ordering::Relaxed)
    }
}

impl Clock for Slicing {
    fn monotonic_ns(&self) -> u64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        self.now_ns.fetch_add(1 + random.below(SLICE_NS), Ordering::Relaxed)
    }
    fn wall_us(&self) -> i64 {
        self.clock.wall_us()
    }
    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.now_ns.fetch_max(monotonic_ns, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

impl Parallelism for Slicing {
    fn width(&self) -> usize {
        1
    }
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        self.threads.wait(fetch)
    }
    fn time_slice_ns(&self) -> Option<u64> {
        Some(SLICE_NS)
    }
    fn give_way(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.given_way.fetch_add(1, Ordering::Relaxed);
        // Pending once, as where an event loop runs other tasks.
        let mut is_over = false;
        Box::pin(poll_fn(move |context| {
            if std::mem::replace(&mut is_over, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        self.threads.background(task)
    }
}

/// A host with one thread, whose statements give way often, to a seed.
pub fn slicing(host: Host, seed: u64) -> (Host, Arc<Slicing>) {
    let slicing = Arc::new(Slicing {
        clock: host.clock,
        threads: host.parallelism,
        random: Mutex::new(Random::with_purpose(seed, "slices")),
        now_ns: AtomicU64::new(1),
        given_way: AtomicU64::new(0),
    });
    (Host { clock: slicing.clone(), parallelism: slicing.clone(), ..host }, slicing)
}
