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
    /// The origins of this branch, by their greatest writer, that keep nothing for it any more.
    pub released: Vec<u64>,
}

impl Collecting {
    /// Whether an origin keeps nothing for this branch any more.
    pub fn is_released(&self, origin: &Origin) -> bool {
        self.released.contains(&origin.up_to)
    }
}
