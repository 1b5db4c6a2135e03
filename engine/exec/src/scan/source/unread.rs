//! The segments that a scan has not read yet. Those whose rows are outside of what the filters allow
//! for the columns that order a table are never visited.

use super::columns::StoredColumns;
use crate::context::Context;
use crate::scan::filter::order_range::order_range;
use crate::scan::filter::prune::Prune;
use nacre_table::{SegmentView, SegmentWalk, TableView};
use nacre_types::Result;

/// Segments of a view, in scan order.
pub(super) struct Unread {
    view: TableView,
    /// `None` until the first segment is asked for.
    walk: Option<SegmentWalk>,
    next: Option<SegmentView>,
}

impl Unread {
    /// All segments of a view.
    pub fn new(view: TableView) -> Unread {
        Unread { view, walk: None, next: None }
    }

    /// The view.
    pub fn view(&self) -> &TableView {
        &self.view
    }

    /// The next segment, which stays the next one until [`Unread::advance`].
    pub fn peek(
        &mut self,
        columns: &StoredColumns,
        prune: &Prune,
        context: &Context<'_>,
    ) -> Result<Option<SegmentView>> {
        if self.walk.is_none() {
            self.walk = Some(self.begin(columns, prune, context)?);
        }
        if self.next.is_none() {
            self.next = self.walk.as_mut().and_then(|walk| self.view.next_segment(walk));
        }
        Ok(self.next.clone())
    }

    /// Moves past the next segment.
    pub fn advance(&mut self) {
        debug_assert!(self.next.is_some(), "a walk moves past a segment that it did not return");
        self.next = None;
    }

    fn begin(
        &self,
        columns: &StoredColumns,
        prune: &Prune,
        context: &Context<'_>,
    ) -> Result<SegmentWalk> {
        let order = self.view.order_columns();
        let range = order_range(columns.schema(), columns.projection(), &order, prune);
        let walk = match range {
            _ if prune.is_closed() => SegmentWalk::default(),
            Some(range) => self.view.walk_range(&range)?,
            None => return Ok(self.view.walk()),
        };
        let (all, left) = (self.view.count(), self.view.count_of(&walk));
        context.statistics.segments_skipped.add(all.segments - left.segments);
        context.statistics.blocks_skipped.add(all.blocks - left.blocks);
        Ok(walk)
    }
}
