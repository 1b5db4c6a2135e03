//! The segments that a scan has not read yet. Those whose rows are outside of what the filters allow
//! for the columns that order a table are never visited.

use super::columns::StoredColumns;
use crate::context::Context;
use crate::scan::filter::order_range::order_range;
use crate::scan::filter::prune::Prune;
use nacre_table::{KeyRange, SegmentView, SegmentWalk, TableView};
use nacre_types::Result;

/// Segments of a view, in scan order.
pub(super) struct Unread {
    view: TableView,
    /// `None` until the first segment is asked for.
    walk: Option<SegmentWalk>,
    next: Option<SegmentView>,
    /// The only segments, if they are chosen already.
    chosen: Option<std::vec::IntoIter<SegmentView>>,
    /// Whether the last segment comes first.
    is_backwards: bool,
}

impl Unread {
    /// All segments of a view.
    pub fn new(view: TableView) -> Unread {
        Unread { view, walk: None, next: None, chosen: None, is_backwards: false }
    }

    /// Some segments of a view, in scan order.
    pub fn of_segments(view: TableView, segments: Vec<SegmentView>) -> Unread {
        Unread { chosen: Some(segments.into_iter()), ..Unread::new(view) }
    }

    /// The segments of a walk.
    pub fn of_walk(view: TableView, walk: SegmentWalk) -> Unread {
        Unread { walk: Some(walk), ..Unread::new(view) }
    }

    /// Begins with the last segment.
    pub fn read_backwards(&mut self) {
        debug_assert!(self.next.is_none(), "a walk turns after its first segment");
        self.is_backwards = true;
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
        if let Some(chosen) = &mut self.chosen {
            debug_assert!(!self.is_backwards, "chosen segments are in scan order");
            if self.next.is_none() {
                self.next = chosen.next();
            }
            return Ok(self.next.clone());
        }
        if self.walk.is_none() {
            self.walk = Some(self.begin(columns, prune, context)?);
        }
        if self.next.is_none() {
            self.next = self.walk.as_mut().and_then(|walk| match self.is_backwards {
                true => self.view.last_segment(walk),
                false => self.view.next_segment(walk),
            });
        }
        Ok(self.next.clone())
    }

    /// Moves past the next segment.
    pub fn advance(&mut self) {
        debug_assert!(self.next.is_some(), "a walk moves past a segment that it did not return");
        self.next = None;
    }

    /// The segments that may have rows, by sorted run, for a scan in the order of the runs.
    pub fn by_run(&self, columns: &StoredColumns, prune: &Prune) -> Result<Vec<SegmentWalk>> {
        if prune.is_closed() {
            return Ok(Vec::new());
        }
        let range = self.range(columns, prune).unwrap_or_else(KeyRange::all);
        self.view.walks_by_run(&range)
    }

    /// The range of the columns that order the table in which the rows that pass are.
    fn range(&self, columns: &StoredColumns, prune: &Prune) -> Option<KeyRange> {
        let order = self.view.order_columns();
        order_range(columns.schema(), columns.projection(), &order, prune)
    }

    fn begin(
        &self,
        columns: &StoredColumns,
        prune: &Prune,
        context: &Context<'_>,
    ) -> Result<SegmentWalk> {
        let walk = match self.range(columns, prune) {
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
