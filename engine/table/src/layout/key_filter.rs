//! Which segments get a Bloom filter of their keys: those whose keys lay between other segments'
//! keys when they were written.
//!
//! A key that is in the range of one segment only is searched there whatever a filter says, or is
//! ruled out by the range. So tables with ascending keys have no filters, which would cost two bytes
//! a row. Where ranges overlap, all but the oldest segment have one, and a key is searched in few
//! segments that do not have it. A hash table answers for the segments it covers.

use crate::layout::columns::KEY_FILTER_COLUMN;
use crate::layout::table_layout::TableLayout;
use nacre_segment::{Segment, SegmentBuilder};

/// Keys of a new segment that are compared with the other segments' ranges.
const SAMPLES: usize = 16;

/// Adds a key filter to a segment about to be written, if it should have one. `others` are the
/// segments it will lie beside.
pub(crate) fn with_key_filter(
    layout: &TableLayout,
    builder: SegmentBuilder,
    others: &[&Segment],
) -> SegmentBuilder {
    // Hidden row numbers are never looked up from outside, so they need no filter.
    let Some(columns) = layout.key_columns().filter(|_| builder.rows() > 0) else {
        return builder;
    };
    // A damaged segment without its key columns counts as in range of every key.
    let places: Vec<Vec<usize>> =
        others.iter().map(|other| layout.key_positions(other).unwrap_or_default()).collect();
    let mut met = 0;
    for sample in 0..SAMPLES {
        let key = builder.values(columns, sample * builder.rows() / SAMPLES);
        let is_in_range = |(other, places): &(&&Segment, &Vec<usize>)| {
            let mut parts = places.iter().zip(&key);
            other.rows() > 0
                && !parts.any(|(at, value)| other.is_outside(&[*at], std::slice::from_ref(value)))
        };
        met += others.iter().zip(&places).filter(is_in_range).count();
    }
    // With a filter, on average at least half of its keys would not be searched in vain elsewhere.
    if met * 2 < SAMPLES {
        builder
    } else {
        builder.with_key_filter(columns.to_vec(), KEY_FILTER_COLUMN)
    }
}
