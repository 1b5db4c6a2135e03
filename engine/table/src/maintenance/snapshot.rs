//! Snapshots: the catalog, the rowstores and the segment metadata at a log position, so that
//! recovery need not read the log from its beginning. Commits are blocked only while the snapshot's
//! contents are listed.

use crate::maintenance::context::TaskContext;
use crate::record::{Image, ImageWriter, Indexes, NewPart, NewTable, NextIds, Place};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::Change;
use nacre_types::plant::{self, Bug};
use nacre_types::{Result, TableId, Timestamp, invariant, row};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A table at the snapshot's timestamp.
struct TableAt {
    table: Arc<Table>,
    /// Indexed by partition.
    segments: Vec<Vec<SegmentAt>>,
    hashes: Vec<(Place, NewTable)>,
}

/// A segment and its deleted rows at the snapshot's timestamp.
struct SegmentAt {
    state: Arc<SegmentState>,
    deleted: Option<Arc<RoaringBitmap>>,
}

/// Writes a snapshot, then removes the log before it.
pub(crate) fn write(context: &TaskContext) -> Result<()> {
    let commits = context.commits();
    let turn = commits.lock();
    let at = turn.last();
    // Taken under the lock, because a relaxed commit may replace a row and be visible before it is
    // durable.
    let guard = context.snapshots().take();
    debug_assert!(guard.at() <= at, "versions of commit {at} are not kept by {}", guard.at());
    let lsn = commits.log().position();
    let next = NextIds {
        commit: at,
        segment: context.files().next_number(),
        table: context.catalog().next_table_id(),
    };
    let tables: Vec<TableAt> =
        context.catalog().tables().into_iter().map(|table| TableAt::new(table, at)).collect();
    let views = context.catalog().views();
    drop(turn);
    // A snapshot may only replace a durable log prefix; once durable, the timestamp is visible too.
    commits.log().sync(lsn)?;
    context.snapshots().make_visible(at);
    let mut image = ImageWriter::new(next, tables.len());
    for TableAt { table, segments, .. } in &tables {
        invariant!(
            table.id() < next.table && segments.len() == table.partitions().len(),
            "a snapshot has {} partitions of table {}, the next free id is {}",
            segments.len(),
            table.id(),
            next.table
        );
        image.begin_table(table.schema(), table.partitions().len())?;
        for (partition, segments) in table.partitions().iter().zip(segments) {
            invariant!(
                segments.iter().all(|segment| segment.state.id() < next.segment),
                "a segment of table {} has a number from {} on, which are free",
                table.id(),
                next.segment
            );
            let segments = segments.iter().map(|s| (s.state.id(), s.deleted.as_deref()));
            image.begin_partition(partition.next_row_number(), segments)?;
            put_rows(&mut image, table, partition, at)?;
        }
    }
    let indexes: Vec<(TableId, Indexes)> = tables
        .iter()
        .filter_map(|t| Some((t.table.id(), Indexes::of(t.table.schema())?)))
        .collect();
    let parts: Vec<(Place, NewPart)> = tables.iter().flat_map(TableAt::parts).collect();
    let hashes: Vec<(Place, NewTable)> = tables.into_iter().flat_map(|t| t.hashes).collect();
    let bytes = image.finish(views.iter().map(|view| &**view), &indexes, &parts, &hashes);
    debug_assert!(Image::decode(&bytes).is_ok(), "a snapshot that cannot be decoded");
    drop(guard);
    commits.log().write_snapshot(lsn, &bytes)
}

impl TableAt {
    /// Lists the table's segments. Must be called under the commit lock.
    fn new(table: Arc<Table>, at: Timestamp) -> TableAt {
        let segments_of = |partition: &Partition| -> Vec<SegmentAt> {
            let list = partition.segments();
            let there = list.iter().filter(|state| state.exists_at(at));
            there.map(|state| SegmentAt::new(state, at)).collect()
        };
        let segments = table.partitions().iter().map(segments_of).collect();
        let hashes_of = |partition: &Partition| {
            let place = table.place(partition);
            let list = partition.segments();
            list.tables().iter().map(|hashes| (place, hashes.as_logged())).collect::<Vec<_>>()
        };
        let hashes = table.partitions().iter().flat_map(hashes_of).collect();
        TableAt { table, segments, hashes }
    }

    /// The separate index parts of the segments.
    fn parts(&self) -> Vec<(Place, NewPart)> {
        let mut parts = Vec::new();
        for (partition, segments) in self.table.partitions().iter().zip(&self.segments) {
            let place = self.table.place(partition);
            let new = segments.iter().flat_map(|segment| segment.state.new_parts());
            // Parts of a dropped index stay until no snapshot reads them.
            let kept = new.filter(|part| self.table.has_index(part.index));
            parts.extend(kept.map(|part| (place, part)));
        }
        parts
    }
}

impl SegmentAt {
    /// Under the commit lock; `at` is the last commit.
    fn new(state: &Arc<SegmentState>, at: Timestamp) -> SegmentAt {
        let deleted = state.deleted_at(at);
        debug_assert!(
            deleted.as_ref().map_or(0, |rows| rows.len()) == state.deleted_rows()
                || plant::is(Bug::StaleBitmap),
            "rows of segment {} are deleted by a commit after {at}, the last one",
            state.id()
        );
        SegmentAt { state: state.clone(), deleted }
    }
}

/// Writes the rows of a rowstore at a timestamp.
fn put_rows(
    image: &mut ImageWriter,
    table: &Table,
    partition: &Partition,
    at: Timestamp,
) -> Result<()> {
    partition.try_each_node(|node| {
        if let Some(version) = node.version_at(at)
            && let Change::Put(row) = &version.change
        {
            // A snapshot holds no schema history, so all rows are of the newest version.
            let row = table.layout().upgrade(row.clone())?;
            debug_assert!(
                row::version(&row) == Some(table.schema().version),
                "a snapshot has a row of another version of table {}",
                table.id()
            );
            image.row(node.key(), version.commit, &row);
        }
        Ok(())
    })?;
    image.end_rows();
    Ok(())
}
