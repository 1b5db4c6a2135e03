//! The state of unnesting one statement.

use crate::plan::Plan;
use nacre_types::hash::Map;
use std::sync::Arc;

pub(super) struct Unnester<'n> {
    pub(super) numbers: &'n mut u32,
    /// Shared plans already unnested.
    pub(super) shared: Map<u32, Arc<Plan>>,
    /// Shared plans already computed over a domain: the plan's number, the domain's number, the new
    /// plan's number, and the new plan.
    pub(super) spreads: Vec<(u32, u32, u32, Arc<Plan>)>,
}

impl<'n> Unnester<'n> {
    pub(super) fn new(numbers: &'n mut u32) -> Unnester<'n> {
        Unnester { numbers, shared: Map::default(), spreads: Vec::new() }
    }

    pub(super) fn number(&mut self) -> u32 {
        *self.numbers += 1;
        *self.numbers
    }
}
