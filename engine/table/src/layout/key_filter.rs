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

/// Keys of a new segment to compare with other segments' ranges.
const SAMPLES: usize = 16;

/// Adds a key filter to a segment about to be written if it is worth it. `others` are the segments
/// beside it.
pub(crate) fn with_key_filter(
    layout: &TableLayout,
    builder: SegmentBuilder,
    others: &[&Segment],
) -> SegmentBuilder {
    // Hidden row numbers are never looked up by users, so they need no filter.
    let Some(columns) = layout.key_columns().filter(|_| builder.rows() > 0) else {
        return builder;
    };
    // A damaged segment without key columns counts as overlapping every key.
    let places: Vec<Vec<usize>> =
        others.iter().map(|other| layout.key_positions(other).unwrap_or_default()).collect();
    let mut met = 0;
    for sample in 0..SAMPLES {
        let key = builder.values(columns, sample * builder.rows() / SAMPLES);
        // Files in the order of the key are ruled out by their order bounds, without their footers.
        let order = layout.encode_key(&key).ok().filter(|_| layout.sort_columns().is_none());
        let may_be_in = |bounds: &OrderBounds| {
            order.as_ref().is_none_or(|order| bounds.first <= *order && *order <= bounds.last)
        };
        let is_in_range = |(other, places): &(&&Segment, &Vec<usize>)| {
            let mut parts = places.iter().zip(&key);
            other.rows() > 0
                && other.order_bounds().is_none_or(may_be_in)
                && !parts.any(|(at, value)| {
                    other.is_outside(&[*at], std::slice::from_ref(value)).unwrap_or(false)
                })
        };
        met += others.iter().zip(&places).filter(is_in_range).count();
    }
    // On average, the filter saves at least half of the keys a useless search elsewhere.
    if met * 2 < SAMPLES {
        builder
    } else {
        builder.with_key_filter(columns.to_vec(), KEY_FILTER_COLUMN)
    }
}
