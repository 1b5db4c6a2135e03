//! Access to individual parts of a store.

use crate::commit::commits::CommitTurn;
use crate::maintenance::context::Progress;
use crate::maintenance::merge::Merge;
use crate::maintenance::{collect, part_build, snapshot};
use crate::table::partition::Partition;
use crate::{Segment, SegmentState, Store, Table};
use nacre_segment::SegmentBuilder;
use nacre_types::Result;
use nacre_types::hash::Set;
use std::sync::Arc;

/// Takes the commit lock.
pub(crate) fn lock(store: &Store) -> CommitTurn<'_> {
    store.context().commits().lock()
}

/// The last commit.
pub(crate) fn last_commit(store: &Store) -> u64 {
    lock(store).last()
}

/// Writes a snapshot.
pub(crate) fn write_snapshot(store: &Store) -> Result<()> {
    snapshot::write(store.context())
}

/// Writes a segment that belongs to no table.
pub(crate) fn write_segment(store: &Store, builder: SegmentBuilder) -> Result<Arc<Segment>> {
    store.context().files().write_segment(builder)
}

/// Removes what no snapshot needs.
pub(crate) fn collect_garbage(store: &Store) -> Result<bool> {
    collect::collect(store.context())
}

/// Merges segments to completion.
pub(crate) fn merge(
    store: &Store,
    table: &Arc<Table>,
    partition: &Partition,
    states: &[Arc<SegmentState>],
) -> Result<()> {
    let context = store.context();
    let Some(mut merge) = Merge::new(context, table, partition, states)? else { return Ok(()) };
    loop {
        match merge.step(context) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => return Ok(()),
            Err(error) => {
                merge.abandon(context);
                return Err(error);
            }
        }
    }
}

/// Builds all index parts that a table lacks.
pub(crate) fn build_indexes(store: &Store, table: &Arc<Table>) -> Result<()> {
    let (context, scheduler) = (store.context(), store.scheduler());
    let mut tasks = scheduler.lock();
    store.check_open()?;
    scheduler.abandon(&mut tasks);
    loop {
        let table = context.catalog().newest(table)?;
        let Some(mut build) = part_build::start(context, &table, &Set::default()) else {
            return Ok(());
        };
        while build.step(context)? == Progress::More {}
    }
}

/// Whether some rowstore of a table is due for a flush.
pub(crate) fn wants_flush(store: &Store, table: &Table) -> bool {
    let context = store.context();
    table.wanting_flush(context.options().flush_bytes, || context.snapshots().oldest()).is_some()
}
