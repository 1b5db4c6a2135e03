//! The system's clocks, and the timer thread that wakes sleepers.
//!
//! A sleep works in any executor: the timer thread, which the first sleep of the process starts,
//! calls its waker.

use nacre_host::Clock;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The system's clocks. Monotonic time starts at 0 when the clock is created.
///
/// ```
/// use nacre_host::Clock;
/// use nacre_native::NativeClock;
///
/// let clock = NativeClock::new();
/// let start_ns = clock.monotonic_ns();
/// assert!(clock.monotonic_ns() >= start_ns);
/// ```
pub struct NativeClock {
    start: Instant,
}

impl NativeClock {
    /// Creates a clock that starts at zero.
    pub fn new() -> NativeClock {
        NativeClock { start: Instant::now() }
    }
}

impl Default for NativeClock {
    fn default() -> NativeClock {
        NativeClock::new()
    }
}

impl Clock for NativeClock {
    fn monotonic_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wall_us(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_micros() as i64,
            Err(before) => -(before.duration().as_micros() as i64),
        }
    }

    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // A time that the system cannot represent is never reached.
        Box::pin(Sleep {
            at: self.start.checked_add(Duration::from_nanos(monotonic_ns)),
            ticket: None,
        })
    }
}

struct Sleep {
    at: Option<Instant>,
    ticket: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        if Instant::now() >= at {
            return Poll::Ready(());
        }
        self.ticket = Some(TIMER.set(self.ticket, at, context.waker()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(at), Some(ticket)) = (self.at, self.ticket) {
            TIMER.lock().sleepers.remove(&(at, ticket));
        }
    }
}

/// The sleepers of the process, by wake-up time.
static TIMER: Timer = Timer {
    state: Mutex::new(TimerState { sleepers: BTreeMap::new(), next_ticket: 0, running: false }),
    changed: Condvar::new(),
};

struct Timer {
    state: Mutex<TimerState>,
    changed: Condvar,
}

struct TimerState {
    sleepers: BTreeMap<(Instant, u64), Waker>,
    next_ticket: u64,
    running: bool,
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, ticket: Option<u64>, at: Instant, waker: &Waker) -> u64 {
        let mut state = self.lock();
        let ticket = ticket.unwrap_or_else(|| {
            state.next_ticket += 1;
            state.next_ticket
        });
        state.sleepers.insert((at, ticket), waker.clone());
        if !state.running {
            // If the system refuses a thread, the next sleep tries again, and `block_on` polls
            // periodically.
            let thread = std::thread::Builder::new().name("nacre-timer".to_string());
            state.running = thread.spawn(|| TIMER.run()).is_ok();
        }
        if state.sleepers.keys().next() == Some(&(at, ticket)) {
            self.changed.notify_one();
        }
        ticket
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let later = state.sleepers.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut state.sleepers, later);
            if !due.is_empty() {
                drop(state);
                due.into_values().for_each(Waker::wake);
                state = self.lock();
                continue;
            }
            let wait =
                state.sleepers.keys().next().map(|(at, _)| at.saturating_duration_since(now));
            state = match wait {
                Some(wait) => {
                    self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
