//! What is known of the lease of a database that only reads. `lease` renews it.

use nacre_host::{LeaseState, Tag};

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
    /// How it is at a time.
    pub fn state(&self, now_ns: u64) -> LeaseState {
        match self.until_ns {
            Some(until_ns) if now_ns < until_ns => LeaseState::Held,
            _ if self.is_refused => LeaseState::Refused,
            _ if self.is_lost || self.until_ns.is_some() => LeaseState::Lost,
            _ => LeaseState::None,
        }
    }

    /// Lets the next call come at once, unless it is held.
    pub fn hurry(&mut self, now_ns: u64) {
        if self.state(now_ns) != LeaseState::Held && !self.is_refused {
            self.next_ns = 0;
        }
    }
}
