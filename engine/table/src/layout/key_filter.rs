//! Decides which segments get a Bloom filter of their keys: those whose keys were within other
//! segments' key ranges when they were written.
//!
//! A key in the range of only one segment is searched for there regardless of filters, or ruled out
//! by the range. So tables with ascending keys have no filters, which would cost two bytes a row.
//! Where ranges overlap, all but the oldest segment have a filter, and a lookup searches few
//! segments that do not hold the key. A hash table replaces filters for the segments it covers.

use crate::layout::columns::KEY_FILTER_COLUMN;
use crate::layout::table_layout::TableLayout;
use nacre_segment::{OrderBounds, Segment, SegmentBuilder};
use nacre_types::Value;

/// Keys of a new segment to compare with other segments' ranges.
const SAMPLES: usize = 16;

/// Adds a key filter to a segment about to be written if it is worth it. `met` counts the segments
/// beside it whose key range has a key.
pub(crate) fn with_key_filter(
    layout: &TableLayout,
    builder: SegmentBuilder,
    met: &dyn Fn(&[Value]) -> usize,
) -> SegmentBuilder {
    // Hidden row numbers are never looked up by users, so they need no filter.
    let Some(columns) = layout.key_columns().filter(|_| builder.rows() > 0) else {
        return builder;
    };
    let sample = |sample: usize| builder.values(columns, sample * builder.rows() / SAMPLES);
    debug_assert!(!columns.is_empty(), "keys of no columns are to be filtered");
    let met: usize = (0..SAMPLES).map(|number| met(&sample(number))).sum();
    // On average, the filter saves at least half of the keys a useless search elsewhere.
    if met * 2 < SAMPLES {
        builder
    } else {
        let columns = columns.to_vec();
        builder.with_key_filter(columns, KEY_FILTER_COLUMN)
    }
}

/// Whether a key is in the key range of a segment.
pub(crate) fn has_in_range(layout: &TableLayout, segment: &Segment, key: &[Value]) -> bool {
    // Files in the order of the key are ruled out by their order bounds, without their footers.
    let order = layout.encode_key(key).ok().filter(|_| layout.sort_columns().is_none());
    let may_be_in = |bounds: &OrderBounds| {
        order.as_ref().is_none_or(|order| bounds.first <= *order && *order <= bounds.last)
    };
    if segment.rows() == 0 || !segment.order_bounds().is_none_or(may_be_in) {
        return false;
    }
    // A damaged segment without key columns has every key.
    let places = layout.key_positions(segment).unwrap_or_default();
    debug_assert!(
        places.is_empty() || places.len() == key.len(),
        "{} values of a key of {} columns",
        key.len(),
        places.len()
    );
    !places
        .iter()
        .zip(key)
        .any(|(at, value)| segment.is_outside(&[*at], std::slice::from_ref(value)).unwrap_or(false))
}
