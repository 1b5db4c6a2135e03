//! Which segments have a Bloom filter of their rows' keys: those whose keys were between other segments' keys when they
//! were written.
//!
//! A key that is in the range of one segment only is searched there, whatever a filter says, or ruled out by the range.
//! So tables whose keys ascend have no filters, which would take two bytes a row; where ranges overlap, all but the oldest
//! segment have one, and a key is searched in few segments that do not have it. A segment that a hash table covers is
//! found by that.

use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_segment::{Segment, SegmentBuilder};
use std::sync::Arc;

/// Column id, inside segments, of the filter.
pub(crate) const KEY_FILTER_COLUMN: u32 = u32::MAX - 4;

/// Keys of a segment that are looked at.
const SAMPLES: usize = 16;

impl Table {
    /// A segment of a partition that is about to be written, with a filter if it wants one. `besides` are segments that
    /// are to come beside it, `leaving` are the numbers of those in whose place it comes.
    pub(crate) fn with_key_filter(
        &self,
        partition: &Partition,
        builder: SegmentBuilder,
        besides: &[&Segment],
        leaving: &[u64],
    ) -> SegmentBuilder {
        // Nobody looks for the hidden numbers of rows that were not found otherwise before.
        let Some(columns) = self.key_columns().filter(|_| builder.rows() > 0) else {
            return builder;
        };
        let list = partition.segments();
        let stays = |segment: &&Arc<Segment>| !leaving.contains(&segment.id());
        let there = list
            .iter()
            .filter(|state| state.is_current())
            .map(|state| &state.segment)
            .filter(stays);
        let others: Vec<&Segment> =
            there.map(|segment| &**segment).chain(besides.iter().copied()).collect();
        let places: Vec<Vec<usize>> =
            others.iter().map(|other| self.key_positions(other).unwrap_or_default()).collect();
        let mut met = 0;
        for sample in 0..SAMPLES {
            let key = builder.values(columns, sample * builder.rows() / SAMPLES);
            met += others
                .iter()
                .zip(&places)
                .filter(|(other, places)| {
                    let mut parts = places.iter().zip(&key);
                    other.rows() > 0
                        && !parts.any(|(at, value)| {
                            other.is_outside(&[*at], std::slice::from_ref(value))
                        })
                })
                .count();
        }
        // On average half of its keys or more would be searched elsewhere, too.
        if met * 2 < SAMPLES {
            builder
        } else {
            builder.with_key_filter(columns.to_vec(), KEY_FILTER_COLUMN)
        }
    }
}
