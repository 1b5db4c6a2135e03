//! What is known of blobs that are to be removed. `collect` removes them.

use crate::manifest::Origin;
use nacre_types::hash::Set;
use std::sync::Arc;

/// What is known of blobs to be removed.
#[derive(Default)]
pub(crate) struct Collecting {
    /// Blobs that nothing holds.
    pub targets: Vec<Arc<str>>,
    /// Blobs that the last look has found held.
    pub held: Set<Arc<str>>,
    /// No look is due before.
    pub next_ns: u64,
    /// No origin is asked to keep nothing more before: one has refused.
    pub release_ns: u64,
    /// The origin that has refused last, by its greatest writer: the next one has its turn.
    pub refused: Option<u64>,
    /// From when on it is looked for what earlier writers have left unnamed; `None` once that was done.
    pub sweep_ns: Option<u64>,
    /// The origins of this branch, by their greatest writer, that keep nothing for it any more.
    pub released: Vec<u64>,
}

/// Time from opening until it is looked for what earlier writers have left unnamed, in nanoseconds.
const SWEEP_AFTER_NS: u64 = 60_000_000_000;
/// One in this many writers looks at once: all others may end before.
const SWEEPS_AT_ONCE: u64 = 16;

impl Collecting {
    /// What the writer with a number begins with.
    pub fn of(writer: u64, now_ns: u64) -> Collecting {
        let is_soon = writer.is_multiple_of(SWEEPS_AT_ONCE);
        let sweep_ns = now_ns.saturating_add(if is_soon { 0 } else { SWEEP_AFTER_NS });
        Collecting { sweep_ns: (writer > 1).then_some(sweep_ns), ..Collecting::default() }
    }

    /// Whether an origin keeps nothing for this branch any more.
    pub fn is_released(&self, origin: &Origin) -> bool {
        self.released.contains(&origin.up_to)
    }
}
