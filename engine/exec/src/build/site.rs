//! Where a node of a plan stands while its operator is built.

use crate::context::Context;
use crate::join_filter::RuntimeFilters;
use crate::parallel::PipelinePart;

/// What the nodes above have to say about a node, and what runs it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// Filters of joins above: rows that do not pass them may be left out.
    pub filters: &'a RuntimeFilters,
    /// On one of several threads: what the pipeline reads.
    pub part: Option<PipelinePart<'a>>,
    pub context: &'a Context<'a>,
}

impl<'a> Site<'a> {
    /// The place of a node about which the nodes above say nothing but `filters`.
    pub fn of(filters: &'a RuntimeFilters, context: &'a Context<'a>) -> Site<'a> {
        Site { filters, part: None, context }
    }

    /// The place of an input with these filters.
    pub fn with_filters(self, filters: &'a RuntimeFilters) -> Site<'a> {
        Site { filters, ..self }
    }
}
