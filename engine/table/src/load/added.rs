//! Adds the files of a load to a table: their runs, their places in the lists of segments, and the
//! operations of a record that name them.

use crate::load::loaded::Loaded;
use crate::options::StoreOptions;
use crate::record::{self, Description, NewSegment, RunPlace};
use crate::segments::state::SegmentState;
use crate::table::run::new_runs;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{Result, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// The runs of a load's files.
pub(super) fn runs_of(table: &Table, files: &[Loaded], options: &StoreOptions) -> Vec<RunPlace> {
    let mut runs = vec![RunPlace { number: 0, level: 0 }; files.len()];
    for partition in table.partitions() {
        let is_own = |at: &usize| files[*at].partition == partition.number();
        let own: Vec<usize> = (0..files.len()).filter(is_own).collect();
        let segments: Vec<&Segment> = own.iter().map(|at| &*files[*at].segment).collect();
        for (at, run) in own.into_iter().zip(new_runs(&segments, options)) {
            runs[at] = run;
        }
    }
    debug_assert!(runs.iter().all(|run| run.number > 0), "a file of a load is in no run");
    runs
}

/// Fails with a `limit` if the partitions have no room for a load's files.
pub(super) fn check_room(table: &Table, files: &[Loaded]) -> Result<()> {
    debug_assert!(
        files.iter().all(|file| (file.partition as usize) < table.partitions().len()),
        "a file is of no partition"
    );
    table.partitions().iter().try_for_each(|partition| {
        let own = files.iter().filter(|file| file.partition == partition.number()).count();
        partition.segments().check_room(own)
    })
}

/// Lists the states of a load's files in their partitions.
pub(super) fn list(
    table: &Table,
    files: &[Loaded],
    states: &[Arc<SegmentState>],
    runs: &[RunPlace],
) {
    invariant!(
        files.len() == states.len()
            && files.iter().all(|file| (file.partition as usize) < table.partitions().len()),
        "{} segments of {} files are listed",
        states.len(),
        files.len()
    );
    debug_assert!(runs.len() == files.len(), "{} of {} files are in runs", runs.len(), files.len());
    for partition in table.partitions() {
        let is_own = |at: &usize| files[*at].partition == partition.number();
        let own = (0..files.len()).filter(is_own);
        partition.update_segments(|list| {
            list.add_all(own.map(|at| (runs[at], vec![states[at].clone()])));
        });
    }
}

/// Removes a load's files from the lists of their partitions.
pub(super) fn unlist(table: &Table, files: &[Loaded]) {
    let own: Set<u64> = files.iter().map(|file| file.segment.id()).collect();
    for partition in table.partitions() {
        partition.update_segments(|list| list.remove(&own));
    }
    debug_assert!(
        !table.segments().iter().any(|state| own.contains(&state.id())),
        "a segment of a refused load is still listed"
    );
}

/// Appends the load's segments to a record.
pub(super) fn add_segments(
    payload: &mut Vec<u8>,
    table: &Table,
    files: &[Loaded],
    (rejected, runs): (&[RoaringBitmap], &[RunPlace]),
) -> Result<()> {
    debug_assert!(files.len() == rejected.len(), "{} files of a load are logged", files.len());
    debug_assert!(files.len() == runs.len(), "{} runs are logged", runs.len());
    let mut added = 0;
    for partition in table.partitions() {
        let is_own = |at: &usize| files[*at].partition == partition.number();
        let own = || (0..files.len()).filter(is_own);
        let segments: Vec<NewSegment> = own()
            .map(|at| NewSegment { id: files[at].segment.id(), deleted: rejected[at].clone() })
            .collect();
        if !segments.is_empty() {
            record::add_segments(payload, table.place(partition), &segments)?;
        }
        for at in own() {
            let description = Description::of_segment(&files[at].segment, runs[at]);
            record::describe(payload, table.place(partition), &description);
        }
        added += segments.len();
    }
    invariant!(added == files.len(), "{added} of {} segments of a load are logged", files.len());
    Ok(())
}
