//! The positions of named followers: what they have not confirmed stays in the log although a
//! snapshot stands for it, up to a number of bytes each.
//!
//! Kept in memory only. Recovery keeps what it needs itself, so a follower that has fallen behind
//! the newest snapshot starts again from that one after a restart.

use crate::position::Lsn;
use nacre_types::invariant;

/// The followers of a log.
#[derive(Default)]
pub(crate) struct Followers(Vec<Held>);

/// What is held for one follower.
struct Held {
    name: String,
    /// Everything before this position is confirmed.
    position: Lsn,
    /// Maximum number of bytes between its position and a snapshot that would otherwise allow them
    /// to be removed.
    max_bytes: u64,
}

impl Followers {
    /// Holds the log from a position on, in place of what was held under this name before.
    pub(crate) fn hold(&mut self, name: &str, position: Lsn, max_bytes: u64) {
        self.remove(name);
        self.0.push(Held { name: name.to_string(), position, max_bytes });
        debug_assert!(self.position(name) == Some(position), "follower {name} is held elsewhere");
    }

    /// The position up to which a follower has confirmed; `None` if nothing is held for it.
    pub(crate) fn position(&self, name: &str) -> Option<Lsn> {
        self.0.iter().find(|held| held.name == name).map(|held| held.position)
    }

    /// Notes that a follower needs nothing before a position. Returns whether anything is held for
    /// it.
    pub(crate) fn confirm(&mut self, name: &str, position: Lsn) -> bool {
        let Some(held) = self.0.iter_mut().find(|held| held.name == name) else { return false };
        held.position = held.position.max(position);
        true
    }

    /// Holds nothing for a follower any more.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|held| held.name != name);
    }

    /// The position from which on the log is needed, given that a snapshot stands for everything
    /// before `at`. Gives up followers that need more bytes before `at` than they may.
    pub(crate) fn keep_from(&mut self, at: Lsn) -> Lsn {
        self.0.retain(|held| at.saturating_sub(held.position) <= held.max_bytes);
        let from = self.0.iter().map(|held| held.position).fold(at, Lsn::min);
        invariant!(from <= at, "the log is kept from {from} on, and the snapshot at {at} needs it");
        from
    }

    /// Names and positions.
    pub(crate) fn list(&self) -> Vec<(String, Lsn)> {
        self.0.iter().map(|held| (held.name.clone(), held.position)).collect()
    }
}
