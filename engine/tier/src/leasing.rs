//! What is known of the lease of a database that only reads. `lease` renews it.

use nacre_host::{Clock, LeaseState, Tag};

/// The lease of a reader.
#[derive(Default)]
pub(crate) struct Leasing {
    /// Its identity; 0 before the first one.
    pub id: u64,
    /// Of the blob that was written last.
    pub tag: Option<Tag>,
    pub renewals: u64,
    /// Until when it holds, once it does.
    pub until_ns: Option<u64>,
    /// The same by the wall clock, which goes on while the machine sleeps.
    pub until_us: i64,
    /// When the next call is due.
    pub next_ns: u64,
    pub failures: u32,
    /// Whether it was held, and then not renewed in time.
    pub is_lost: bool,
    /// Whether the blob store refuses it.
    pub is_refused: bool,
    /// Whether the reader has closed.
    pub is_over: bool,
    /// The lowest position at which something reads; what the newest manifest has if nothing says so.
    pub needs: Option<u64>,
}

impl Leasing {
    /// How it is now.
    pub fn state(&self, clock: &dyn Clock) -> LeaseState {
        let is_early =
            |until_ns| clock.monotonic_ns() < until_ns && clock.wall_us() < self.until_us;
        match self.until_ns {
            Some(until_ns) if is_early(until_ns) => LeaseState::Held,
            _ if self.is_refused => LeaseState::Refused,
            _ if self.is_lost || self.until_ns.is_some() => LeaseState::Lost,
            _ => LeaseState::None,
        }
    }

    /// Lets the next call come at once, unless it is held.
    pub fn hurry(&mut self, clock: &dyn Clock) {
        if self.state(clock) != LeaseState::Held && !self.is_refused {
            self.next_ns = 0;
        }
    }
}
