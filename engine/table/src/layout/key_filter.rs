//! Decides which segments get a Bloom filter of their keys: those whose keys were within other
//! segments' key ranges when they were written.
//!
//! A key in the range of only one segment is searched for there regardless of filters, or ruled out
//! by the range. So tables with ascending keys have no filters, which would cost two bytes a row.
//! Where ranges overlap, all but the oldest segment have a filter, and a lookup searches few
//! segments that do not hold the key. A hash table replaces filters for the segments it covers.

use crate::layout::columns::KEY_FILTER_COLUMN;
use crate::layout::table_layout::TableLayout;
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::Value;

/// Keys of a new segment to compare with other segments' ranges.
const SAMPLES: usize = 16;

/// Other segments to look at: of more, some are taken that stand for all.
const LOOKS: usize = 32;

/// A segment beside a new one, and the keys of the new one that it may have.
pub(crate) type Beside<'a> = (&'a Segment, Vec<&'a [Value]>);

/// Adds a key filter to a segment about to be written if it is worth it. `met` counts, of some of its keys, the
/// segments beside it whose key range has each.
pub(crate) fn with_key_filter(
    layout: &TableLayout,
    builder: SegmentBuilder,
    met: &dyn Fn(&[Vec<Value>]) -> usize,
) -> SegmentBuilder {
    // Hidden row numbers are never looked up by users, so they need no filter.
    let Some(columns) = layout.key_columns().filter(|_| builder.rows() > 0) else {
        return builder;
    };
    debug_assert!(!columns.is_empty(), "keys of no columns are to be filtered");
    let sample = |sample: usize| builder.values(columns, sample * builder.rows() / SAMPLES);
    let met = met(&(0..SAMPLES).map(sample).collect::<Vec<_>>());
    // On average, the filter saves at least half of the keys a useless search elsewhere.
    if met * 2 < SAMPLES {
        builder
    } else {
        let columns = columns.to_vec();
        builder.with_key_filter(columns, KEY_FILTER_COLUMN)
    }
}

/// How often one of the keys is in the key range of its segment; an estimate if there are many segments, so that a
/// load that writes many does not look at all of them for each.
pub(crate) fn count_in_ranges(layout: &TableLayout, besides: &[Beside<'_>]) -> usize {
    let step = besides.len().div_ceil(LOOKS).max(1);
    let looked_at = besides.iter().rev().step_by(step);
    debug_assert!(
        looked_at.len() <= LOOKS,
        "{} of {} are looked at",
        looked_at.len(),
        besides.len()
    );
    step * looked_at.map(|(segment, keys)| count_in_range(layout, segment, keys)).sum::<usize>()
}

/// How many of the keys are in the key range of a segment. One whose bytes are absent or damaged has every key.
fn count_in_range(layout: &TableLayout, segment: &Segment, keys: &[&[Value]]) -> usize {
    debug_assert!(keys.len() <= SAMPLES, "{} keys stand for all", keys.len());
    // Files in the order of the key are ruled out by their order bounds, without their footers.
    let bounds = segment.order_bounds().filter(|_| layout.sort_columns().is_none());
    let may_have = |key: &&&[Value]| match (&bounds, layout.encode_key(key)) {
        (Some(bounds), Ok(order)) => bounds.first <= order && order <= bounds.last,
        _ => true,
    };
    let keys: Vec<&[Value]> = keys.iter().filter(may_have).copied().collect();
    if segment.rows() == 0 || keys.is_empty() {
        return 0;
    }
    let places = layout.key_positions(segment);
    places.and_then(|places| segment.count_inside(&places, &keys)).unwrap_or(keys.len())
}
