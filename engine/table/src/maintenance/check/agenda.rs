//! Checks the agenda of background work: that what partitions ask for is on it, that a walk over all
//! segments finds no work that is not asked for, and that the rowstores are counted.

use crate::index::definition::Index;
use crate::maintenance::check::findings::Findings;
use crate::maintenance::context::TaskContext;
use crate::maintenance::failed::Failed;
use crate::maintenance::hash_build;
use crate::record::Place;
use crate::segments::state::SegmentState;
use crate::table::agenda::{WORKS_ALL, Work};
use crate::table::partition::Partition;
use crate::table::version::Table;
use std::sync::Arc;

/// What the scheduler knows of work that is not on the agenda, or need not be.
pub(crate) struct Ongoing<'a> {
    /// Work in progress.
    pub tasks: Vec<(Work, Place)>,
    pub failed: &'a Failed,
    /// Whether a slice of a merge could begin in a partition.
    pub has_merge: &'a dyn Fn(Place, &Arc<Table>, &Partition) -> bool,
}

/// Compares the agenda with all partitions. Neither the scheduler nor a commit may go on meanwhile.
/// Reads no files.
pub(crate) fn check(context: &TaskContext, ongoing: &Ongoing<'_>) -> Vec<String> {
    let mut findings = Findings::default();
    let agenda = context.catalog().agenda();
    let tables = context.catalog().tables();
    for table in &tables {
        for partition in table.partitions() {
            let place = table.place(partition);
            let name = format!("table {}: partition {}", table.schema().name, place.partition);
            for work in WORKS_ALL {
                let is_wanted = partition.may_need(work);
                if is_wanted && persists(|| !agenda.has(work, place)) {
                    findings.add(format!("{name}: {work:?} is not on the agenda"));
                }
                let is_known = is_wanted
                    || ongoing.tasks.contains(&(work, place))
                    || ongoing.failed.has(work, place);
                if !is_known && has_work(context, ongoing, work, table, partition) {
                    findings.add(format!("{name}: {work:?} is due, and nothing asks for it"));
                }
            }
            let limit = agenda.flush_bytes_of(table.partitions().len() as u64);
            if persists(|| partition.counted() > limit && !agenda.is_large(place)) {
                findings.add(format!("{name}: its rowstore is large, and is not on the agenda"));
            }
        }
    }
    let counted = || -> usize {
        let uncommitted = context.catalog().uncommitted();
        let all = tables.iter().chain(&uncommitted);
        all.flat_map(|table| table.partitions()).map(Partition::counted).sum()
    };
    if persists(|| counted() != agenda.held()) {
        let held = agenda.held();
        findings.add(format!("rowstores of {} bytes are counted as {held}", counted()));
    }
    findings.into_list()
}

/// Looks at two things that other threads change one after the other, before they count as different.
const LOOKS: usize = 10_000;

/// Whether something is so at each of many looks: transactions that end meanwhile note their work
/// and count their rows in several steps.
fn persists(is_so: impl Fn() -> bool) -> bool {
    (0..LOOKS).all(|_| {
        std::hint::spin_loop();
        is_so()
    })
}

/// Whether a walk over the segments of a partition finds work.
fn has_work(
    context: &TaskContext,
    ongoing: &Ongoing<'_>,
    work: Work,
    table: &Arc<Table>,
    partition: &Partition,
) -> bool {
    let list = partition.segments();
    match work {
        Work::Merge => (ongoing.has_merge)(table.place(partition), table, partition),
        Work::IndexParts => {
            let visible = context.snapshots().visible();
            let lacks = |state: &Arc<SegmentState>, index: &Index| state.part(index.id()).is_none();
            let is_there =
                |state: &&Arc<SegmentState>| state.is_current() && state.exists_at(visible);
            list.iter()
                .filter(is_there)
                .any(|state| table.indexes().iter().any(|index| lacks(state, index)))
        }
        Work::HashTables => hash_build::has_tables_to_merge(table, &list),
        Work::Deltas => list.iter().any(|state| state.has_deltas()),
    }
}
