//! Chooses which segments to merge.

use crate::options::StoreOptions;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use nacre_types::limits;
use std::sync::Arc;

/// Segments of one size class to merge into one.
const FAN_IN: usize = 4;
/// Most segments merged at once, since a block of every column of each is in memory.
const MAX_FAN_IN: usize = 16;
const _: () = assert!(1 < FAN_IN && FAN_IN <= MAX_FAN_IN);

/// Segments worth merging; empty if there are none. Size classes are powers of four, so each row is
/// rewritten a logarithmic number of times, and a logarithmic number of runs remains. Segments with
/// long rows count as larger than their row count.
pub(crate) fn worth_merging(
    partition: &Partition,
    options: &StoreOptions,
) -> Vec<Arc<SegmentState>> {
    let (most_rows, most_bytes) =
        (options.segment_rows as u128, options.segment_bytes.max(1) as u128);
    let live = |s: &SegmentState| {
        let (rows, bytes) = (s.segment.rows() as u64, s.segment.raw_bytes() as u128);
        // A size beyond `u64` counts as the largest.
        let full = rows.max(u64::try_from(bytes * most_rows / most_bytes).unwrap_or(u64::MAX));
        full.saturating_sub(s.deleted_rows().saturating_mul(full / rows.max(1)))
    };
    let current = current(partition);
    if let Some(dead) = current.iter().find(|s| s.is_mostly_deleted()) {
        return vec![dead.clone()];
    }
    let class = |s: &SegmentState| (live(s) / limits::BLOCK_ROWS as u64).max(1).ilog2() / 2;
    let full = (options.segment_rows as u64 / 2).max(1);
    let mut classes: Vec<(u32, Vec<Arc<SegmentState>>)> = Vec::new();
    for state in current.iter().filter(|s| live(s) < full) {
        match classes.iter_mut().find(|(c, _)| *c == class(state)) {
            Some((_, members)) => members.push(state.clone()),
            None => classes.push((class(state), vec![state.clone()])),
        }
    }
    let large = classes.into_iter().map(|(_, members)| members).find(|m| m.len() >= FAN_IN);
    let Some(mut members) = large else { return Vec::new() };
    members.truncate(MAX_FAN_IN);
    members
}

/// All segments of a partition, unless it already is a single run without deleted rows.
pub(crate) fn all_to_merge(partition: &Partition) -> Vec<Arc<SegmentState>> {
    let all = current(partition);
    match &all[..] {
        [only] if only.deleted_rows() == 0 => Vec::new(),
        _ => all,
    }
}

fn current(partition: &Partition) -> Vec<Arc<SegmentState>> {
    partition.segments().iter().filter(|s| s.is_current()).cloned().collect()
}
