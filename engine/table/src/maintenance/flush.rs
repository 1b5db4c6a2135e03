//! Flush: moves the committed rows of a rowstore into segments, without changing the table's
//! contents and without blocking writers.
//!
//! A flush is a state machine, like a merge: each step reads, sorts, writes, commits or frees a
//! bounded number of rows. It goes through the rowstore in key order, one *slice* after the other.
//! A slice is a range of keys; its rows become one file, in a commit of its own, so that the commit
//! lock is held for a bounded time. The files of one flush are disjoint in key order. If the table
//! has a sort key, rows are sorted by it within each file.
//!
//! Rows that are locked when they are read stay in the rowstore; the record names them. Rows that
//! are changed or locked while the file is written are marked deleted in the new segment from the
//! start. A flush that is abandoned keeps the slices that it has committed.

use crate::commit::commits::Committed;
use crate::index::indexes::Sweep;
use crate::layout::rows::to_segment_batch;
use crate::maintenance::context::{Progress, TaskContext};
use crate::maintenance::flush_order::{FlushRow, SortedRow, first_order, sorted};
use crate::maintenance::written::check_segment;
use crate::record::{self, Description, FlushedRange, NewSegment, Place};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::segments::state::{FOREVER, SegmentState};
use crate::table::partition::{Left, Partition};
use crate::table::run::place_at_end;
use crate::table::version::Table;
use nacre_log::MAX_RECORD_BYTES;
use nacre_rowstore::{Change, FlushMark, Key, Node, Row};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::plant::{self, Bug};
use nacre_types::walked::{self, Path};
use nacre_types::{Error, Result, Timestamp, invariant, limits, row};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Rows of a file at most, because its commit marks each of them under the commit lock.
const SLICE_ROWS: usize = 32 << 10;
/// Bytes of keys after which a slice takes no more rows: its record may have to name each of them.
const SLICE_KEY_BYTES: usize = if cfg!(test) { 1 << 20 } else { 4 << 20 };
const _: () = assert!(SLICE_KEY_BYTES + limits::MAX_KEY_BYTES + SLICE_ROWS * 8 < MAX_RECORD_BYTES);
/// Nodes to read, or rows to sort, per step.
const READ_ROWS: usize = limits::BLOCK_ROWS / 2;
/// Bytes of rows after which a step reads no more.
const READ_BYTES: usize = 1 << 20;
/// Nodes or index entries to free per step.
const FREE_ROWS: usize = 1024;

/// A flush of one partition in progress. Only one runs at a time.
pub(crate) struct Flush {
    table: Arc<Table>,
    partition: u32,
    stage: Stage,
    slice: Slice,
    files: NewFiles,
    /// The run of the files so far. No merge begins before the flush ends.
    run: Option<u64>,
    /// The oldest snapshot that kept versions of a slice in memory, or at which rows were locked.
    kept_for: Timestamp,
    /// How often locks had been given back when it began.
    released: u64,
    /// Whether it left rows because they were locked or too new. Those that a transaction has moved
    /// to memory are new until the next commit, which need not come.
    has_left_locked: bool,
    /// Rows in memory that it has seen and left. The others are new to the next flush.
    left: usize,
}

/// What the next step does.
enum Stage {
    /// Reads rows of the slice.
    Read,
    /// Merges the sorted parts of the slice.
    Sort,
    /// Writes the file, and commits it once it is complete.
    Write,
    /// Frees what no snapshot needs of the slice's nodes after this key.
    Free(Option<Key>),
    /// Removes index entries that no row needs.
    Sweep(Sweep),
}

/// A range of keys that becomes one file.
struct Slice {
    /// The key before the slice.
    after: Option<Key>,
    /// The last key visited.
    to: Option<Key>,
    /// Only rows committed up to this timestamp are flushed; `None` before the first is read.
    upto: Option<Timestamp>,
    /// Its rows in the order of the file.
    rows: Vec<FlushRow>,
    builder: SegmentBuilder,
    /// Rows not in the builder yet, each part in sort order; only with a sort key.
    parts: Vec<std::vec::IntoIter<SortedRow>>,
    /// Nodes with rows that are old enough, but locked.
    locked: Vec<Arc<Node>>,
    /// Whether a row was locked or too new.
    has_left: bool,
    /// Rows read.
    read: usize,
    /// Their bytes, and those of the keys that the record may have to name.
    bytes: usize,
    key_bytes: usize,
    /// Whether there are no rows after it.
    is_last: bool,
    /// The commit that has flushed it.
    committed: Timestamp,
}

/// Flushes all committed rows of a table. Only one flush runs at a time.
pub(crate) fn flush_table(context: &TaskContext, table: &Arc<Table>) -> Result<()> {
    loop {
        let table = context.catalog().newest(table)?;
        for partition in table.partitions() {
            flush_partition(context, &table, partition)?;
        }
        if table.is_newest() {
            return Ok(());
        }
    }
}

/// Flushes all committed rows of a partition.
fn flush_partition(context: &TaskContext, table: &Arc<Table>, partition: &Partition) -> Result<()> {
    let mut flush = Flush::new(table, partition);
    loop {
        match flush.step(context) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => return Ok(()),
            Err(error) => {
                flush.abandon(context);
                return Err(error);
            }
        }
    }
}

impl Flush {
    /// Starts a flush of a partition.
    pub fn new(table: &Arc<Table>, partition: &Partition) -> Flush {
        debug_assert!(
            std::ptr::eq(table.partition(partition.number()), partition),
            "partition {} of another table is flushed",
            partition.number()
        );
        Flush {
            slice: Slice::new(table, None),
            table: table.clone(),
            partition: partition.number(),
            stage: Stage::Read,
            files: NewFiles::default(),
            run: None,
            kept_for: FOREVER,
            released: partition.released(),
            has_left_locked: false,
            left: 0,
        }
    }

    /// The partition being flushed.
    pub fn place(&self) -> Place {
        self.table.place(self.partition())
    }

    /// The run that it adds segments to.
    pub fn run(&self) -> Option<u64> {
        self.run
    }

    /// Does a bounded amount of work. After an error the flush must be abandoned.
    pub fn step(&mut self, context: &TaskContext) -> Result<Progress> {
        let _within = walked::within(Path::Flush);
        if !self.follow_table(context) {
            self.abandon(context);
            return Ok(Progress::Done);
        }
        match &mut self.stage {
            Stage::Read => self.read_some(context)?,
            Stage::Sort => self.sort_some(context)?,
            Stage::Write if self.files.step(context.files())? => {}
            Stage::Write => self.commit(context)?,
            Stage::Free(_) => {
                self.free_some(context);
                self.table.recount(self.partition());
            }
            Stage::Sweep(_) => return Ok(self.sweep_some(context)),
        }
        Ok(Progress::More)
    }

    /// Removes the file that is not committed.
    pub fn abandon(&mut self, context: &TaskContext) {
        self.files.abandon(context.files());
    }

    fn partition(&self) -> &Partition {
        self.table.partition(self.partition)
    }

    /// Goes on with the newest version of the table. A slice that was read for an older version
    /// starts again. Returns `false` if the partition is gone.
    fn follow_table(&mut self, context: &TaskContext) -> bool {
        if self.table.is_newest() {
            return true;
        }
        let newest = context.catalog().newest(&self.table);
        let Some(newest) = newest.ok().filter(|newest| newest.shares_partitions(&self.table))
        else {
            return false;
        };
        self.table = newest;
        match &mut self.stage {
            Stage::Free(_) => {}
            Stage::Sweep(sweep) => *sweep = Sweep::default(),
            Stage::Read | Stage::Sort | Stage::Write => {
                self.abandon(context);
                self.begin_slice(self.slice.after.clone());
            }
        }
        true
    }

    fn begin_slice(&mut self, after: Option<Key>) {
        debug_assert!(self.files.is_empty(), "a slice begins before the last one is committed");
        debug_assert!(self.slice.after <= after, "a flush goes back to keys before its slice");
        self.slice = Slice::new(&self.table, after);
        self.stage = Stage::Read;
    }

    fn read_some(&mut self, context: &TaskContext) -> Result<()> {
        if self.slice.upto.is_none() {
            if self.slice.after.is_none() {
                // Moves of rows to memory are not visible until something makes them.
                context.commits().catch_up()?;
            }
            let visible = context.snapshots().visible();
            // Rows up to here may have a newer schema version than this one.
            if !self.table.is_newest() {
                return Ok(());
            }
            self.slice.upto = Some(visible);
        }
        let mut nodes = Vec::new();
        let slice = &mut self.slice;
        let (table, partition) = (&self.table, self.table.partition(self.partition));
        partition.rowstore().range_after(slice.to.as_deref(), READ_ROWS, &mut nodes);
        slice.is_last = nodes.len() < READ_ROWS;
        let oldest = context.snapshots().oldest();
        let found = slice.take(table, nodes, context)?;
        debug_assert!(slice.after <= slice.to, "a slice of a flush ends before it begins");
        if slice.has_left {
            // The commit that holds the locks may become visible before the flush ends, which must
            // not count as a snapshot for which the rows were collected.
            self.has_left_locked = true;
            self.kept_for = self.kept_for.min(oldest);
        }
        match table.layout().sort_columns() {
            Some(sort) => slice.parts.push(sorted(table, sort, found)?.into_iter()),
            None => slice.push(table, found)?,
        }
        if !slice.is_last && !slice.is_full(context) {
            return Ok(());
        }
        if slice.read == 0 {
            self.stage = Stage::Free(slice.after.clone());
        } else if slice.parts.is_empty() {
            self.begin_writing(context)?;
        } else {
            self.stage = Stage::Sort;
        }
        Ok(())
    }

    /// Moves the least rows of the sorted parts to the builder.
    fn sort_some(&mut self, context: &TaskContext) -> Result<()> {
        let mut found = Vec::new();
        let (slice, mut bytes) = (&mut self.slice, 0);
        while found.len() < READ_ROWS && bytes < READ_BYTES {
            let parts = slice.parts.iter_mut().filter(|part| !part.as_slice().is_empty());
            let least = parts.min_by(|a, b| first_order(a).cmp(&first_order(b)));
            let Some(next) = least.and_then(Iterator::next) else { break };
            bytes += next.row.len();
            found.push((next.row, next.flush));
        }
        match found.is_empty() {
            true => self.begin_writing(context),
            false => self.slice.push(&self.table, found),
        }
    }

    fn begin_writing(&mut self, context: &TaskContext) -> Result<()> {
        let slice = &mut self.slice;
        invariant!(
            slice.builder.rows() == slice.read && slice.rows.len() == slice.read,
            "a slice of {} rows writes {}",
            slice.read,
            slice.builder.rows()
        );
        let full = std::mem::replace(&mut slice.builder, self.table.segment_builder());
        let layout = self.table.layout();
        let full = self.partition().with_key_filter(layout, full, &[], &[]);
        let full = layout.with_order_bounds(full)?;
        self.files.begin(context.files(), full, FileKind::Segment, self.table.id())?;
        self.stage = Stage::Write;
        Ok(())
    }

    /// Appends and applies the slice's record, unless the table was altered or truncated: then the
    /// next step starts the slice again.
    fn commit(&mut self, context: &TaskContext) -> Result<()> {
        let [file] = self.files.complete() else {
            invariant!(false, "a slice is written as {} files", self.files.complete().len());
            return Ok(());
        };
        check_segment(&self.table, file);
        invariant!(
            file.rows() == self.slice.rows.len(),
            "segment {} of {} flushed rows has {}",
            file.id(),
            self.slice.rows.len(),
            file.rows()
        );
        let Some(committed) = self.append(context, &file.clone())? else { return Ok(()) };
        // The log may name the file from here on, even if the sync fails.
        self.files.are_named(context.files());
        self.slice.committed = committed.commit;
        self.stage = Stage::Free(self.slice.after.clone());
        context.commits().settle_strictly(committed)
    }

    /// Marks the rows as flushed; `None` if the table was altered or truncated.
    fn append(&mut self, context: &TaskContext, file: &Arc<Segment>) -> Result<Option<Committed>> {
        let (table, slice) = (&self.table, &mut self.slice);
        let partition = table.partition(self.partition);
        let _passing = table.gate().pass();
        let mut turn = context.commits().lock();
        let commit = turn.next();
        if !table.is_newest() {
            return Ok(None);
        }
        // Check everything that can fail before the first row is marked as flushed. If the append
        // itself fails, the log is unusable, and rows marked as flushed are read from the segment
        // until the database is opened again.
        context.commits().log().check_usable()?;
        let upto = slice.upto.unwrap_or(0);
        invariant!(upto < commit, "commit {commit} flushes rows up to commit {upto}");
        // List the segment, not visible to any snapshot yet, before marking any node as flushed: an
        // insert that finds such a node must find the row in a segment.
        let state = SegmentState::new(file.clone(), commit, RoaringBitmap::new());
        let added = Arc::new(state.with_bitmaps(context.files().bitmaps()));
        let list = partition.segments();
        list.check_room(1)?;
        // Files are disjoint in key order only.
        let run = self.run.filter(|_| table.layout().sort_columns().is_none());
        let run = run.and_then(|number| list.run(number));
        if run.is_some_and(|run| !run.ends_before(file)) {
            // The columns of a row differ from the key of its node only in a forged log.
            let name = &table.schema().name;
            return Err(Error::corrupt(format!(
                "table {name}: rows are not in order of their keys"
            )));
        }
        let run = place_at_end(run.map(|run| &**run), file, context.options());
        partition.update_segments(|list| list.add(run, vec![added.clone()]));
        let deleted = slice.mark(commit);
        if !deleted.is_empty() {
            added.delete(commit, deleted.clone(), commit);
        }
        debug_assert!(
            *added.all_deleted() == deleted,
            "the log and memory differ in the deleted rows of segment {}",
            added.id()
        );
        let range = slice.range(partition, upto, &deleted);
        let mut payload = record::begin(commit);
        let place = table.place(partition);
        record::flush_range(&mut payload, place, &range, &NewSegment { id: file.id(), deleted })?;
        record::describe(&mut payload, place, &Description::of_segment(file, run));
        // Refused now, the record would leave rows that are neither in memory nor in a listed
        // segment.
        invariant!(
            payload.len() <= MAX_RECORD_BYTES,
            "the record of a flush takes {} bytes",
            payload.len()
        );
        let committed = turn.append(&payload)?;
        table.set_changed(commit);
        self.has_left_locked |= !added.all_deleted().is_empty();
        self.run = Some(run.number);
        Ok(Some(committed))
    }

    /// Frees versions and nodes of the slice that no snapshot needs.
    fn free_some(&mut self, context: &TaskContext) {
        let Stage::Free(after) = &self.stage else { return };
        // The last reference to a node frees it, which takes as long as unlinking it.
        let seen = self.slice.rows.len().min(FREE_ROWS);
        self.slice.rows.drain(..seen);
        let (partition, slice) = (self.table.partition(self.partition), &self.slice);
        debug_assert!(
            slice.committed == 0 || slice.upto.is_some_and(|upto| upto < slice.committed),
            "commit {} has flushed rows up to commit {:?}",
            slice.committed,
            slice.upto
        );
        let oldest = context.snapshots().oldest();
        let mut nodes = Vec::new();
        partition.rowstore().range_after(after.as_deref(), FREE_ROWS, &mut nodes);
        let is_end = nodes.len() < FREE_ROWS;
        nodes.retain(|node| slice.to.as_ref().is_some_and(|to| node.key() <= to));
        let upto = slice.upto.unwrap_or(0);
        for node in &nodes {
            partition.rowstore().collect(node, oldest);
            let is_left = node.is_locked() || node.newest().is_some();
            let is_new = old_row(node, FOREVER).is_some_and(|(_, commit)| commit > upto);
            self.left += usize::from(is_left && !is_new);
        }
        let last = nodes.last().map(|node| node.key().clone());
        if oldest < upto.max(slice.committed) {
            self.kept_for = self.kept_for.min(oldest);
        }
        self.stage = match last.filter(|last| !is_end && Some(last) < slice.to.as_ref()) {
            Some(last) => Stage::Free(Some(last)),
            None if slice.is_last => Stage::Sweep(Sweep::default()),
            None => return self.begin_slice(slice.to.clone()),
        };
    }

    fn sweep_some(&mut self, context: &TaskContext) -> Progress {
        let partition = self.table.partition(self.partition);
        if let Stage::Sweep(sweep) = &mut self.stage
            && self.table.sweep_entries(partition, sweep, FREE_ROWS)
        {
            return Progress::More;
        }
        let oldest = self.kept_for.min(context.snapshots().oldest());
        let locked_at = self.has_left_locked.then_some(self.released);
        let left = Left { entries: self.table.entry_bytes(partition), rows: self.left };
        partition.collected(left, oldest, locked_at);
        self.table.recount(partition);
        debug_assert!(self.files.is_empty(), "a flush ends with files of its own");
        Progress::Done
    }
}

impl Slice {
    fn new(table: &Table, after: Option<Key>) -> Slice {
        Slice {
            to: after.clone(),
            after,
            upto: None,
            rows: Vec::new(),
            builder: table.segment_builder(),
            parts: Vec::new(),
            locked: Vec::new(),
            has_left: false,
            read: 0,
            bytes: 0,
            key_bytes: 0,
            is_last: false,
            committed: 0,
        }
    }

    /// Whether it takes no more rows.
    fn is_full(&self, context: &TaskContext) -> bool {
        let (options, rows) = (context.options(), self.read + self.locked.len());
        rows >= options.segment_rows.min(SLICE_ROWS)
            || self.key_bytes >= SLICE_KEY_BYTES
            || (rows > 0 && self.bytes.max(self.builder.memory_bytes()) >= options.segment_bytes)
    }

    /// Takes the rows of these nodes, the next ones in key order, as long as there is room.
    fn take(
        &mut self,
        table: &Table,
        nodes: Vec<Arc<Node>>,
        context: &TaskContext,
    ) -> Result<Vec<(Row, FlushRow)>> {
        let (mut found, upto) = (Vec::new(), self.upto.unwrap_or(0));
        let before = self.bytes;
        for node in nodes {
            if self.is_full(context) || self.bytes - before >= READ_BYTES {
                self.is_last = false;
                break;
            }
            debug_assert!(self.to.as_ref() < Some(node.key()), "a node is read twice");
            self.to = Some(node.key().clone());
            let Some((row, commit)) = old_row(&node, upto) else {
                self.has_left |= node.is_locked() || old_row(&node, FOREVER).is_some();
                continue;
            };
            self.key_bytes += node.key().len();
            if node.is_locked() {
                self.has_left = true;
                self.locked.push(node);
                continue;
            }
            self.read += 1;
            self.bytes += row.len();
            let mark = Some(FlushMark::default());
            found.push((table.layout().upgrade(row)?, FlushRow { node, commit, mark }));
        }
        Ok(found)
    }

    /// Appends rows to the file.
    fn push(&mut self, table: &Table, found: Vec<(Row, FlushRow)>) -> Result<()> {
        // A row that fails to move is excluded by its number in the file.
        invariant!(
            self.builder.rows() == self.rows.len(),
            "row {} of a file is pushed as its row {}",
            self.rows.len(),
            self.builder.rows()
        );
        debug_assert!(
            found.iter().all(|(row, _)| row::version(row) == Some(table.schema().version)),
            "a row of another version of table {} is flushed",
            table.schema().name
        );
        if found.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = found.iter().map(|(_, flush)| flush.node.key().clone()).collect();
        let (rows, flushed): (Vec<Row>, Vec<FlushRow>) = found.into_iter().unzip();
        let batch = to_segment_batch(table.layout(), &rows, &keys)?;
        table.layout().push(&mut self.builder, batch)?;
        self.rows.extend(flushed);
        Ok(())
    }

    /// Marks the rows as flushed at a commit. Returns the row numbers of those that have changed or
    /// are locked, which stay in memory.
    fn mark(&mut self, commit: Timestamp) -> RoaringBitmap {
        debug_assert!(
            self.rows.iter().all(|row| row.commit < commit),
            "commit {commit} flushes a row of a later one"
        );
        let mut stays = RoaringBitmap::new();
        for (row, flushed) in self.rows.iter_mut().enumerate() {
            let mark = flushed.mark.take().unwrap_or_default();
            if !flushed.node.flush_with(mark, commit, flushed.commit) {
                stays.insert(row as u32);
            }
        }
        stays
    }

    /// The range for the slice's record. `stays` are the rows that could not be marked.
    fn range(&self, partition: &Partition, upto: Timestamp, stays: &RoaringBitmap) -> FlushedRange {
        let changed = stays.iter().map(|row| &self.rows[row as usize].node);
        // No other row of the range is old enough: every version up to `upto` was there when the
        // slice was read.
        let old = self.locked.iter().chain(changed).filter(|node| old_row(node, upto).is_some());
        let mut except: Vec<Vec<u8>> = old.map(|node| node.key().to_vec()).collect();
        except.sort_unstable();
        let key = |key: &Option<Key>| key.as_ref().map(|key| key.to_vec());
        let after = key(&self.after);
        let mut range = FlushedRange { after, to: key(&self.to).unwrap_or_default(), upto, except };
        debug_assert!(
            range.except == remaining_keys(partition, &range),
            "rows that a flush leaves in memory are not named, or named twice"
        );
        if plant::is(Bug::FlushSlice) {
            let mut next = Vec::new();
            partition.rowstore().range_after(Some(&range.to), 1, &mut next);
            range.to = next.first().map_or(range.to, |node| node.key().to_vec());
        }
        range
    }
}

/// The newest row of a node and its commit, if it is old enough for a flush up to `upto`.
fn old_row(node: &Node, upto: Timestamp) -> Option<(Row, Timestamp)> {
    let newest = node.newest().filter(|newest| newest.commit <= upto)?;
    let Change::Put(row) = newest.change else { return None };
    Some((row, newest.commit))
}

/// Keys of rows in a range that are old enough but stay in the rowstore.
fn remaining_keys(partition: &Partition, range: &FlushedRange) -> Vec<Vec<u8>> {
    let mut remaining = Vec::new();
    partition.each_node_until(range.after.as_deref(), Some(&range.to), |node| {
        if old_row(node, range.upto).is_some() {
            remaining.push(node.key().to_vec());
        }
    });
    remaining
}
