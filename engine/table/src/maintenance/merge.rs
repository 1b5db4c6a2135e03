//! Merge: rewrites segments into fewer, sorted, without their deleted rows. Changes no content and
//! blocks no writer while it reads and writes files.
//!
//! A merge is a state machine: each step reads or writes a bounded number of blocks, so that whoever lends it the time
//! between two statements is soon free again. It is abandoned, and its files removed, when its table is dropped or
//! emptied and when the database is closed.
//!
//! Deletes that arrive meanwhile are found by comparing each source's deletes with those the merge started from, and
//! set again in the new segments (seed: Doris, compaction; paper, 4.2). Row numbers change, so they are remapped by
//! key: most of them before the commit, and under the commit lock only those of the last moment.

use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::record::{self, NewSegment};
use crate::segments::file::NewFiles;
use crate::segments::state::SegmentState;
use crate::store::{Store, StoreOptions, file_name_of_segment};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_log::Lsn;
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Timestamp, Value, limits};
use roaring::RoaringBitmap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// So many segments of one size class are merged into one.
const FAN_IN: usize = 4;
/// So many at most: of each a block of every column is in memory.
const MAX_FAN_IN: usize = 16;
/// Blocks of one column that a step decodes, about.
const READ_BLOCKS: usize = 64;
/// Deletes that a step remaps; fewer are left to the commit.
const REMAP_ROWS: u64 = 256;

/// A merge under way.
pub(crate) struct Merge {
    table: Arc<Table>,
    partition: u32,
    columns: Vec<ColumnSpec>,
    sources: Vec<Source>,
    builder: SegmentBuilder,
    picks: Vec<Pick>,
    files: NewFiles,
    /// One for each file that is complete: rows that were deleted in the sources meanwhile.
    deleted: Vec<RoaringBitmap>,
    read: bool,
}

/// A segment being read in order, without its deleted rows.
struct Source {
    state: Arc<SegmentState>,
    /// Its deletes so far as they are left out, or remapped.
    deleted: RoaringBitmap,
    next_row: usize,
    /// Rows that are decoded together, at most a block.
    at_once: usize,
    batch: Batch,
    /// Bytes of one of its rows at most.
    longest_row: usize,
    /// Order key and row of the block's live rows, ascending.
    keys: Vec<(Vec<u8>, u32)>,
    at: usize,
}

/// What a step came to.
pub(crate) enum Progress {
    /// There is more to do.
    More,
    /// The merge is committed, or there was nothing to merge any more.
    Done,
}

impl Store {
    /// Starts a merge if a partition has too many segments of one size, or one that is mostly deleted.
    pub(crate) fn start_merge(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
    ) -> Result<Option<Merge>> {
        if !partition.may_merge().swap(false, Ordering::Relaxed) {
            return Ok(None);
        }
        let sources = self.worth_merging(partition);
        Merge::new(self, table, partition, &sources)
    }

    /// Starts a merge of all segments of a partition, unless it has only one, of which no row is deleted.
    pub(crate) fn start_merge_of_all(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
    ) -> Result<Option<Merge>> {
        let sources = current(partition);
        match &sources[..] {
            [] => Ok(None),
            [only] if only.deleted_rows() == 0 => Ok(None),
            sources => Merge::new(self, table, partition, sources),
        }
    }

    /// Segments that a merge would be good for. Sizes are classed by powers of four, so that a row is
    /// rewritten a logarithmic number of times and a logarithmic number of runs stays. Long rows count for several.
    fn worth_merging(&self, partition: &Partition) -> Vec<Arc<SegmentState>> {
        let (most_rows, most_bytes) =
            (self.options.segment_rows as u128, self.options.segment_bytes.max(1) as u128);
        let live = |s: &SegmentState| {
            let (rows, bytes) = (s.segment.rows() as u64, s.segment.raw_bytes() as u128);
            let full = rows.max(u64::try_from(bytes * most_rows / most_bytes).unwrap_or(u64::MAX));
            full.saturating_sub(s.deleted_rows().saturating_mul(full / rows.max(1)))
        };
        let current = current(partition);
        if let Some(dead) = current.iter().find(|s| s.is_mostly_deleted()) {
            return vec![dead.clone()];
        }
        let class = |s: &SegmentState| (live(s) / limits::BLOCK_ROWS as u64).max(1).ilog2() / 2;
        let full = (self.options.segment_rows as u64 / 2).max(1);
        let mut classes: Vec<(u32, Vec<Arc<SegmentState>>)> = Vec::new();
        for state in current.iter().filter(|s| live(s) < full) {
            match classes.iter_mut().find(|(c, _)| *c == class(state)) {
                Some((_, members)) => members.push(state.clone()),
                None => classes.push((class(state), vec![state.clone()])),
            }
        }
        let members =
            classes.into_iter().map(|(_, members)| members).find(|members| members.len() >= FAN_IN);
        let mut members = members.unwrap_or_default();
        members.truncate(MAX_FAN_IN);
        members
    }

    /// A whole merge at once.
    #[cfg(test)]
    pub(crate) fn merge(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        states: &[Arc<SegmentState>],
    ) -> Result<()> {
        let Some(mut merge) = Merge::new(self, table, partition, states)? else { return Ok(()) };
        loop {
            match merge.step(self) {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return Ok(()),
                Err(error) => {
                    merge.abandon(self);
                    return Err(error);
                }
            }
        }
    }
}

impl Merge {
    fn new(
        store: &Store,
        table: &Arc<Table>,
        partition: &Partition,
        states: &[Arc<SegmentState>],
    ) -> Result<Option<Merge>> {
        let visible = store.visible();
        // A segment that is not visible yet waits for its turn: its commit may still fail. And one may have columns
        // that came after this version of the table.
        if !table.is_newest() || !states.iter().all(|s| s.exists_at(visible)) {
            partition.consider_merging();
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
        let mut merge = Merge {
            table: table.clone(),
            partition: partition.number(),
            columns: table.segment_columns(),
            sources,
            builder: table.segment_builder(),
            picks: Vec::with_capacity(limits::BLOCK_ROWS),
            files: NewFiles::default(),
            deleted: Vec::new(),
            read: false,
        };
        // All sources together hold about a segment.
        let share = store.options.segment_bytes / merge.sources.len();
        for source in &mut merge.sources {
            let segment = &source.state.segment;
            let row = (segment.raw_bytes() / segment.rows().max(1) as u64).max(1);
            source.at_once = ((share as u64 / row) as usize).clamp(1, limits::BLOCK_ROWS);
            source.fill(&merge.table, &merge.columns)?;
        }
        Ok(Some(merge))
    }

    /// Does a bounded piece of work. After an error the merge must be abandoned.
    pub(crate) fn step(&mut self, store: &Store) -> Result<Progress> {
        if !self.is_wanted(store) {
            self.abandon(store);
            return Ok(Progress::Done);
        }
        if self.files.step(store)? {
            self.deleted.resize(self.files.complete().len(), RoaringBitmap::new());
            return Ok(Progress::More);
        }
        if !self.read {
            self.read_some(store)?;
            return Ok(Progress::More);
        }
        if self.remap_some()? {
            return Ok(Progress::More);
        }
        let Some(committed) = self.commit(store)? else {
            self.abandon(store);
            return Ok(Progress::Done);
        };
        // Whether or not the sync succeeds, the log may name the files from here on.
        self.files.are_named();
        store.settle_strictly(committed)?;
        Ok(Progress::Done)
    }

    pub(crate) fn partition(&self) -> &Partition {
        self.table.partition(self.partition)
    }

    /// The segments that are merged.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Arc<SegmentState>> {
        self.sources.iter().map(|source| &source.state)
    }

    /// Whether these are the segments that are merged.
    pub(crate) fn is_of(&self, states: &[Arc<SegmentState>]) -> bool {
        self.sources.len() == states.len()
            && self.states().zip(states).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Removes what was written.
    pub(crate) fn abandon(&mut self, store: &Store) {
        self.files.abandon(store);
    }

    /// Whether the table still has the partition that is being merged. That columns came or went does not matter:
    /// the new segments are as old as the sources in this.
    fn is_wanted(&self, store: &Store) -> bool {
        store.newest(&self.table).is_ok_and(|newest| newest.shares_partitions(&self.table))
    }

    fn read_some(&mut self, store: &Store) -> Result<()> {
        let StoreOptions { segment_rows, segment_bytes, .. } = store.options;
        let mut blocks = 0;
        while blocks < READ_BLOCKS && !self.files.is_writing() {
            let sources = &mut self.sources;
            let least = (0..sources.len())
                .filter(|s| sources[*s].key().is_some())
                .min_by(|a, b| sources[*a].key().cmp(&sources[*b].key()));
            let Some(least) = least else {
                push(&self.columns, &self.sources, &mut self.picks, &mut self.builder);
                self.read = true;
                if self.builder.rows() > 0 {
                    self.begin_writing(store)?;
                }
                return Ok(());
            };
            let other =
                (0..sources.len()).filter(|s| *s != least).filter_map(|s| sources[s].key()).min();
            let bound = other.map(<[u8]>::to_vec);
            let longest = sources.iter().map(|source| source.longest_row).max().unwrap_or(0);
            let room = rows_at_once(longest, &store.options)
                .min(segment_rows.saturating_sub(self.builder.rows()));
            let source = &mut sources[least];
            // A run of this source's rows, up to the next key of any other.
            while let Some((key, row)) = source.keys.get(source.at)
                && bound.as_ref().is_none_or(|bound| key < bound)
                && self.picks.len() < room
            {
                self.picks.push(Pick { batch: least as u32, row: *row });
                source.at += 1;
            }
            let exhausted = source.at == source.keys.len();
            if !exhausted && self.picks.len() < room && bound.as_deref() == source.key() {
                let (table, partition) = (&self.table.schema().name, self.partition);
                let what =
                    format!("table {table}, partition {partition}: two segments hold the same key");
                return Err(Error::corrupt(what));
            }
            if exhausted || self.picks.len() >= room {
                // Picks refer to the sources' current blocks, so they go before a block is replaced.
                push(&self.columns, &self.sources, &mut self.picks, &mut self.builder);
                blocks += self.columns.len();
                if exhausted {
                    self.sources[least].fill(&self.table, &self.columns)?;
                    blocks += self.columns.len();
                }
                if self.builder.rows() >= segment_rows
                    || self.builder.memory_bytes() >= segment_bytes
                {
                    self.begin_writing(store)?;
                }
            }
        }
        Ok(())
    }

    fn begin_writing(&mut self, store: &Store) -> Result<()> {
        let full = std::mem::replace(&mut self.builder, self.table.segment_builder());
        let sources: Vec<u64> =
            self.sources.iter().map(|source| source.state.segment.id()).collect();
        let besides: Vec<&Segment> = self.files.complete().iter().map(|file| &**file).collect();
        let full = self.table.with_key_filter(
            self.table.partition(self.partition),
            full,
            &besides,
            &sources,
        );
        self.files.begin(store, full, file_name_of_segment)
    }

    /// Remaps deletes that arrived since the merge began, unless they are few. Answers whether it did.
    fn remap_some(&mut self) -> Result<bool> {
        let new: u64 = self.sources.iter().map(|s| s.state.deleted_rows() - s.deleted.len()).sum();
        if new < REMAP_ROWS {
            return Ok(false);
        }
        self.remap(REMAP_ROWS as usize)?;
        Ok(true)
    }

    fn remap(&mut self, mut most: usize) -> Result<()> {
        for source in &mut self.sources {
            let new = &*source.state.all_deleted() - &source.deleted;
            for row in new.iter().take(most) {
                let key = self.table.key_of_segment_row(&source.state, row)?;
                for (file, deleted) in self.files.complete().iter().zip(&mut self.deleted) {
                    if let Some(row) = self.table.find_row(file, &key, Segment::search)? {
                        if !plant::is(Bug::MergeRemap) {
                            deleted.insert(row);
                        }
                        break;
                    }
                }
                source.deleted.insert(row);
                most -= 1;
            }
        }
        Ok(())
    }

    /// Appends and applies the record. Nothing when the sources are not all there any more.
    fn commit(&mut self, store: &Store) -> Result<Option<(Timestamp, Lsn)>> {
        let mut state = store.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let commit = state.last + 1;
        let table = self.table.clone();
        let partition = table.partition(self.partition);
        let there = partition.segments();
        let is_there = |source: &Source| {
            source.state.is_current() && there.iter().any(|state| Arc::ptr_eq(state, &source.state))
        };
        if !self.is_wanted(store) || !self.sources.iter().all(is_there) {
            return Ok(None);
        }
        self.remap(usize::MAX)?;
        let added: Vec<NewSegment> = (self.files.complete().iter().zip(&self.deleted))
            .map(|(file, deleted)| NewSegment { id: file.id(), deleted: deleted.clone() })
            .collect();
        let mut payload = record::begin(commit);
        let dropped: Vec<u64> = self.sources.iter().map(|s| s.state.segment.id()).collect();
        record::merge(&mut payload, table.place(partition), &dropped, &added)?;
        let lsn = store.log.append(&payload)?;
        state.last = commit;
        let content = self.sources.iter().map(|s| s.state.content()).max().unwrap_or(0);
        partition.update_segments(|list| {
            list.extend((self.files.complete().iter().zip(added)).map(|(file, new)| {
                Arc::new(
                    SegmentState::new(file.clone(), commit, new.deleted)
                        .with_content(content)
                        .with_bitmaps(&store.bitmaps),
                )
            }));
        });
        let sources = || self.sources.iter().map(|s| &s.state);
        sources().for_each(|s| s.drop_at(commit));
        store.garbage.lock().unwrap_or_else(PoisonError::into_inner).extend(sources().cloned());
        table.set_changed(commit);
        Ok(Some((commit, lsn)))
    }
}

fn current(partition: &Partition) -> Vec<Arc<SegmentState>> {
    partition.segments().iter().filter(|s| s.is_current()).cloned().collect()
}

fn push(
    columns: &[ColumnSpec],
    sources: &[Source],
    picks: &mut Vec<Pick>,
    builder: &mut SegmentBuilder,
) {
    if !picks.is_empty() {
        let types: Vec<_> = columns.iter().map(|c| c.data_type).collect();
        let batches: Vec<&Batch> = sources.iter().map(|s| &s.batch).collect();
        builder.push(&gather(&types, &batches, picks));
        picks.clear();
    }
}

impl Source {
    fn key(&self) -> Option<&[u8]> {
        self.keys.get(self.at).map(|(key, _)| key.as_slice())
    }

    /// Decodes the next rows of a block of which one lives.
    fn fill(&mut self, table: &Table, columns: &[ColumnSpec]) -> Result<()> {
        let segment = self.state.segment.clone();
        let order = table.order_columns(&segment)?;
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
                        &table.default_of(column.id),
                        count,
                    ))),
                })
                .collect::<Result<Vec<_>>>()?;
            let keys: Vec<Vector> =
                order.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<_>>()?;
            for row in live {
                let values: Vec<Value> = keys.iter().map(|v| v.value(row as usize)).collect();
                self.keys.push((table.encode_order(&values)?, row));
            }
            self.batch = Batch::new(vectors, count);
            self.longest_row = self.batch.longest_row();
        }
        Ok(())
    }
}
