//! Merge: rewrites segments into fewer, sorted ones without deleted rows. Does not change the
//! table's contents, and does not block writers while it reads and writes files.
//!
//! A merge is a state machine: each step reads or writes a bounded number of blocks, so that a
//! thread running steps between statements is soon free again. It is abandoned, and its files are
//! removed, when its table is dropped or truncated or the database is closed.
//!
//! Concurrent deletes are found by comparing each source's deletes with those at the start of the
//! merge, and are applied to the new segments. Row numbers change, so deletes are remapped by key:
//! most of them before the commit, and only the last few under the commit lock. Sources: Apache
//! Doris, compaction of merge-on-write tables; Prout et al., *Cloud-Native Transactions and
//! Analytics in SingleStore*, SIGMOD 2022, section 4.2.

use crate::commit::commits::Committed;
use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::maintenance::context::{Progress, TaskContext};
use crate::maintenance::written::{check_run, check_segment};
use crate::record::{self, NewSegment};
use crate::segments::files::NewFiles;
use crate::segments::names::FileKind;
use crate::segments::state::SegmentState;
use crate::table::partition::{Partition, Work};
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Value, invariant, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Approximate number of blocks of one column to decode per step.
const READ_BLOCKS: usize = 64;
/// Remap deletes in a step of their own from this many on; fewer are left to the commit.
const REMAP_ROWS: u64 = 256;

/// A merge in progress.
pub(crate) struct Merge {
    table: Arc<Table>,
    partition: u32,
    columns: Vec<ColumnSpec>,
    sources: Vec<Source>,
    builder: SegmentBuilder,
    picks: Vec<Pick>,
    files: NewFiles,
    /// For each complete file, rows deleted in the sources since the merge began.
    deleted: Vec<RoaringBitmap>,
    /// Whether all sources are read.
    read: bool,
    /// Live rows read from the sources, which must equal the rows written.
    rows_read: usize,
}

/// A segment being read in order, without its deleted rows.
struct Source {
    state: Arc<SegmentState>,
    /// Deleted rows that were skipped or have been remapped.
    deleted: RoaringBitmap,
    next_row: usize,
    /// Rows to decode together, at most a block.
    at_once: usize,
    batch: Batch,
    /// Bytes of its longest row.
    longest_row: usize,
    /// Order keys and row numbers of the block's live rows, ascending.
    keys: Vec<(Vec<u8>, u32)>,
    at: usize,
}

impl Merge {
    /// Starts merging those of `states` that new snapshots see; `None` if there are none.
    pub fn new(
        context: &TaskContext,
        table: &Arc<Table>,
        partition: &Partition,
        states: &[Arc<SegmentState>],
    ) -> Result<Option<Merge>> {
        let visible = context.snapshots().visible();
        // A segment that is not visible yet must wait: its commit may still fail. It may also have
        // columns newer than this version of the table.
        if !table.is_newest() || !states.iter().all(|s| s.exists_at(visible)) {
            partition.consider(Work::Merge);
        }
        if !table.is_newest() {
            return Ok(None);
        }
        let states = states.iter().filter(|s| s.exists_at(visible));
        let sources: Vec<Source> = states
            .map(|state| Source {
                deleted: state.all_deleted().as_ref().clone(),
                state: state.clone(),
                next_row: 0,
                at_once: 1,
                batch: Batch::default(),
                longest_row: 0,
                keys: Vec::new(),
                at: 0,
            })
            .collect();
        if sources.is_empty() {
            return Ok(None);
        }
        debug_assert!(
            sources.iter().all(|source| partition.segment(source.state.id()).is_some()),
            "a segment of another partition than {} is merged",
            partition.number()
        );
        let mut merge = Merge {
            table: table.clone(),
            partition: partition.number(),
            columns: table.layout().segment_columns(),
            sources,
            builder: table.segment_builder(),
            picks: Vec::with_capacity(limits::BLOCK_ROWS),
            files: NewFiles::default(),
            deleted: Vec::new(),
            read: false,
            rows_read: 0,
        };
        // All sources together hold about one segment in memory.
        let share = context.options().segment_bytes / merge.sources.len();
        for source in &mut merge.sources {
            let segment = &source.state.segment;
            let row = (segment.raw_bytes() / segment.rows().max(1) as u64).max(1);
            source.at_once = ((share as u64 / row) as usize).clamp(1, limits::BLOCK_ROWS);
            source.fill(&merge.table, &merge.columns)?;
        }
        Ok(Some(merge))
    }

    /// Does a bounded amount of work. After an error the merge must be abandoned.
    pub fn step(&mut self, context: &TaskContext) -> Result<Progress> {
        if !self.is_wanted(context) {
            self.abandon(context);
            return Ok(Progress::Done);
        }
        if self.files.step(context.files())? {
            debug_assert!(
                self.deleted.len() <= self.files.complete().len(),
                "remapped deletes of a file are lost"
            );
            self.deleted.resize(self.files.complete().len(), RoaringBitmap::new());
            return Ok(Progress::More);
        }
        if !self.read {
            self.read_some(context)?;
            return Ok(Progress::More);
        }
        if self.remap_some()? {
            return Ok(Progress::More);
        }
        let Some(committed) = self.commit(context)? else {
            self.abandon(context);
            return Ok(Progress::Done);
        };
        // The log may name the files from here on, even if the sync fails.
        self.files.are_named();
        context.commits().settle_strictly(committed)?;
        Ok(Progress::Done)
    }

    /// The partition.
    pub fn partition(&self) -> &Partition {
        self.table.partition(self.partition)
    }

    /// The segments being merged.
    pub fn states(&self) -> impl Iterator<Item = &Arc<SegmentState>> {
        self.sources.iter().map(|source| &source.state)
    }

    /// Whether these are the segments being merged.
    pub fn is_of(&self, states: &[Arc<SegmentState>]) -> bool {
        self.sources.len() == states.len()
            && self.states().zip(states).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Removes the files written so far.
    pub fn abandon(&mut self, context: &TaskContext) {
        self.files.abandon(context.files());
    }

    /// Whether the table still has the partition being merged. If columns were added or dropped,
    /// the new segments have those of the version at the start of the merge.
    fn is_wanted(&self, context: &TaskContext) -> bool {
        context
            .catalog()
            .newest(&self.table)
            .is_ok_and(|newest| newest.shares_partitions(&self.table))
    }

    fn read_some(&mut self, context: &TaskContext) -> Result<()> {
        let options = context.options();
        let (segment_rows, segment_bytes) = (options.segment_rows, options.segment_bytes);
        let mut blocks = 0;
        while blocks < READ_BLOCKS && !self.files.is_writing() {
            let sources = &mut self.sources;
            let least = (0..sources.len())
                .filter(|s| sources[*s].key().is_some())
                .min_by(|a, b| sources[*a].key().cmp(&sources[*b].key()));
            let Some(least) = least else {
                push(&self.columns, &self.sources, &mut self.picks, &mut self.builder);
                self.read = true;
                self.check_read();
                if self.builder.rows() > 0 {
                    self.begin_writing(context)?;
                }
                return Ok(());
            };
            let other =
                (0..sources.len()).filter(|s| *s != least).filter_map(|s| sources[s].key()).min();
            let bound = other.map(<[u8]>::to_vec);
            let longest = sources.iter().map(|source| source.longest_row).max().unwrap_or(0);
            let room = rows_at_once(longest, options.gather_bytes())
                .min(segment_rows.saturating_sub(self.builder.rows()));
            debug_assert!(room > 0, "a full file of a merge takes more rows");
            let source = &mut sources[least];
            debug_assert!(
                bound.as_deref().is_none_or(|bound| source.key().is_some_and(|key| key <= bound)),
                "the least key of a merge is above that of another source"
            );
            // Take this source's rows up to the next key of any other source.
            while let Some((key, row)) = source.keys.get(source.at)
                && bound.as_ref().is_none_or(|bound| key < bound)
                && self.picks.len() < room
            {
                self.picks.push(Pick { batch: least as u32, row: *row });
                source.at += 1;
                self.rows_read += 1;
            }
            let exhausted = source.at == source.keys.len();
            if !exhausted && self.picks.len() < room && bound.as_deref() == source.key() {
                let (table, partition) = (&self.table.schema().name, self.partition);
                return Err(Error::corrupt(format!(
                    "table {table}, partition {partition}: two segments hold the same key"
                )));
            }
            if exhausted || self.picks.len() >= room {
                // Picks refer to the sources' current blocks, so push them before a block is
                // replaced.
                push(&self.columns, &self.sources, &mut self.picks, &mut self.builder);
                blocks += self.columns.len();
                if exhausted {
                    self.sources[least].fill(&self.table, &self.columns)?;
                    blocks += self.columns.len();
                }
                if self.builder.rows() >= segment_rows
                    || self.builder.memory_bytes() >= segment_bytes
                {
                    self.begin_writing(context)?;
                }
            }
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
        let sources: Vec<u64> = self.sources.iter().map(|source| source.state.id()).collect();
        let besides: Vec<&Segment> = self.files.complete().iter().map(|file| &**file).collect();
        let full = self.partition().with_key_filter(self.table.layout(), full, &besides, &sources);
        self.files.begin(context.files(), full, FileKind::Segment)
    }

    /// Remaps deletes that arrived since the merge began, unless there are few. Returns whether it
    /// did.
    fn remap_some(&mut self) -> Result<bool> {
        let new: u64 = self.sources.iter().map(|s| s.state.deleted_rows() - s.deleted.len()).sum();
        if new < REMAP_ROWS {
            return Ok(false);
        }
        self.remap(REMAP_ROWS as usize)?;
        Ok(true)
    }

    /// Remaps at most `most` deletes.
    fn remap(&mut self, mut most: usize) -> Result<()> {
        for source in &mut self.sources {
            let all = source.state.all_deleted();
            debug_assert!(
                source.deleted.is_subset(&all),
                "deleted rows of segment {} came back",
                source.state.id()
            );
            let new = &*all - &source.deleted;
            for row in new.iter().take(most) {
                let key = self.table.layout().key_of_segment_row(&source.state.segment, row)?;
                let mut is_found = false;
                for (file, deleted) in self.files.complete().iter().zip(&mut self.deleted) {
                    if let Some(row) = self.table.layout().find_row(file, &key, Segment::search)? {
                        is_found = plant::is(Bug::MergeRemap) || deleted.insert(row);
                        break;
                    }
                }
                if !is_found {
                    let segment = source.state.segment.name();
                    return Err(Error::corrupt(format!(
                        "segment {segment}: a merge finds the key of row {row} twice or not at all"
                    )));
                }
                source.deleted.insert(row);
                most -= 1;
            }
        }
        Ok(())
    }

    /// Appends and applies the record; `None` if a source is gone.
    fn commit(&mut self, context: &TaskContext) -> Result<Option<Committed>> {
        self.files.complete().iter().for_each(|file| check_segment(&self.table, file));
        check_run(self.table.layout(), self.files.complete().iter().map(|file| &**file));
        let mut turn = context.commits().lock();
        let commit = turn.next();
        let table = self.table.clone();
        let partition = table.partition(self.partition);
        let there = partition.segments();
        let is_there = |source: &Source| {
            source.state.is_current() && there.iter().any(|state| Arc::ptr_eq(state, &source.state))
        };
        if !self.is_wanted(context) || !self.sources.iter().all(is_there) {
            return Ok(None);
        }
        self.remap(usize::MAX)?;
        self.check_rows();
        let added: Vec<NewSegment> = (self.files.complete().iter().zip(&self.deleted))
            .map(|(file, deleted)| NewSegment { id: file.id(), deleted: deleted.clone() })
            .collect();
        let mut payload = record::begin(commit);
        let dropped: Vec<u64> = self.states().map(|state| state.id()).collect();
        record::merge(&mut payload, table.place(partition), &dropped, &added)?;
        let committed = turn.append(&payload)?;
        // 0 is older than any content.
        let content = self.states().map(|state| state.content()).max().unwrap_or(0);
        let state = |(file, new): (&Arc<Segment>, NewSegment)| {
            let state = SegmentState::new(file.clone(), commit, new.deleted);
            Arc::new(state.with_content(content).with_bitmaps(context.files().bitmaps()))
        };
        partition.update_segments(|list| {
            list.extend(self.files.complete().iter().zip(added).map(state));
        });
        self.states().for_each(|state| state.drop_at(commit));
        context.garbage().add_segments(self.states().cloned());
        table.set_changed(commit);
        Ok(Some(committed))
    }

    /// Every row of the sources is read, but for those that were deleted when the merge began.
    fn check_read(&self) {
        let live: u64 =
            self.sources.iter().map(|s| s.state.segment.rows() as u64 - s.deleted.len()).sum();
        invariant!(
            self.rows_read as u64 == live,
            "a merge has read {} of {live} rows",
            self.rows_read
        );
    }

    /// Checks that the files hold the rows of the sources except those deleted before they were
    /// read, and that all later deletes are remapped.
    fn check_rows(&self) {
        let files = self.files.complete();
        let written: usize = files.iter().map(|file| file.rows()).sum();
        invariant!(
            written == self.rows_read && files.len() == self.deleted.len(),
            "a merge of {} rows has written {written}",
            self.rows_read
        );
        let live: u64 = self.states().map(|s| s.segment.rows() as u64 - s.deleted_rows()).sum();
        let deleted: u64 = self.deleted.iter().map(RoaringBitmap::len).sum();
        invariant!(
            written as u64 - deleted == live || plant::is(Bug::MergeRemap),
            "a merge of {live} live rows keeps {written} without {deleted}"
        );
    }
}

/// Pushes the picked rows to the builder and clears the picks.
fn push(
    columns: &[ColumnSpec],
    sources: &[Source],
    picks: &mut Vec<Pick>,
    builder: &mut SegmentBuilder,
) {
    if !picks.is_empty() {
        let types: Vec<_> = columns.iter().map(|c| c.data_type).collect();
        let batches: Vec<&Batch> = sources.iter().map(|s| &s.batch).collect();
        debug_assert!(
            picks.iter().all(|pick| (pick.row as usize) < batches[pick.batch as usize].rows),
            "a row is picked from a block that was replaced"
        );
        builder.push(&gather(&types, &batches, picks));
        picks.clear();
    }
}

impl Source {
    fn key(&self) -> Option<&[u8]> {
        self.keys.get(self.at).map(|(key, _)| key.as_slice())
    }

    /// Decodes the next block with live rows.
    fn fill(&mut self, table: &Table, columns: &[ColumnSpec]) -> Result<()> {
        let segment = self.state.segment.clone();
        let order = table.layout().order_columns(&segment)?;
        invariant!(
            self.at == self.keys.len(),
            "{} rows of segment {} are replaced before they are merged",
            self.keys.len() - self.at,
            segment.id()
        );
        let last = self.keys.pop().map(|(key, _)| key);
        self.keys.clear();
        self.at = 0;
        while self.keys.is_empty() && self.next_row < segment.rows() {
            let start = self.next_row;
            let count = self
                .at_once
                .min(limits::BLOCK_ROWS - start % limits::BLOCK_ROWS)
                .min(segment.rows() - start);
            self.next_row += count;
            let live: Vec<u32> = (0..count as u32)
                .filter(|row| !self.deleted.contains(start as u32 + row))
                .collect();
            if live.is_empty() {
                continue;
            }
            let vectors = columns
                .iter()
                .map(|column| match segment.column_index(column.id) {
                    Some(index) => segment.decode(index, start, count).map(Arc::new),
                    None => Ok(Arc::new(Vector::constant(
                        column.data_type,
                        &table.layout().default_of(column.id),
                        count,
                    ))),
                })
                .collect::<Result<Vec<_>>>()?;
            let keys: Vec<Vector> =
                order.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<_>>()?;
            for row in live {
                let values: Vec<Value> = keys.iter().map(|v| v.value(row as usize)).collect();
                let key = table.layout().encode_order(&values)?;
                let before = self.keys.last().map(|(key, _)| key).or(last.as_ref());
                if before.is_some_and(|before| *before >= key) {
                    return Err(Error::corrupt(format!(
                        "segment {}: row {} is out of order",
                        segment.name(),
                        start + row as usize
                    )));
                }
                self.keys.push((key, row));
            }
            self.batch = Batch::new(vectors, count);
            self.longest_row = self.batch.longest_row();
        }
        Ok(())
    }
}
