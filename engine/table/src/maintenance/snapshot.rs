//! Snapshots: the catalog, the rowstores and the segment metadata at a log position, so that
//! recovery need not read the log from its beginning. Commits are blocked only while the lists of
//! segments are taken, one of each partition. A snapshot is written piece by piece, and counts once it
//! is complete.

use crate::commit::snapshots::SnapshotGuard;
use crate::index::hash::table::HashTable;
use crate::maintenance::context::TaskContext;
use crate::record::{
    Description, ImageWriter, Indexes, NewPart, NewTable, NextIds, Place, Rules, RunPlace,
};
use crate::segments::names::FileKind;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_log::NewSnapshot;
use nacre_rowstore::{Change, Key, Node};
use nacre_segment::Segment;
use nacre_types::walked::{self, Path};
use nacre_types::{Result, TableId, Timestamp, ViewSchema, invariant, limits, row};
use std::sync::Arc;

/// A table at the snapshot's timestamp.
struct TableAt {
    table: Arc<Table>,
    /// Indexed by partition: the segments listed then.
    lists: Vec<Arc<SegmentList>>,
    hashes: Vec<(Place, Arc<HashTable>)>,
}

/// An index part, its place and its file.
type PartAt = (Place, NewPart, Arc<Segment>);

/// A segment and its run.
struct SegmentAt {
    state: Arc<SegmentState>,
    run: RunPlace,
}

/// A snapshot being written: a state machine whose steps write some rows or the metadata of some
/// segments.
///
/// The lists of segments are taken at the beginning, under the commit lock. A list never changes, and
/// which of its segments and rows were there at the beginning is read later, while writers go on: the
/// versions that were the newest then, of rows and of deletes, stay until the snapshot is complete.
pub(crate) struct SnapshotWrite {
    file: NewSnapshot,
    image: ImageWriter,
    at: Timestamp,
    /// Keeps the versions of `at`, and the files of dropped segments and index parts.
    _guard: Arc<SnapshotGuard>,
    tables: Vec<TableAt>,
    /// The segments of the partition that is being written.
    segments: Vec<SegmentAt>,
    views: Vec<Arc<ViewSchema>>,
    next: NextIds,
    stage: Stage,
}

/// What the next step writes.
enum Stage {
    /// A table, by its position.
    Table(usize),
    /// The segments of a partition of a table from a position on.
    Segments(PartitionAt, usize),
    /// The rows of a partition of a table after a key.
    Rows(PartitionAt, Option<Key>),
    /// Everything after the tables.
    Rest,
    /// The header, which makes the file a snapshot.
    Publish,
}

/// A partition of the table at a position.
#[derive(Clone, Copy)]
struct PartitionAt {
    table: usize,
    partition: usize,
}

/// Nodes to read per step.
const READ_ROWS: usize = limits::BLOCK_ROWS;

/// Files that were added since the newest snapshot from which on one may be due, so that the log does not
/// describe many more than there are.
const FILES: u64 = 32;

/// Whether a snapshot is due: the log since the last one is long, or it is of many files and half as long as a
/// snapshot. Most of them are merged since: opening reads the files that there are, not all that ever were.
pub(crate) fn is_due(context: &TaskContext) -> bool {
    let log = context.commits().log();
    let bytes = log.bytes_since_snapshot();
    debug_assert!(bytes <= log.position(), "{bytes} bytes of log since the snapshot");
    let of_files = context.files().taken_since_snapshot() >= FILES;
    bytes > context.options().snapshot_bytes || (of_files && bytes >= log.snapshot_bytes() / 2)
}

impl SnapshotWrite {
    /// Starts a snapshot of the last commit; `None` if there is one already.
    pub fn begin(context: &TaskContext) -> Result<Option<SnapshotWrite>> {
        let commits = context.commits();
        let turn = commits.lock();
        let at = turn.last();
        // Taken under the lock, because a relaxed commit may replace a row and be visible before it
        // is durable.
        let guard = context.snapshots().take();
        debug_assert!(guard.at() <= at, "versions of commit {at} are not kept by {}", guard.at());
        let lsn = commits.log().position();
        let next = NextIds {
            commit: at,
            segment: context.files().next_number(),
            table: context.catalog().next_table_id(),
        };
        let tables: Vec<TableAt> =
            context.catalog().tables().into_iter().map(TableAt::new).collect();
        let views = context.catalog().views();
        drop(turn);
        invariant!(
            tables.iter().all(|one| one.table.id() < next.table),
            "a table of a snapshot has an id from {} on, which are free",
            next.table
        );
        // A snapshot may only replace a durable log prefix; once durable, the timestamp is visible
        // too.
        let Some(file) = commits.log().begin_snapshot(lsn)? else {
            context.files().note_snapshot(next.segment);
            return Ok(None);
        };
        context.snapshots().make_visible(at);
        let image = ImageWriter::new(next, tables.len());
        let (segments, stage) = (Vec::new(), Stage::Table(0));
        Ok(Some(SnapshotWrite {
            file,
            image,
            at,
            _guard: guard,
            tables,
            segments,
            views,
            next,
            stage,
        }))
    }

    /// Writes a piece. After an error the snapshot must be abandoned.
    pub fn step(&mut self, context: &TaskContext) -> Result<()> {
        let _within = walked::within(Path::Snapshot);
        invariant!(!self.is_written(), "a snapshot is written on after its last piece");
        let most = context.options().snapshot_piece_bytes();
        let mut nodes = READ_ROWS;
        while self.image.len() < most && nodes > 0 && !self.is_written() {
            nodes = nodes.saturating_sub(self.write_some(most)?);
        }
        let piece = self.image.take();
        self.file.write(&piece)
    }

    /// Whether only [`SnapshotWrite::publish`] is left.
    pub fn is_written(&self) -> bool {
        matches!(self.stage, Stage::Publish)
    }

    /// Completes the snapshot, then removes the log before it.
    pub fn publish(self, context: &TaskContext) -> Result<()> {
        invariant!(
            self.is_written() && self.image.len() == 0,
            "a snapshot is published before it is written"
        );
        context.commits().log().publish_snapshot(self.file)?;
        context.files().note_snapshot(self.next.segment);
        Ok(())
    }

    /// Removes what was written.
    pub fn abandon(self, context: &TaskContext) {
        context.commits().log().abandon_snapshot(self.file);
    }

    /// Writes the next part and returns the number of nodes read.
    fn write_some(&mut self, most: usize) -> Result<usize> {
        let (next, nodes) = match std::mem::replace(&mut self.stage, Stage::Publish) {
            Stage::Table(table) => (self.begin_table(table)?, 0),
            Stage::Segments(place, segment) => (self.write_segment(place, segment)?, 0),
            Stage::Rows(place, after) => self.write_rows(place, after, most)?,
            Stage::Rest => {
                self.write_rest();
                (Stage::Publish, 0)
            }
            Stage::Publish => (Stage::Publish, 0),
        };
        self.stage = next;
        Ok(nodes)
    }

    fn begin_table(&mut self, table: usize) -> Result<Stage> {
        let Some(next) = self.tables.get(table) else { return Ok(Stage::Rest) };
        let partitions = next.table.partitions();
        self.image.begin_table(next.table.schema(), partitions.len())?;
        Ok(self.begin_partition(PartitionAt { table, partition: 0 }))
    }

    fn begin_partition(&mut self, place: PartitionAt) -> Stage {
        let PartitionAt { table, partition } = place;
        let one = &self.tables[table];
        let Some(next) = one.table.partitions().get(partition) else {
            return Stage::Table(table + 1);
        };
        self.segments = one.segments(partition, self.at).collect();
        invariant!(
            self.segments.iter().all(|segment| segment.state.id() < self.next.segment),
            "a segment of table {} has a number from {} on, which are free",
            one.table.id(),
            self.next.segment
        );
        self.image.begin_partition(next.next_row_number(), self.segments.len());
        Stage::Segments(place, 0)
    }

    fn write_segment(&mut self, place: PartitionAt, segment: usize) -> Result<Stage> {
        let Some(next) = self.segments.get(segment) else { return Ok(Stage::Rows(place, None)) };
        // Merged only now from what later commits have added.
        let deleted = next.state.deleted_at(self.at);
        self.image.segment(next.state.id(), deleted.as_deref())?;
        Ok(Stage::Segments(place, segment + 1))
    }

    /// Writes rows of a rowstore, as they were at the snapshot's timestamp.
    fn write_rows(
        &mut self,
        place: PartitionAt,
        mut after: Option<Key>,
        most: usize,
    ) -> Result<(Stage, usize)> {
        let table = &self.tables[place.table].table;
        let partition = &table.partitions()[place.partition];
        let mut nodes = Vec::new();
        partition.rowstore().range_after(after.as_deref(), READ_ROWS, &mut nodes);
        let is_end = nodes.len() < READ_ROWS;
        for (at, node) in nodes.iter().enumerate() {
            if self.image.len() >= most {
                return Ok((Stage::Rows(place, after), at));
            }
            put_row(&mut self.image, table, node, self.at)?;
            debug_assert!(after.as_ref() < Some(node.key()), "a snapshot reads a row twice");
            after = Some(node.key().clone());
        }
        if !is_end {
            return Ok((Stage::Rows(place, after), nodes.len()));
        }
        self.image.end_rows();
        let partition = place.partition + 1;
        Ok((self.begin_partition(PartitionAt { partition, ..place }), nodes.len()))
    }

    fn write_rest(&mut self) {
        let indexes: Vec<(TableId, Indexes)> = self
            .tables
            .iter()
            .filter_map(|t| Some((t.table.id(), Indexes::of(t.table.schema())?)))
            .collect();
        let mut parts: Vec<(Place, NewPart)> = Vec::new();
        let mut hashes: Vec<(Place, NewTable)> = Vec::new();
        let mut files: Vec<(Place, Description)> = Vec::new();
        for table in &self.tables {
            let separate = table.parts(self.at);
            files.extend(table.files(&separate, self.at));
            parts.extend(separate.into_iter().map(|(place, part, _)| (place, part)));
            hashes.extend(table.hashes.iter().map(|(place, hashes)| (*place, hashes.as_logged())));
        }
        let rules_of = |table: &Table| Rules::of(table.schema(), table.next_identity());
        let rules: Vec<(TableId, Rules)> =
            self.tables.iter().filter_map(|t| Some((t.table.id(), rules_of(&t.table)?))).collect();
        let views = self.views.iter().map(|view| &**view);
        self.image.finish(views, &indexes, &parts, &hashes, &files, &rules);
    }
}

impl TableAt {
    /// Takes the table's lists of segments. Must be called under the commit lock.
    fn new(table: Arc<Table>) -> TableAt {
        let lists: Vec<Arc<SegmentList>> =
            table.partitions().iter().map(Partition::segments).collect();
        debug_assert!(!lists.is_empty(), "table {} has no partition", table.id());
        let hashes_of = |(partition, list): (&Partition, &Arc<SegmentList>)| {
            let place = table.place(partition);
            list.tables().iter().map(|hashes| (place, hashes.clone())).collect::<Vec<_>>()
        };
        let hashes = table.partitions().iter().zip(&lists).flat_map(hashes_of).collect();
        TableAt { table, lists, hashes }
    }

    /// The segments of a partition at the snapshot's timestamp. Those that are dropped later are in
    /// the list as it was.
    fn segments(&self, partition: usize, at: Timestamp) -> impl Iterator<Item = SegmentAt> {
        debug_assert!(
            partition < self.lists.len(),
            "partition {partition} of {}",
            self.lists.len()
        );
        self.lists[partition].runs().iter().flat_map(move |run| {
            let there = run.states().iter().filter(move |state| state.exists_at(at));
            there.map(|state| SegmentAt { state: state.clone(), run: run.place() })
        })
    }

    /// The separate index parts of the segments.
    fn parts(&self, at: Timestamp) -> Vec<PartAt> {
        let mut parts = Vec::new();
        for (number, partition) in self.table.partitions().iter().enumerate() {
            let place = self.table.place(partition);
            let new = self.segments(number, at).flat_map(|segment| segment.state.new_parts());
            // Parts of a dropped index stay until no snapshot reads them.
            let kept = new.filter(|(part, _)| self.table.has_index(part.index));
            parts.extend(kept.map(|(part, file)| (place, part, file)));
        }
        parts
    }

    /// Describes the table's files: segments, these index parts and hash tables.
    fn files(&self, parts: &[PartAt], at: Timestamp) -> Vec<(Place, Description)> {
        let mut files = Vec::new();
        for (number, partition) in self.table.partitions().iter().enumerate() {
            let place = self.table.place(partition);
            let own =
                self.segments(number, at).map(|s| Description::of_segment(&s.state.segment, s.run));
            files.extend(own.map(|description| (place, description)));
        }
        let part = |(place, _, file): &PartAt| (*place, Description::of(FileKind::Part, file));
        files.extend(parts.iter().map(part));
        for (place, hashes) in &self.hashes {
            let own = hashes.files().iter().map(|file| Description::of(FileKind::Hashes, file));
            files.extend(own.map(|description| (*place, description)));
        }
        files
    }
}

/// Writes the row of a node at a timestamp, if there is one.
fn put_row(image: &mut ImageWriter, table: &Table, node: &Node, at: Timestamp) -> Result<()> {
    if let Some(version) = node.version_at(at)
        && let Change::Put(row) = &version.change
    {
        debug_assert!(
            version.commit <= at,
            "a snapshot of commit {at} has a row of commit {}",
            version.commit
        );
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
}
