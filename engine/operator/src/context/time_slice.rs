//! The time slice of a statement whose thread has other work to do.

use std::sync::atomic::{AtomicU64, Ordering};

/// No end: the statement runs until it is done.
const NEVER: u64 = u64::MAX;

/// When a statement must give way. An operator that notices it ends with
/// [`nacre_types::Error::time_slice_over`] and goes on when it is called again.
///
/// Only a caller that calls again sets an end, so the error reaches no other.
pub struct TimeSlice {
    /// On the host's monotonic clock.
    ends_ns: AtomicU64,
}

impl TimeSlice {
    /// A slice without an end.
    pub const fn endless() -> TimeSlice {
        TimeSlice { ends_ns: AtomicU64::new(NEVER) }
    }

    /// Runs a call that ends at this time of the host's monotonic clock.
    pub fn until<T>(&self, ends_ns: u64, call: impl FnOnce() -> T) -> T {
        debug_assert!(self.ends_ns.load(Ordering::Relaxed) == NEVER, "slices are nested");
        self.ends_ns.store(ends_ns, Ordering::Relaxed);
        let done = call();
        self.ends_ns.store(NEVER, Ordering::Relaxed);
        done
    }

    /// Whether it is over; looks at the clock only if there is an end.
    pub(super) fn is_over(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let ends_ns = self.ends_ns.load(Ordering::Relaxed);
        ends_ns != NEVER && now_ns() >= ends_ns
    }
}
