//! The surroundings of a plan node whose operator is being built.

use crate::parallel::PipelinePart;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;

/// What the nodes above require of a node, and what runs it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// Filters of joins above: rows that do not pass them may be left out.
    pub filters: &'a RuntimeFilters,
    /// On one of several threads: what the pipeline reads.
    pub part: Option<PipelinePart<'a>>,
    pub context: &'a Context<'a>,
}

impl<'a> Site<'a> {
    /// A node to which the nodes above pass only `filters`.
    pub fn of(filters: &'a RuntimeFilters, context: &'a Context<'a>) -> Site<'a> {
        Site { filters, part: None, context }
    }

    /// The same surroundings with other filters.
    pub fn with_filters(self, filters: &'a RuntimeFilters) -> Site<'a> {
        Site { filters, ..self }
    }
}
