//! Merge: rewrites segments into fewer, sorted, without their deleted rows. Changes no content and
//! blocks no writer while it reads and writes files.
//!
//! Deletes that arrive meanwhile are found at the commit, by comparing each source's deletes with those
//! the merge started from, and set again in the new segments (seed: Doris, compaction; paper, 4.2). Row
//! numbers change, so they are remapped by key.

use crate::gather::{Pick, gather};
use crate::partition::Partition;
use crate::record::{self, NewSegment};
use crate::segments::SegmentState;
use crate::store::Store;
use crate::table::Table;
use nacre_column::{Batch, Vector};
use nacre_log::Lsn;
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::{Result, Timestamp, Value, limits};
use roaring::RoaringBitmap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// So many segments of one size class are merged into one.
const FAN_IN: usize = 4;

/// A segment being read in key order, without its deleted rows.
struct Source {
    state: Arc<SegmentState>,
    deleted: Option<Arc<RoaringBitmap>>,
    next_block: usize,
    batch: Batch,
    /// Key and row of the block's live rows, ascending.
    keys: Vec<(Vec<u8>, u32)>,
    at: usize,
}

impl Store {
    /// Merges the segments of each partition of a table into one sorted run.
    pub fn merge_all(self: &Arc<Self>, table: &Arc<Table>) -> Result<()> {
        let _one_at_a_time = self.lock_maintenance();
        self.check_open()?;
        self.flush_table(table)?;
        let table = &self.newest(table)?;
        for partition in table.partitions() {
            let sources = current(partition);
            let clean = sources.iter().all(|s| s.deleted_rows() == 0);
            if sources.len() > 1 || !clean {
                self.merge(table, partition, &sources)?;
            }
        }
        self.collect_garbage()?;
        Ok(())
    }

    /// Merges segments if a partition has too many of one size, or one that is mostly deleted. Answers whether it did.
    pub(crate) fn merge_some(self: &Arc<Self>, table: &Arc<Table>, partition: &Partition) -> Result<bool> {
        if !partition.may_merge().swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        let sources = self.worth_merging(partition);
        if sources.is_empty() {
            return Ok(false);
        }
        self.merge(table, partition, &sources)?;
        Ok(true)
    }

    /// Segments that a merge would be good for. Sizes are classed by powers of four, so that a row is
    /// rewritten a logarithmic number of times and a logarithmic number of runs stays.
    fn worth_merging(&self, partition: &Partition) -> Vec<Arc<SegmentState>> {
        let live = |s: &SegmentState| (s.segment.rows() as u64).saturating_sub(s.deleted_rows());
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
        classes.into_iter().map(|(_, members)| members).find(|members| members.len() >= FAN_IN).unwrap_or_default()
    }

    pub(crate) fn merge(
        self: &Arc<Self>,
        table: &Arc<Table>,
        partition: &Partition,
        states: &[Arc<SegmentState>],
    ) -> Result<()> {
        let guard = self.snapshot();
        let at = guard.at();
        // A segment that is not visible yet waits for its turn; it cannot be read at this snapshot.
        let states: Vec<_> = states.iter().filter(|s| s.exists_at(at)).cloned().collect();
        if states.is_empty() {
            return Ok(());
        }
        let files = self.write_merged(table, &states, at)?;
        let committed = self.commit_merge(table, partition, &states, &files, at);
        if committed.is_err() {
            files.iter().for_each(|file| self.remove_file(file.name()));
        }
        self.settle_strictly(committed?)
    }

    fn write_merged(
        &self,
        table: &Arc<Table>,
        states: &[Arc<SegmentState>],
        at: Timestamp,
    ) -> Result<Vec<Arc<Segment>>> {
        let columns = table.segment_columns();
        let mut sources: Vec<Source> = states
            .iter()
            .map(|state| Source {
                state: state.clone(),
                deleted: state.deleted_at(at),
                next_block: 0,
                batch: Batch::default(),
                keys: Vec::new(),
                at: 0,
            })
            .collect();
        for source in &mut sources {
            source.fill(table, &columns)?;
        }
        let mut files = Vec::new();
        let mut builder = SegmentBuilder::new(table.segment_columns());
        let mut picks: Vec<Pick> = Vec::with_capacity(limits::BLOCK_ROWS);
        loop {
            let least = (0..sources.len())
                .filter(|s| sources[*s].key().is_some())
                .min_by(|a, b| sources[*a].key().cmp(&sources[*b].key()));
            let Some(least) = least else { break };
            let other = (0..sources.len()).filter(|s| *s != least).filter_map(|s| sources[s].key()).min();
            let bound = other.map(<[u8]>::to_vec);
            let room = limits::BLOCK_ROWS.min(self.options.segment_rows.saturating_sub(builder.rows()));
            let source = &mut sources[least];
            // A run of this source's rows, up to the next key of any other.
            while let Some((key, row)) = source.keys.get(source.at)
                && bound.as_ref().is_none_or(|bound| key < bound)
                && picks.len() < room
            {
                picks.push(Pick { batch: least as u32, row: *row });
                source.at += 1;
            }
            let exhausted = source.at == source.keys.len();
            if exhausted || picks.len() == room {
                // Picks refer to the sources' current blocks, so they go before a block is replaced.
                push(&columns, &sources, &mut picks, &mut builder);
                if exhausted {
                    sources[least].fill(table, &columns)?;
                }
                if builder.rows() >= self.options.segment_rows {
                    let full = std::mem::replace(&mut builder, SegmentBuilder::new(table.segment_columns()));
                    files.push(self.write_segment(full)?);
                }
            }
        }
        push(&columns, &sources, &mut picks, &mut builder);
        if builder.rows() > 0 {
            files.push(self.write_segment(builder)?);
        }
        Ok(files)
    }

    fn commit_merge(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        states: &[Arc<SegmentState>],
        files: &[Arc<Segment>],
        at: Timestamp,
    ) -> Result<(Timestamp, Lsn)> {
        let mut state = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let commit = state.last + 1;
        table.check_newest()?;
        let mut added: Vec<NewSegment> =
            files.iter().map(|f| NewSegment { id: f.id(), deleted: RoaringBitmap::new() }).collect();
        let targets: Vec<SegmentState> =
            files.iter().map(|f| SegmentState::new(f.clone(), commit, RoaringBitmap::new())).collect();
        for source in states {
            for row in source.deleted_since(at) {
                let key = table.key_of_segment_row(source, row)?;
                for (target, new) in targets.iter().zip(&mut added) {
                    if let Some(row) = table.find_in_segment(target, &key)? {
                        new.deleted.insert(row);
                        break;
                    }
                }
            }
        }
        let mut payload = record::begin(commit);
        let dropped: Vec<u64> = states.iter().map(|s| s.segment.id()).collect();
        record::merge(&mut payload, table.place(partition), &dropped, &added)?;
        let lsn = self.log.append(&payload)?;
        state.last = commit;
        partition.update_segments(|list| {
            let new = files.iter().zip(added);
            let content = states.iter().map(|s| s.content()).max().unwrap_or(0);
            list.extend(new.map(|(file, new)| {
                Arc::new(SegmentState::new(file.clone(), commit, new.deleted).with_content(content))
            }));
        });
        states.iter().for_each(|s| s.drop_at(commit));
        self.garbage.lock().unwrap_or_else(PoisonError::into_inner).extend(states.iter().cloned());
        table.set_changed(commit);
        Ok((commit, lsn))
    }
}

fn current(partition: &Partition) -> Vec<Arc<SegmentState>> {
    partition.segments().iter().filter(|s| s.is_current()).cloned().collect()
}

fn push(columns: &[ColumnSpec], sources: &[Source], picks: &mut Vec<Pick>, builder: &mut SegmentBuilder) {
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

    /// Decodes the next block that has a live row.
    fn fill(&mut self, table: &Table, columns: &[ColumnSpec]) -> Result<()> {
        let segment = self.state.segment.clone();
        let key_columns = table.segment_key_columns(&self.state)?;
        self.keys.clear();
        self.at = 0;
        while self.keys.is_empty() && self.next_block < segment.blocks() {
            let start = self.next_block * limits::BLOCK_ROWS;
            let count = limits::BLOCK_ROWS.min(segment.rows() - start);
            self.next_block += 1;
            let live: Vec<u32> = (0..count as u32)
                .filter(|row| !self.deleted.as_ref().is_some_and(|d| d.contains(start as u32 + row)))
                .collect();
            if live.is_empty() {
                continue;
            }
            let vectors = columns
                .iter()
                .map(|column| match segment.column_index(column.id) {
                    Some(index) => segment.decode(index, start, count).map(Arc::new),
                    None => Ok(Arc::new(Vector::constant(column.data_type, &table.default_of(column.id), count))),
                })
                .collect::<Result<Vec<_>>>()?;
            let keys: Vec<Vector> =
                key_columns.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<_>>()?;
            for row in live {
                let values: Vec<Value> = keys.iter().map(|v| v.value(row as usize)).collect();
                self.keys.push((table.encode_key(&values)?, row));
            }
            self.batch = Batch::new(vectors, count);
        }
        Ok(())
    }
}
