//! The segments of a view, named without being visited: a view of a segment is made when it is read.
//! So a statement costs what it reads, however many segments its table has.

use crate::layout::bounds::values_of;
use nacre_segment::{Segment, Zone};
use nacre_types::{DataType, Result, Value};
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A segment as a view sees it.
#[derive(Clone)]
pub struct SegmentView {
    /// Number of the partition it belongs to.
    pub partition: u32,
    /// The file.
    pub segment: Arc<Segment>,
    /// Rows deleted in this view; `None` if none are.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Maps table column positions to segment column positions; `None` for a column younger than
    /// the segment, whose rows have the column's default.
    pub columns: Vec<Option<usize>>,
}

impl SegmentView {
    /// The zone of a column in the whole segment, without its footer; `None` if only that has it.
    ///
    /// # Errors
    /// `corrupt` if the log describes bounds of another type.
    pub fn described_zone(&self, stored: usize, data_type: DataType) -> Result<Option<Zone>> {
        debug_assert!(stored < self.segment.column_ids().len(), "column {stored} of a segment");
        let id = self.segment.column_ids().get(stored);
        let Some(bounds) = id.and_then(|id| self.segment.known().bounds_of(*id)) else {
            return Ok(None);
        };
        let (min, max) = values_of(bounds, data_type)?.unwrap_or((Value::Null, Value::Null));
        Ok(Some(Zone { min, max, null_count: bounds.nulls, exact: false }))
    }
}

/// Names a segment in a view. Places are in scan order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentPlace {
    /// Number of the partition.
    pub(super) partition: u32,
    /// Place in the partition's segment list.
    pub(super) place: u32,
}

/// Segments of a view that were not visited yet, in scan order.
#[derive(Clone, Default)]
pub struct SegmentWalk(VecDeque<(u32, Range<usize>)>);

impl SegmentWalk {
    /// Adds the segments at these places of a partition's list. They come after all before.
    pub(super) fn push(&mut self, partition: u32, places: Range<usize>) {
        debug_assert!(
            self.0.back().is_none_or(|(last, before)| {
                *last < partition || *last == partition && before.end <= places.start
            }),
            "segments {places:?} of partition {partition} come after later ones"
        );
        if places.start < places.end {
            self.0.push_back((partition, places));
        }
    }

    /// The last place, whether the view sees its segment or not.
    pub(super) fn next_back(&mut self) -> Option<SegmentPlace> {
        let (partition, places) = self.0.back_mut()?;
        debug_assert!(!Range::is_empty(places), "a walk keeps no places of partition {partition}");
        let (partition, place) = (*partition, places.next_back());
        if places.start >= places.end {
            self.0.pop_back();
        }
        place.map(|place| SegmentPlace { partition, place: place as u32 })
    }

    /// The next place, whether the view sees its segment or not.
    pub(super) fn next(&mut self) -> Option<SegmentPlace> {
        let (partition, places) = self.0.front_mut()?;
        debug_assert!(!Range::is_empty(places), "a walk keeps no places of partition {partition}");
        let (partition, place) = (*partition, places.next());
        if places.start >= places.end {
            self.0.pop_front();
        }
        place.map(|place| SegmentPlace { partition, place: place as u32 })
    }
}
