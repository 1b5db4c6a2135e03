//! Removes what no snapshot needs any more: files of dropped segments and replaced parts, table
//! versions, and deltas of delete bitmaps.

use crate::maintenance::context::TaskContext;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{Result, Timestamp, invariant};
use std::sync::Arc;

/// Removes files of dropped segments and folds delete bitmaps that no snapshot needs. Returns
/// whether there was anything to remove.
pub(crate) fn collect(context: &TaskContext) -> Result<bool> {
    let oldest = context.snapshots().oldest();
    context.catalog().forget_versions(oldest);
    let has_garbage = context.garbage().is_due(oldest);
    if has_garbage {
        // With relaxed durability, the commit that dropped a file may be visible but not durable
        // yet; after a crash the file would be needed again.
        context.commits().sync_log()?;
        let removed = remove(context, oldest);
        debug_assert!(
            !context.garbage().is_due(oldest),
            "garbage of a commit up to {oldest} is added after that commit became visible"
        );
        removed?;
    }
    for (table, number) in context.catalog().take_works(Work::Deltas) {
        let partition = table.partition(number);
        let mut is_left = false;
        for state in partition.segments().iter() {
            is_left |= state.fold(oldest);
        }
        if is_left {
            partition.consider(Work::Deltas);
        }
    }
    Ok(has_garbage)
}

fn remove(context: &TaskContext, oldest: Timestamp) -> Result<()> {
    let due = context.garbage().take_due(oldest);
    let gone_files: Set<u64> = due.files.iter().map(|file| file.id()).collect();
    let gone_segments: Set<u64> = due.segments.iter().map(|state| state.id()).collect();
    context.files().bitmaps().forget(&gone_segments);
    unlist(context, &due.segments, &gone_files);
    debug_assert!(
        !due.files.iter().any(|file| is_of_hash_table(context, file)),
        "the file of a listed hash table is removed"
    );
    let mut files: Vec<Arc<Segment>> = due.files;
    files.extend(due.segments.iter().map(|state| state.segment.clone()));
    files.extend(due.segments.iter().flat_map(|state| state.part_files(|_| true)));
    // A file that cannot be removed does not block the others; the next start finds it.
    let mut outcome = Ok(());
    for file in &files {
        if let Err(error) = context.files().remove(file) {
            outcome = Err(error);
        }
    }
    outcome
}

/// Whether a listed hash table has this file.
fn is_of_hash_table(context: &TaskContext, file: &Arc<Segment>) -> bool {
    let tables = context.catalog().kept_tables();
    let mut lists = tables.iter().flat_map(|table| table.partitions()).map(Partition::segments);
    lists.any(|list| {
        list.tables().iter().flat_map(|table| table.files()).any(|other| Arc::ptr_eq(other, file))
    })
}

/// Removes segments from the lists of their partitions, and parts from their segments.
fn unlist(context: &TaskContext, segments: &[Arc<SegmentState>], part_files: &Set<u64>) {
    // All changes of segment lists happen under the commit lock.
    let _turn = context.commits().lock();
    for table in context.catalog().kept_tables() {
        for partition in table.partitions() {
            let list = partition.segments();
            // Found by their numbers: a walk over all segments would hold up commits. A reader that has begun
            // again may have another state of the same segment.
            let is_gone = |gone: &&Arc<SegmentState>| {
                let listed = list.segment(gone.id());
                listed.is_some_and(|listed| Arc::ptr_eq(listed, gone) || !listed.is_current())
            };
            let own: Set<u64> = segments.iter().filter(is_gone).map(|state| state.id()).collect();
            let is_current = |id: &u64| list.segment(*id).is_some_and(|state| state.is_current());
            invariant!(!own.iter().any(is_current), "the file of a current segment is removed");
            if !part_files.is_empty() {
                list.iter().for_each(|state| state.forget_parts(part_files));
            }
            if !own.is_empty() {
                partition.update_segments(|list| list.remove(&own));
            }
            debug_assert!(
                own.iter().all(|id| partition.segment(*id).is_none()),
                "a segment whose file is removed is listed"
            );
        }
    }
}
