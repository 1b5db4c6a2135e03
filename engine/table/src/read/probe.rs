//! Probes an index with a range of keys, for access paths.
//!
//! [`TableView::probe_index`] returns the rows in memory, looked up and verified, and an
//! [`IndexRun`], read on demand, for each segment that may have matching rows. Both contain exactly
//! the visible rows with keys in the range; the caller need not verify them.

use crate::index::candidates::Candidate;
use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::{positions, run_at, scan};
use crate::index::range::KeyRange;
use crate::read::probe_key;
use crate::read::runs::{IndexProbe, IndexRun, MemoryRow, Source};
use crate::read::segment_view::SegmentPlace;
use crate::read::view::{RowLocator, TableView};
use crate::record::KeySet;
use nacre_host::fetched::Misses;
use nacre_rowstore::Visible;
use nacre_types::{IndexId, Result, Value};

/// A segment of a view that may hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ViewCandidate {
    segment: SegmentPlace,
    /// The position in the segment's part where the key begins, if known.
    position: Option<u32>,
}

impl TableView {
    /// Looks up a key range in an index of this view's table. `conflict` if this version of the
    /// table does not have the index.
    pub fn probe_index(&self, index: IndexId, range: &KeyRange) -> Result<IndexProbe> {
        let table = self.table();
        let index = table.index(index)?;
        let mut probe = IndexProbe::new(table, memory_rows(self, index, range)?);
        let hash = range.hash(index)?;
        let found = candidates(self, index, range, hash)?;
        Misses::each(found, |ViewCandidate { segment, position }| {
            let state = self.state(segment);
            let (source, ascends) = match state.part(index.id()) {
                Some(part) => {
                    let (start, end) = match position {
                        Some(position) => run_at(&part, &range.prefix, position)?,
                        None => positions(&part, range, hash)?,
                    };
                    (Source::Part { part, start, end }, range.prefix.len() == index.types().len())
                }
                None => {
                    probe.segments_read += 1;
                    (Source::Rows(scan(table.layout(), index, state, range)?), false)
                }
            };
            let run = IndexRun::new(self, segment, source, ascends);
            if !run.is_empty() {
                probe.runs.push(run);
            }
            Ok(())
        })?;
        if hash.is_some() {
            let keys = KeySet::Index(index.id());
            probe.tables_probed =
                self.lists().iter().map(|(_, list)| list.tables_of(keys).count()).sum();
        }
        probe.check_runs(self)?;
        Ok(probe)
    }

    /// The rows whose primary key begins with these values: at least one, not null, of the columns'
    /// types.
    pub fn probe_key(&self, prefix: &[Value]) -> Result<IndexProbe> {
        probe_key::probe(self, prefix)
    }
}

/// The visible rows in memory with keys in a range, in index key order.
fn memory_rows(view: &TableView, index: &Index, range: &KeyRange) -> Result<Vec<MemoryRow>> {
    let (from, to) = range.encode(index)?;
    let layout = view.table().layout();
    let mut found: Vec<MemoryRow> = Vec::new();
    for partition in view.seen_partitions() {
        each_entry(index, partition.number(), &from, to.as_deref(), |entry| {
            let Some(node) = partition.rowstore().get(entry.row_key()) else { return Ok(()) };
            let Visible::Row(row) = view.visible(&node) else { return Ok(()) };
            let row = layout.upgrade(row)?;
            if index.key_of(layout, &row)? == entry.index_key() {
                let locator =
                    RowLocator::Memory { partition: partition.number(), key: node.key().clone() };
                found.push(MemoryRow { index_key: entry.index_key().to_vec(), locator, row });
            }
            Ok(())
        })?;
    }
    if view.table().partitions().len() > 1 {
        found.sort_by(|a, b| a.index_key.cmp(&b.index_key));
    }
    debug_assert!(
        found.is_sorted_by(|a, b| a.index_key <= b.index_key),
        "rows in memory are out of order"
    );
    Ok(found)
}

/// The segments of a view that may hold keys of a range, oldest first. `hash` is the range's hash.
fn candidates(
    view: &TableView,
    index: &Index,
    range: &KeyRange,
    hash: Option<u64>,
) -> Result<Vec<ViewCandidate>> {
    let mut found = Vec::new();
    if hash.is_none() {
        for (partition, list) in view.lists() {
            let places = list.of_index(index).overlapping(range)?.into_iter();
            found.extend(
                places
                    .filter_map(|place| view.seen(*partition, place))
                    .map(|segment| ViewCandidate { segment, position: None }),
            );
        }
        debug_assert!(found.is_sorted(), "segments are not named oldest first");
        return Ok(found);
    }
    let key = index.encode(&range.prefix)?;
    for (partition, list) in view.lists() {
        for Candidate { place, position, .. } in
            list.of_index(index).candidates(&key)?.newest_first()
        {
            let segment = view.seen(*partition, place);
            found.extend(segment.map(|segment| ViewCandidate { segment, position }));
        }
    }
    found.sort_unstable();
    Ok(found)
}
