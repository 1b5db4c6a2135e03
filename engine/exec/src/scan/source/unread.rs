//! The segments that a scan has not read yet. Those whose rows are outside of what the filters allow
//! for the columns that order a table are never visited.

use super::columns::StoredColumns;
use crate::scan::filter::order_range::order_range;
use crate::scan::filter::prune::Prune;
use nacre_operator::context::Context;
use nacre_table::{KeyRange, Misses, SegmentView, SegmentWalk, TableView};
use nacre_types::invariant::broken;
use nacre_types::{Error, Result};

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
    /// How many segments have been the next one.
    met: usize,
    /// What is left of the segments for a look at those after the next one.
    further: Option<Further>,
}

/// The segments after the next one that were not looked at yet.
struct Further {
    walk: SegmentWalk,
    chosen: Option<std::vec::IntoIter<SegmentView>>,
    met: usize,
    next: Option<SegmentView>,
}

impl Unread {
    /// All segments of a view.
    pub fn new(view: TableView) -> Unread {
        Unread {
            view,
            walk: None,
            next: None,
            chosen: None,
            is_backwards: false,
            met: 0,
            further: None,
        }
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
                self.met += 1;
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
            self.met += 1;
        }
        Ok(self.next.clone())
    }

    /// Moves past the next segment.
    pub fn advance(&mut self) {
        debug_assert!(self.next.is_some(), "a walk moves past a segment that it did not return");
        self.next = None;
    }

    /// A segment after the next one, which stays until [`Unread::advance_further`].
    pub fn peek_further(&mut self) -> Option<SegmentView> {
        let Unread { view, walk, chosen, is_backwards, met, .. } = self;
        // Those that the scan has met meanwhile are no longer further.
        self.further.take_if(|further| further.met + usize::from(further.next.is_none()) <= *met);
        let further = self.further.get_or_insert_with(|| Further {
            walk: walk.clone().unwrap_or_default(),
            chosen: chosen.clone(),
            met: *met,
            next: None,
        });
        if further.next.is_none() {
            further.met += 1;
            further.next = match (&mut further.chosen, *is_backwards) {
                (Some(chosen), _) => chosen.next(),
                (None, true) => view.last_segment(&mut further.walk),
                (None, false) => view.next_segment(&mut further.walk),
            };
        }
        further.next.clone()
    }

    /// Adds what `choose` misses of the segments after the next one, so that they are not waited for one by one.
    /// What fails otherwise is found when the segment is read.
    #[cold]
    pub fn with_next(
        &self,
        error: Error,
        choose: &dyn Fn(&SegmentView) -> Result<Vec<usize>>,
    ) -> Error {
        let mut misses = Misses::default();
        let mut note = |error| misses.note::<()>(Err(error)).map(|_| misses.is_full());
        // Any other error than a miss is the only one.
        if let Err(error) = note(error) {
            return error;
        }
        let mut walk = self.walk.clone().unwrap_or_default();
        let mut chosen = self.chosen.clone();
        while let Some(view) = match (&mut chosen, self.is_backwards) {
            (Some(chosen), _) => chosen.next(),
            (None, true) => self.view.last_segment(&mut walk),
            (None, false) => self.view.next_segment(&mut walk),
        } {
            if let Err(error) = choose(&view)
                && note(error).unwrap_or(false)
            {
                break;
            }
        }
        match misses.end() {
            Err(error) => error,
            Ok(()) => broken(format_args!("a miss is lost")),
        }
    }

    /// Moves past the segment that was looked at.
    pub fn advance_further(&mut self) {
        self.further.iter_mut().for_each(|further| further.next = None);
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
