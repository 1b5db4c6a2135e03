//! Duplicate keys of a load: within the load, or between the load and the table.

use crate::load::common_keys::{each_common, is_few, overlap};
use crate::load::loaded::{Loaded, OnDuplicate, held_by_another};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_rowstore::{Change, Node};
use nacre_segment::Segment;
use nacre_types::hash::Map;
use nacre_types::{Result, invariant, key};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Existing rows that a load replaces.
#[derive(Default)]
pub(super) struct Replaced {
    pub nodes: Vec<ReplacedNode>,
    /// By segment.
    pub rows: Map<u64, ReplacedRows>,
}

/// A node whose key the load contains: a row to replace, or a tombstone.
pub(super) struct ReplacedNode {
    pub partition: u32,
    pub node: Arc<Node>,
}

/// Rows of one segment that are replaced.
pub(super) struct ReplacedRows {
    pub partition: u32,
    pub state: Arc<SegmentState>,
    pub rows: RoaringBitmap,
}

/// Rejects rows whose keys occur in more than one segment of the load.
pub(super) fn resolve_inside(
    table: &Table,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
) -> Result<()> {
    if table.key_columns().is_none() {
        return Ok(());
    }
    for later in 1..files.len() {
        let (before, after) = files.split_at_mut(later);
        let later = &mut after[0];
        let partition = later.partition;
        for earlier in before.iter_mut().filter(|file| file.partition == partition) {
            resolve_pair(table, on_duplicate, earlier, later)?;
        }
    }
    Ok(())
}

fn resolve_pair(
    table: &Table,
    on_duplicate: OnDuplicate,
    earlier: &mut Loaded,
    later: &mut Loaded,
) -> Result<()> {
    debug_assert!(
        earlier.partition == later.partition && earlier.segment.id() != later.segment.id(),
        "files {} and {} of a load are compared",
        earlier.segment.id(),
        later.segment.id()
    );
    let layout = table.layout();
    let (old, new) = (earlier.segment.clone(), later.segment.clone());
    let (old, new) = (layout.sorted_keys(&old)?, layout.sorted_keys(&new)?);
    each_common(&old, &new, &mut |old_at, new_at| {
        let (old_row, new_row) = (old.row(old_at)?, new.row(new_at)?);
        if earlier.rejected.contains(old_row) || later.rejected.contains(new_row) {
            return Ok(());
        }
        match on_duplicate {
            OnDuplicate::Error => return Err(layout.duplicate(&new.at(new_at)?)),
            OnDuplicate::Skip => later.rejected.insert(new_row),
            OnDuplicate::Replace => earlier.rejected.insert(old_row),
        };
        Ok(())
    })
}

/// Finds the keys of the load that the table already has, given the segments of its partitions.
pub(super) fn resolve_outside(
    table: &Table,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    lists: &[Arc<SegmentList>],
) -> Result<Replaced> {
    invariant!(
        lists.len() == table.partitions().len(),
        "{} lists of segments of {} partitions",
        lists.len(),
        table.partitions().len()
    );
    let mut replaced = Replaced::default();
    if table.key_columns().is_none() {
        return Ok(replaced);
    }
    let own: Vec<u64> = files.iter().map(|file| file.segment.id()).collect();
    for file in files.iter_mut() {
        let list = &lists[file.partition as usize];
        resolve_segments(table, on_duplicate, file, list, &own, &mut replaced)?;
    }
    resolve_rowstores(table, on_duplicate, files, &mut replaced)?;
    Ok(replaced)
}

/// Like [`resolve_outside`], for one file of the load and the segments of its partition other than
/// the load's `own`.
fn resolve_segments(
    table: &Table,
    on_duplicate: OnDuplicate,
    file: &mut Loaded,
    list: &SegmentList,
    own: &[u64],
    replaced: &mut Replaced,
) -> Result<()> {
    debug_assert!(own.contains(&file.segment.id()), "a load's file is not among its own");
    let layout = table.layout();
    let segment = file.segment.clone();
    let new = layout.sorted_keys(&segment)?;
    let mut met = |state: &Arc<SegmentState>, old_row: u32, new_at: usize| {
        let new_row = new.row(new_at)?;
        if state.is_deleted(old_row) || file.rejected.contains(new_row) {
            return Ok(());
        }
        match on_duplicate {
            OnDuplicate::Error => return Err(layout.duplicate(&new.at(new_at)?)),
            OnDuplicate::Skip => {
                file.rejected.insert(new_row);
            }
            OnDuplicate::Replace => {
                let rows = replaced.rows.entry(state.id()).or_insert_with(|| ReplacedRows {
                    partition: file.partition,
                    state: state.clone(),
                    rows: RoaringBitmap::new(),
                });
                rows.rows.insert(old_row);
            }
        }
        Ok(())
    };
    // Segments large enough that each of the load's keys is looked up individually.
    let mut large = vec![false; list.len()];
    for (place, state) in list.iter().enumerate() {
        if !state.is_current() || own.contains(&state.id()) {
            continue;
        }
        let old = layout.sorted_keys(&state.segment)?;
        if is_few(&new, segment.rows(), state.segment.rows()) {
            large[place] = overlap(&old, &new)?.is_some();
        } else {
            each_common(&old, &new, &mut |old_at, new_at| met(state, old.row(old_at)?, new_at))?;
        }
    }
    if !large.contains(&true) {
        return Ok(());
    }
    debug_assert!(new.len() == segment.rows(), "{} keys of {}", new.len(), segment.rows());
    for new_at in 0..segment.rows() {
        let key = new.at(new_at)?;
        for candidate in list.of_key(layout, &layout.encode_key(&key)?)?.newest_first() {
            let state = &list[candidate.place];
            if large[candidate.place]
                && let Some(old_row) = candidate.find(layout, state, &key)?
            {
                met(state, old_row, new_at)?;
            }
        }
    }
    Ok(())
}

/// Finds the keys of the load that are in memory.
pub(super) fn resolve_rowstores(
    table: &Table,
    on_duplicate: OnDuplicate,
    files: &mut [Loaded],
    replaced: &mut Replaced,
) -> Result<()> {
    table
        .partitions()
        .iter()
        .try_for_each(|partition| resolve_rowstore(table, on_duplicate, partition, files, replaced))
}

fn resolve_rowstore(
    table: &Table,
    on_duplicate: OnDuplicate,
    partition: &Partition,
    files: &mut [Loaded],
    replaced: &mut Replaced,
) -> Result<()> {
    let layout = table.layout();
    partition.try_each_node(|node| {
        let newest = node.newest().map(|v| v.change);
        let locked = node.is_locked();
        if !locked && !matches!(newest, Some(Change::Put(_) | Change::Delete)) {
            return Ok(());
        }
        let values = key::decode(node.key(), &layout.key_types())?;
        for file in files.iter_mut().filter(|file| file.partition == partition.number()) {
            let found = layout.find_row(&file.segment, &values, Segment::search_to_read)?;
            let Some(row) = found.filter(|row| !file.rejected.contains(*row)) else { continue };
            if locked {
                return Err(held_by_another(table));
            }
            match (&newest, on_duplicate) {
                // An older snapshot may still need the tombstone, but it must not hide the new row.
                (Some(Change::Delete), _) | (_, OnDuplicate::Replace) => {
                    let node = node.clone();
                    replaced.nodes.push(ReplacedNode { partition: partition.number(), node });
                }
                (_, OnDuplicate::Error) => return Err(layout.duplicate(&values)),
                (_, OnDuplicate::Skip) => {
                    file.rejected.insert(row);
                }
            }
        }
        Ok(())
    })
}
