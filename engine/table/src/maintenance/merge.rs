//! Merge: rewrites runs of segments into one run without deleted rows, slice by slice. Does not
//! change the table's contents, and does not block writers while it reads and writes files.
//!
//! A slice reads from each source run from its first row that is not deleted, and writes about one
//! full segment, which is appended to the output run. Its commit drops the segments whose rows are
//! all taken, and deletes the rows that it took from the others: a reader sees every row once, in
//! the old place or in the new one. A segment that no other source overlaps is adopted by the output
//! run as it is.
//!
//! A slice is a state machine: each step reads or writes a bounded number of blocks. It is abandoned,
//! and its file is removed, when its table is dropped or truncated, a transaction claims rows of its
//! sources, or the database is closed.
//!
//! Concurrent deletes are found by comparing each source's deletes with those when it was opened,
//! and are applied to the new segments. Row numbers change, so deletes are remapped by key: most of
//! them before the commit, and only the last few under the commit lock. Sources: Apache Doris,
//! compaction of merge-on-write tables; Prout et al., *Cloud-Native Transactions and Analytics in
//! SingleStore*, SIGMOD 2022, sections 2.1.2 and 4.2.

use crate::commit::commits::{CommitTurn, Committed};
use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::maintenance::context::{Progress, TaskContext};
use crate::maintenance::merge_plan::{Slice, is_filled, is_full};
use crate::maintenance::merge_source::{Opened, Order, Source};
use crate::maintenance::written::{check_run, check_segment};
use crate::options::StoreOptions;
use crate::record::{self, Description, MAX_LEVEL, NewSegment, Place, RunPlace};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::partition::Partition;
use crate::table::run::level_of;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::walked::{self, Path};
use nacre_types::{Error, Result, invariant, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Approximate number of blocks of one column to decode per step.
const READ_BLOCKS: usize = 24;
/// Remap deletes in a step of their own from this many on; fewer are left to the commit.
const REMAP_ROWS: u64 = 256;
/// Most segments that one commit moves to another run.
const MAX_ADOPTED: usize = 16;

/// A slice of a merge in progress.
pub(crate) struct Merge {
    table: Arc<Table>,
    partition: u32,
    columns: Vec<ColumnSpec>,
    slice: Slice,
    sources: Vec<Source>,
    /// Sources that are to be filled before anything else is read.
    to_fill: Vec<usize>,
    /// Empty until all sources were filled once.
    order: Order,
    is_open: bool,
    builder: SegmentBuilder,
    picks: Vec<Pick>,
    files: NewFiles,
    /// For each complete file, rows deleted in the sources since they were opened.
    deleted: Vec<RoaringBitmap>,
    /// Segments that go to the output run as they are.
    adopted: Vec<Arc<SegmentState>>,
    /// Whether the slice has read all that it will read.
    read: bool,
    /// Live rows read from the sources, which must equal the rows written.
    rows_read: usize,
}

impl Merge {
    /// Starts a slice; `None` if the table was changed, or a transaction has claimed rows. Reads nothing.
    pub fn new(
        context: &TaskContext,
        table: &Arc<Table>,
        partition: &Partition,
        slice: Slice,
    ) -> Option<Merge> {
        if !table.is_newest() {
            // The segments may have columns newer than this version of the table.
            partition.consider(Work::Merge);
            return None;
        }
        invariant!(
            slice.rewritten.is_none() || slice.sources.len() == 1,
            "a segment is rewritten from {} runs",
            slice.sources.len()
        );
        if slice.sources.iter().any(|run| run.has_claims()) {
            return None;
        }
        // All sources together hold about one segment in memory.
        let share = context.options().segment_bytes / slice.sources.len().max(1);
        let open = |run| Source::new(run, slice.rewritten, share);
        let sources: Vec<Source> = slice.sources.iter().map(open).collect();
        Some(Merge {
            table: table.clone(),
            partition: partition.number(),
            columns: table.layout().segment_columns(),
            to_fill: (0..sources.len()).rev().collect(),
            slice,
            sources,
            order: Order::empty(),
            is_open: false,
            builder: table.segment_builder(),
            picks: Vec::with_capacity(limits::BLOCK_ROWS),
            files: NewFiles::default(),
            deleted: Vec::new(),
            adopted: Vec::new(),
            read: false,
            rows_read: 0,
        })
    }

    /// Does a bounded amount of work. Can be called again after a read of absent bytes, not after other errors.
    pub fn step(&mut self, context: &TaskContext) -> Result<Progress> {
        let _within = walked::within(Path::Merge);
        if !self.is_wanted(context) {
            return Ok(self.give_up(context));
        }
        if self.files.step(context.files())? {
            debug_assert!(self.deleted.len() <= self.files.complete().len(), "deletes are lost");
            self.deleted.resize(self.files.complete().len(), RoaringBitmap::new());
            return Ok(Progress::More);
        }
        // At first a block of each column of one source a step.
        self.fill(if self.is_open { usize::MAX } else { 1 })?;
        if !self.is_open {
            if self.to_fill.is_empty() {
                self.open();
            }
            return Ok(Progress::More);
        }
        self.adopt_some(context.options())?;
        if !self.read {
            self.read_some(context)?;
            return Ok(Progress::More);
        }
        if self.remap_some()? {
            return Ok(Progress::More);
        }
        let Some(committed) = self.commit(context)? else { return Ok(self.give_up(context)) };
        // The log may name the files from here on, even if the sync fails.
        self.files.are_named(context.files());
        context.commits().settle_strictly(committed)?;
        Ok(Progress::Done)
    }

    /// The partition.
    pub fn partition(&self) -> &Partition {
        self.table.partition(self.partition)
    }

    /// The partition as log records name it.
    pub fn place(&self) -> Place {
        self.table.place(self.partition())
    }

    /// What is merged. Once it is committed, with the run that has the rows.
    pub fn slice(&self) -> &Slice {
        &self.slice
    }

    /// Whether a segment is rewritten into its own run.
    fn is_rewrite(&self) -> bool {
        self.slice.rewritten.is_some()
    }

    /// Ends without a result. Other runs of the partition may be worth merging.
    fn give_up(&mut self, context: &TaskContext) -> Progress {
        walked::walk(Path::MergeGivesUp);
        self.abandon(context);
        self.partition().consider(Work::Merge);
        Progress::Done
    }

    /// Removes the files written so far.
    pub fn abandon(&mut self, context: &TaskContext) {
        self.files.abandon(context.files());
    }

    /// Whether the table has the partition, and no transaction is about to delete rows of the slice. Of
    /// columns that were added or dropped, new segments have those that the slice began with.
    fn is_wanted(&self, context: &TaskContext) -> bool {
        context
            .catalog()
            .newest(&self.table)
            .is_ok_and(|newest| newest.shares_partitions(&self.table))
            && !self.has_claims()
    }

    /// Whether rows that the slice takes are claimed. They must stay where they are; the merge goes
    /// on once they are given back.
    fn has_claims(&self) -> bool {
        self.opened().any(|opened| opened.state.claims().is_any())
            || self.adopted.iter().any(|state| state.claims().is_any())
    }

    /// Fills the sources whose rows are all taken, at most this many, and restores their order.
    fn fill(&mut self, mut most: usize) -> Result<()> {
        while most > 0
            && let Some(source) = self.to_fill.last()
        {
            most -= 1;
            self.sources[*source].fill(self.table.layout(), &self.columns)?;
            self.to_fill.pop();
            if self.is_open {
                self.order.advanced(&self.sources);
            }
        }
        Ok(())
    }

    /// Orders the sources, and chooses the run that the slice goes to.
    fn open(&mut self) {
        invariant!(self.to_fill.is_empty(), "a merge begins before its sources are filled");
        self.order = Order::new(&self.sources);
        self.is_open = true;
        if let Some(least) = self.order.least().and_then(|least| self.sources[least].key()) {
            self.slice.extend(least);
        }
        self.check_output();
    }

    /// The rows to merge are above those that the output has.
    fn check_output(&self) {
        let list = self.partition().segments();
        let output = self.slice.output.and_then(|number| list.run(number));
        let last = output.and_then(|run| run.states().last()).map(|state| state.bounds());
        let least = self.order.least().and_then(|least| self.sources[least].key());
        invariant!(
            self.is_rewrite()
                || last.zip(least).is_none_or(|(last, least)| last.may_end_before(least)),
            "a row to merge is below those that are merged"
        );
    }

    /// Adopts the next segments, as long as they can be and nothing else was read.
    fn adopt_some(&mut self, options: &StoreOptions) -> Result<()> {
        while self.rows_read == 0
            && self.adopted.len() < MAX_ADOPTED
            && let Some(least) = self.order.least()
            && self.is_adoptable(least, options)
        {
            debug_assert!(self.to_fill.is_empty(), "a source is adopted before it is filled");
            self.adopted.extend(self.sources[least].take_untouched());
            self.read = true;
            self.to_fill.push(least);
            self.fill(usize::MAX)?;
        }
        debug_assert!(
            self.adopted.windows(2).all(|pair| pair[0].bounds().may_precede(pair[1].bounds())),
            "adopted segments are out of order"
        );
        Ok(())
    }

    /// Whether the next segment of the source with the least key can go to the output as it is:
    /// there is no row of another source within it, and rewriting it would gain little.
    fn is_adoptable(&self, least: usize, options: &StoreOptions) -> bool {
        let Some(state) = self.sources[least].untouched().filter(|_| !self.is_rewrite()) else {
            return false;
        };
        let (rows, deleted) = (state.segment.rows() as u64, state.deleted_rows());
        let is_clean = if self.slice.is_full { deleted == 0 } else { deleted * 8 <= rows };
        let bound = self.order.bound(&self.sources);
        let list = self.partition().segments();
        let output = self.slice.output.and_then(|number| list.run(number));
        let before = self.adopted.last().or_else(|| output?.states().last());
        is_clean
            && before.is_none_or(|before| before.bounds().last < state.bounds().first)
            && is_filled(rows, state.segment.raw_bytes(), self.slice.is_full, options)
            && bound.is_none_or(|bound| state.bounds().last.as_slice() < bound)
    }

    /// Whether the slice should end before a segment that can be adopted. The rows before it become
    /// a segment of their own.
    fn ends_before_adopting(&self, least: usize, options: &StoreOptions) -> bool {
        let rows = self.builder.rows() + self.picks.len();
        let least_rows = match self.slice.is_full {
            true => options.segment_rows / 4 * 3,
            false => options.segment_rows / 8,
        };
        rows > 0 && rows >= least_rows && self.is_adoptable(least, options)
    }

    fn read_some(&mut self, context: &TaskContext) -> Result<()> {
        let options = context.options();
        let segment_rows = options.segment_rows;
        let mut blocks = 0;
        while blocks < READ_BLOCKS && !self.files.is_writing() {
            self.fill(usize::MAX)?;
            if is_full(&self.builder, options) {
                // A rewritten segment must not be left in part: it would overlap the new ones.
                match self.is_rewrite() {
                    true => self.begin_writing(context)?,
                    false => return self.end_reading(context),
                }
                continue;
            }
            let least = self.order.least();
            let Some(least) = least.filter(|least| !self.ends_before_adopting(*least, options))
            else {
                return self.end_reading(context);
            };
            let longest = self.sources.iter().map(Source::longest_row).max().unwrap_or(0);
            let room = rows_at_once(longest, options.gather_bytes())
                .min(segment_rows.saturating_sub(self.builder.rows()));
            debug_assert!(room > 0, "a full file of a merge takes more rows");
            self.pick(least, room)?;
            let exhausted = self.sources[least].is_block_taken();
            if exhausted || self.picks.len() >= room {
                // Picks refer to current blocks of the sources: push them before one is replaced.
                self.push()?;
                blocks += self.columns.len();
            }
            if exhausted {
                self.to_fill.push(least);
                blocks += self.columns.len();
            } else {
                self.order.advanced(&self.sources);
            }
        }
        Ok(())
    }

    /// Picks the rows of a source that come before those of all others, until there are `room`.
    fn pick(&mut self, least: usize, room: usize) -> Result<()> {
        invariant!(self.picks.len() < room, "{} of {room} rows are picked", self.picks.len());
        let bound = self.order.bound(&self.sources);
        let source = &self.sources[least];
        debug_assert!(
            bound.is_none_or(|bound| source.key().is_some_and(|key| key <= bound)),
            "the least key of a merge is above that of another source"
        );
        let rows = source.rows_before(bound, room - self.picks.len());
        if rows == 0 {
            let (table, partition) = (&self.table.schema().name, self.partition);
            return Err(Error::corrupt(format!(
                "table {table}, partition {partition}: two segments hold the same key"
            )));
        }
        let source = &mut self.sources[least];
        for _ in 0..rows {
            self.picks.push(Pick { batch: least as u32, row: source.take() });
        }
        self.rows_read += rows;
        Ok(())
    }

    /// Pushes the picked rows to the builder and clears the picks.
    fn push(&mut self) -> Result<()> {
        if self.picks.is_empty() {
            return Ok(());
        }
        let types: Vec<_> = self.columns.iter().map(|c| c.data_type).collect();
        let batches: Vec<&Batch> = self.sources.iter().map(Source::batch).collect();
        debug_assert!(
            self.picks.iter().all(|pick| (pick.row as usize) < batches[pick.batch as usize].rows),
            "a row is picked from a block that was replaced"
        );
        self.table.layout().push(&mut self.builder, gather(&types, &batches, &self.picks))?;
        self.picks.clear();
        Ok(())
    }

    fn end_reading(&mut self, context: &TaskContext) -> Result<()> {
        debug_assert!(!self.read, "a slice of a merge is read to its end twice");
        self.push()?;
        self.read = true;
        if self.builder.rows() > 0 {
            self.begin_writing(context)?;
        }
        Ok(())
    }

    fn begin_writing(&mut self, context: &TaskContext) -> Result<()> {
        debug_assert!(self.builder.rows() > 0, "a merge writes a file without rows");
        let written: usize = self.files.complete().iter().map(|file| file.rows()).sum();
        debug_assert!(
            written + self.builder.rows() == self.rows_read,
            "{written} rows and {} of {} that were read",
            self.builder.rows(),
            self.rows_read
        );
        let full = std::mem::replace(&mut self.builder, self.table.segment_builder());
        let leaving: Vec<u64> = match self.slice.rewritten {
            Some(rewritten) => vec![rewritten],
            None => {
                let states = self.slice.sources.iter().flat_map(|run| run.states());
                states.map(|state| state.id()).collect()
            }
        };
        let besides: Vec<&Segment> = self.files.complete().iter().map(|file| &**file).collect();
        let layout = self.table.layout();
        let full = self.partition().with_key_filter(layout, full, &besides, &leaving);
        let full = layout.with_order_bounds(full)?;
        self.files.begin(context.files(), full, FileKind::Segment, self.table.id())
    }

    fn opened(&self) -> impl Iterator<Item = &Opened> {
        self.sources.iter().flat_map(Source::opened)
    }

    /// Remaps deletes that arrived since the slice began, unless there are few. Returns whether it
    /// did.
    fn remap_some(&mut self) -> Result<bool> {
        let new: u64 = self.opened().map(|opened| opened.new_deletes().len()).sum();
        if new < REMAP_ROWS {
            return Ok(false);
        }
        self.remap(REMAP_ROWS as usize)?;
        Ok(true)
    }

    /// Remaps at most `most` deletes. Those before a read that fails stay remapped.
    fn remap(&mut self, mut most: usize) -> Result<()> {
        for opened in self.sources.iter_mut().flat_map(Source::opened_mut) {
            for row in opened.new_deletes().iter().take(most) {
                let segment = &opened.state.segment;
                let key = self.table.layout().key_of_segment_row(segment, row)?;
                let mut is_found = false;
                for (file, deleted) in self.files.complete().iter().zip(&mut self.deleted) {
                    if let Some(row) = self.table.layout().find_row(file, &key, Segment::search)? {
                        is_found = plant::is(Bug::MergeRemap) || deleted.insert(row);
                        break;
                    }
                }
                if !is_found {
                    return Err(Error::corrupt(format!(
                        "segment {}: a merge finds the key of row {row} twice or not at all",
                        segment.name()
                    )));
                }
                let is_new = opened.deleted.insert(row);
                debug_assert!(is_new, "the delete of row {row} is remapped twice");
                most -= 1;
            }
        }
        Ok(())
    }

    /// Appends and applies the record; `None` if a source is gone.
    fn commit(&mut self, context: &TaskContext) -> Result<Option<Committed>> {
        invariant!(
            self.read && !self.files.is_writing(),
            "a slice of a merge is committed before it is read and written"
        );
        self.files.complete().iter().for_each(|file| check_segment(&self.table, file));
        check_run(self.table.layout(), self.files.complete().iter().map(|file| &**file));
        let table = self.table.clone();
        let _passing = table.gate().pass();
        let turn = context.commits().lock();
        let partition = table.partition(self.partition);
        let list = partition.segments();
        let is_there = |state: &Arc<SegmentState>| {
            let listed = list.segment(state.id());
            state.is_current() && listed.is_some_and(|listed| Arc::ptr_eq(listed, state))
        };
        let mut read = self.opened().map(|opened| &opened.state).chain(&self.adopted);
        if !self.is_wanted(context) || !read.all(is_there) {
            return Ok(None);
        }
        drop(read);
        list.check_room(self.files.complete().len())?;
        match self.adopted.is_empty() {
            true => self.replace(context, turn, partition),
            false => self.adopt(context, turn, partition),
        }
        .map(Some)
    }

    /// The output run and its level, once it also has these segments.
    fn place_of(&self, added: &[&Segment], context: &TaskContext) -> RunPlace {
        invariant!(!added.is_empty(), "a merge adds no segment to run {:?}", self.slice.output);
        let list = self.partition().segments();
        let run = self.slice.output.and_then(|number| list.run(number));
        let before = run.iter().flat_map(|run| run.states()).map(|state| &*state.segment);
        let all: Vec<&Segment> = before.chain(added.iter().copied()).collect();
        let rows = all.iter().map(|file| file.rows() as u64).sum();
        let bytes = all.iter().map(|file| file.raw_bytes()).fold(0, u64::saturating_add);
        let level = self.slice.level.max(level_of(rows, bytes, context.options())).min(MAX_LEVEL);
        let number = match (self.slice.output, self.adopted.is_empty(), added.first()) {
            (Some(output), _, _) => output,
            (None, true, Some(first)) => first.id(),
            // The first of the adopted segments may have given its number to the run it leaves.
            _ => context.files().take_number(),
        };
        RunPlace { number, level }
    }

    /// Moves the adopted segments to the output run.
    fn adopt(
        &mut self,
        context: &TaskContext,
        mut turn: CommitTurn<'_>,
        partition: &Partition,
    ) -> Result<Committed> {
        invariant!(
            self.rows_read == 0 && self.files.is_empty(),
            "{} rows are read before segments that are adopted",
            self.rows_read
        );
        let segments: Vec<&Segment> = self.adopted.iter().map(|s| &*s.segment).collect();
        let run = self.place_of(&segments, context);
        let mut payload = record::begin(turn.next());
        for state in &self.adopted {
            let description = Description::of_segment(&state.segment, run);
            record::describe(&mut payload, self.place(), &description);
        }
        let committed = turn.append(&payload)?;
        let ids = self.adopted.iter().map(|state| state.id()).collect();
        partition.update_segments(|list| list.adopt(run, &ids));
        self.slice.output = Some(run.number);
        Ok(committed)
    }

    /// Replaces the rows that were read by the new segments.
    fn replace(
        &mut self,
        context: &TaskContext,
        mut turn: CommitTurn<'_>,
        partition: &Partition,
    ) -> Result<Committed> {
        self.remap(usize::MAX)?;
        self.check_rows();
        let commit = turn.next();
        let files = self.files.complete();
        let added: Vec<NewSegment> = (files.iter().zip(&self.deleted))
            .map(|(file, deleted)| NewSegment { id: file.id(), deleted: deleted.clone() })
            .collect();
        let (consumed, rest): (Vec<&Opened>, Vec<&Opened>) =
            self.opened().partition(|opened| opened.is_consumed());
        let dropped: Vec<Arc<SegmentState>> = consumed.iter().map(|o| o.state.clone()).collect();
        let ids: Vec<u64> = dropped.iter().map(|state| state.id()).collect();
        let leaving = rest.iter().map(|opened| (opened.state.clone(), opened.leaving()));
        let leaving: Vec<_> =
            leaving.filter(|(_, rows)| !rows.is_empty() && !plant::is(Bug::RunOverlap)).collect();
        let place = self.place();
        let mut payload = record::begin(commit);
        if !ids.is_empty() || !added.is_empty() {
            record::merge(&mut payload, place, &ids, &added)?;
        }
        for (state, rows) in &leaving {
            record::delete_rows(&mut payload, place, state.id(), rows)?;
        }
        let segments: Vec<&Segment> = files.iter().map(|file| &**file).collect();
        let run = (!files.is_empty()).then(|| self.place_of(&segments, context));
        for (file, run) in files.iter().zip(run.iter().cycle()) {
            record::describe(&mut payload, place, &Description::of_segment(file, *run));
        }
        let committed = turn.append(&payload)?;
        let content = self.opened().map(Opened::content).max().unwrap_or(0);
        let state = |(file, new): (&Arc<Segment>, NewSegment)| {
            let state = SegmentState::new(file.clone(), commit, new.deleted);
            Arc::new(state.with_content(content).with_bitmaps(context.files().bitmaps()))
        };
        let states: Vec<_> = files.iter().zip(added).map(state).collect();
        // A reader that finds a row deleted looks again if the list has changed, so the list comes
        // first.
        partition.update_segments(|list| {
            list.drop_segments(&ids.iter().copied().collect::<Set<u64>>());
            if let Some(run) = run {
                list.add(run, states);
            }
        });
        dropped.iter().for_each(|state| state.drop_at(commit));
        let oldest = context.snapshots().oldest();
        leaving.into_iter().for_each(|(state, rows)| state.delete(commit, rows, oldest));
        partition.consider(Work::Deltas);
        context.garbage().add_segments(dropped.into_iter());
        self.table.set_changed(commit);
        self.slice.output = run.map(|run| run.number).or(self.slice.output);
        Ok(committed)
    }

    /// Checks that the files hold the rows that were taken from the sources, and that all later
    /// deletes are remapped.
    fn check_rows(&self) {
        let files = self.files.complete();
        let written: usize = files.iter().map(|file| file.rows()).sum();
        invariant!(
            written == self.rows_read && files.len() == self.deleted.len(),
            "a merge of {} rows has written {written}",
            self.rows_read
        );
        let live: u64 = self.opened().map(Opened::live_taken).sum();
        let deleted: u64 = self.deleted.iter().map(RoaringBitmap::len).sum();
        invariant!(
            written as u64 - deleted == live || plant::is(Bug::MergeRemap),
            "a merge of {live} live rows keeps {written} without {deleted}"
        );
    }
}
