//! Access to individual parts of a store.

use crate::commit::commits::CommitTurn;
use crate::maintenance::context::Progress;
use crate::maintenance::merge::Merge;
use crate::maintenance::merge_plan::Slice;
use crate::maintenance::snapshot::SnapshotWrite;
use crate::maintenance::{collect, part_build};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::table::partition::Partition;
use crate::table::run::Run;
use crate::{Segment, SegmentState, Store, Table};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalStore, ReadRange};
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
    let context = store.context();
    let Some(mut snapshot) = SnapshotWrite::begin(context)? else { return Ok(()) };
    while !snapshot.is_written() {
        snapshot.step(context)?;
    }
    snapshot.publish(context)
}

/// Writes a segment for a table, which does not list it.
pub(crate) fn write_segment(
    store: &Store,
    table: &Table,
    builder: SegmentBuilder,
) -> Result<Arc<Segment>> {
    let (files, mut new) = (store.context().files(), NewFiles::default());
    new.begin(files, builder, FileKind::Segment, table.id())?;
    while new.step(files)? {}
    Ok(new.take_complete().remove(0))
}

/// Removes what no snapshot needs.
pub(crate) fn collect_garbage(store: &Store) -> Result<bool> {
    collect::collect(store.context())
}

/// Merges the runs of these segments into one, slice by slice. Returns the number of slices.
pub(crate) fn merge(
    store: &Store,
    table: &Arc<Table>,
    partition: &Partition,
    states: &[Arc<SegmentState>],
) -> Result<usize> {
    let (context, mut output) = (store.context(), None);
    let is_of = |run: &&Arc<Run>| states.iter().any(|state| run.position(state.id()).is_some());
    let list = partition.segments();
    let runs: Vec<u64> = list.runs().iter().filter(is_of).map(|run| run.place().number).collect();
    for slices in 0.. {
        let list = partition.segments();
        let sources: Vec<_> = runs.iter().filter_map(|run| list.run(*run)).cloned().collect();
        let level = sources.iter().map(|run| run.place().level + 1).max().unwrap_or(0);
        let slice = Slice {
            sources,
            rewritten: None,
            output,
            extendable: Vec::new(),
            level,
            is_full: true,
        };
        if slice.sources.is_empty() {
            return Ok(slices);
        }
        let Some(mut merge) = Merge::new(context, table, partition, slice) else {
            return Ok(slices);
        };
        loop {
            match merge.step(context) {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => break,
                Err(error) => {
                    merge.abandon(context);
                    return Err(error);
                }
            }
        }
        output = merge.slice().output;
    }
    Ok(0)
}

/// Builds all index parts that a table lacks.
pub(crate) fn build_indexes(store: &Store, table: &Arc<Table>) -> Result<()> {
    let (context, scheduler) = (store.context(), store.scheduler());
    let mut tasks = scheduler.lock();
    store.check_open()?;
    scheduler.abandon(&mut tasks);
    loop {
        let table = context.catalog().newest(table)?;
        let start = |p| part_build::start(context, &table, p, &Set::default());
        let Some(mut build) = table.partitions().iter().find_map(start) else {
            return Ok(());
        };
        while build.step(context)? == Progress::More {}
    }
}

/// Whether some rowstore of a table is due for a flush.
pub(crate) fn wants_flush(store: &Store, table: &Table) -> bool {
    let context = store.context();
    let oldest = || context.snapshots().oldest();
    let wants = |p: &Partition| table.wants_flush(p, context.options().flush_bytes, oldest);
    table.partitions().iter().any(wants)
}

/// The files as they are now, as a crash that loses nothing synced would leave them.
pub(crate) fn copy(files: &MemoryStore) -> Arc<MemoryStore> {
    let copy = MemoryStore::new();
    for name in files.list().unwrap() {
        let file = files.open(&name).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
        copy.create(&name).unwrap().write(0, &bytes).unwrap();
    }
    Arc::new(copy)
}
