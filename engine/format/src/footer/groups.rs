//! Zones of groups of neighbouring blocks, derived from those of the blocks.

use super::bounds::Bounds;
use nacre_column::Scalar;
use nacre_types::invariant;
use std::cmp::Ordering;

/// Blocks of a group: a segment of a million rows has 256 blocks in 16 groups.
pub const GROUP_BLOCKS: usize = 16;

/// The zone of a group of blocks, as positions of the blocks that have its bounds.
#[derive(Clone, Copy, Debug)]
pub struct GroupZone {
    /// The blocks with the least and the greatest value; `None` if all rows are null.
    pub ends: Option<(usize, usize)>,
    /// Number of null rows.
    pub null_count: u32,
}

/// The zones of all groups of a column. `nulls` are those of each block, `rows` the rows of one.
pub fn group_zones(
    nulls: &[u16],
    bounds: &Bounds,
    rows: impl Fn(usize) -> usize,
) -> Vec<GroupZone> {
    invariant!(
        bounds.min.len() > nulls.len() && bounds.max.len() > nulls.len(),
        "{} and {} bounds of {} blocks",
        bounds.min.len(),
        bounds.max.len(),
        nulls.len()
    );
    let order = |values, a: &usize, b: &usize| -> Ordering {
        Scalar::at(values, *a).order(&Scalar::at(values, *b))
    };
    let starts = (0..nulls.len()).step_by(GROUP_BLOCKS);
    let zone = |start: usize| {
        let blocks = start..nulls.len().min(start + GROUP_BLOCKS);
        let has_values = |block: &usize| usize::from(nulls[*block]) < rows(*block);
        let least = blocks.clone().filter(has_values).min_by(|a, b| order(&bounds.min, a, b));
        let greatest = blocks.clone().filter(has_values).max_by(|a, b| order(&bounds.max, a, b));
        let null_count = nulls[blocks].iter().map(|nulls| u32::from(*nulls)).sum();
        GroupZone { ends: least.zip(greatest), null_count }
    };
    let zones: Vec<GroupZone> = starts.map(zone).collect();
    debug_assert!(
        zones.iter().map(|zone| u64::from(zone.null_count)).sum::<u64>()
            == nulls.iter().map(|nulls| u64::from(*nulls)).sum(),
        "groups have other nulls than their blocks"
    );
    zones
}
