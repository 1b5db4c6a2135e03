//! Simulated time and randomness.
//!
//! Time advances only explicitly: each file call takes some, and the scheduler advances it when all
//! sessions sleep. Monotonic time never goes back; wall time may jump.

use nacre_testing::Random;
use nacredb::host::{Clock, Entropy};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A clock that stands still unless it is advanced.
#[derive(Default)]
pub struct SimClock {
    now_ns: AtomicU64,
    wall_offset_us: AtomicI64,
    sleepers: Mutex<Vec<(u64, Waker)>>,
}

impl SimClock {
    /// Advances time and wakes the sleepers whose time has come.
    pub fn advance_us(&self, us: u64) {
        let now = self.now_ns.fetch_add(us * 1_000, Ordering::Relaxed) + us * 1_000;
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.retain(|(until, waker)| {
            let due = *until <= now;
            if due {
                waker.wake_by_ref();
            }
            !due
        });
    }

    /// Moves wall time only.
    pub fn jump_wall(&self, us: i64) {
        self.wall_offset_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Advances to the first sleeper's time and wakes it. Returns `false` if there is none.
    pub fn advance_to_sleeper(&self) -> bool {
        let first = {
            let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            sleepers.iter().map(|(until, _)| *until).min()
        };
        let Some(first) = first else { return false };
        let now = self.now_ns.load(Ordering::Relaxed);
        self.advance_us(first.saturating_sub(now).div_ceil(1_000) + 1);
        true
    }

    /// Removes all sleepers after their futures were dropped.
    pub fn forget_sleepers(&self) {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Clock for SimClock {
    fn monotonic_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn wall_us(&self) -> i64 {
        let since = (self.now_ns.load(Ordering::Relaxed) / 1_000) as i64;
        1_780_000_000_000_000 + since + self.wall_offset_us.load(Ordering::Relaxed)
    }

    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Sleep { clock: self, until: monotonic_ns })
    }
}

struct Sleep<'a> {
    clock: &'a SimClock,
    until: u64,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.monotonic_ns() >= self.until {
            return Poll::Ready(());
        }
        let mut sleepers = self.clock.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.push((self.until, context.waker().clone()));
        Poll::Pending
    }
}

/// Randomness derived from a seed.
pub struct SimEntropy(Mutex<Random>);

impl SimEntropy {
    /// Creates the randomness of a seed.
    pub fn new(seed: u64) -> Arc<SimEntropy> {
        Arc::new(SimEntropy(Mutex::new(Random::with_purpose(seed, "entropy"))))
    }
}

impl Entropy for SimEntropy {
    fn next_u64(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }
}
