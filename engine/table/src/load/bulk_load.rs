//! Bulk load: rows go straight into sorted segments, and become visible together at the end.
//!
//! Keys that exist already are found in two phases (seed: Doris): first against what is committed, without any lock;
//! then, under the commit lock, only if the table changed meanwhile. What somebody is about to commit, and may not, is
//! in no list of the first phase: what is refused, left out or replaced there is not looked at again.

use crate::layout::gather::{Pick, gather, rows_at_once};
use crate::layout::keys::KeyRows;
use crate::layout::rows::check_row_length;
use crate::load::common_keys as common;
use crate::load::locks::{Held, held_by_another};
use crate::load::unique as load;
use crate::record::{self, NewSegment};
use crate::segments::state::{FOREVER, SegmentState};
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::{Batch, Values, Vector};
use nacre_rowstore::{Change, Node, Version};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::hash::Map;
use nacre_types::{DataType, Error, Result, Timestamp, key};
use roaring::RoaringBitmap;
use std::sync::{Arc, PoisonError};

/// A load into several partitions keeps at most so many segments' worth of rows in memory.
const PENDING_SEGMENTS: usize = 2;

/// What to do with a key that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Fail; nothing is loaded.
    Error,
    /// Keep the row that is there.
    Skip,
    /// Replace it. Of one key twice in the load, the later row wins.
    Replace,
}

/// A load under way. Dropping it leaves the table as it was.
pub struct BulkLoad {
    pub(super) store: Arc<Store>,
    pub(super) table: Arc<Table>,
    pub(super) on_duplicate: OnDuplicate,
    /// Of each partition.
    pub(super) pending: Vec<Pending>,
    pub(super) files: Vec<Loaded>,
    /// Rows that go through a transaction: what a row takes the place of, or is skipped for, may be any row where there
    /// are several unique keys, so they go one after the other.
    pub(super) one_by_one: Option<Vec<Batch>>,
    /// The table is made together with its rows.
    pub(super) creates: bool,
    /// What kept rows from being written: they are lost, so the load is.
    pub(super) failed: Option<Error>,
    pub(super) done: bool,
}

/// Rows of one partition that are not in a file yet.
#[derive(Default)]
pub(super) struct Pending {
    batches: Vec<Batch>,
    rows: usize,
    /// Of the flat values.
    bytes: usize,
}

/// A segment of the load, and its rows that must not appear.
pub(super) struct Loaded {
    pub(super) partition: u32,
    pub(super) segment: Arc<Segment>,
    pub(super) rejected: RoaringBitmap,
}

/// Rows outside the load that it replaces.
#[derive(Default)]
struct Replaced {
    /// Nodes whose key is in the load from now on, with their partition: replaced rows, and tombstones.
    nodes: Vec<(u32, Arc<Node>)>,
    rows: Map<u64, (u32, Arc<SegmentState>, RoaringBitmap)>,
}

impl Store {
    /// Starts a bulk load into a table.
    pub fn bulk_load(self: &Arc<Self>, table: &Arc<Table>, on_duplicate: OnDuplicate) -> BulkLoad {
        BulkLoad {
            store: self.clone(),
            table: table.clone(),
            on_duplicate,
            pending: table.partitions().iter().map(|_| Pending::default()).collect(),
            files: Vec::new(),
            one_by_one: (on_duplicate != OnDuplicate::Error && table.has_unique_index())
                .then(Vec::new),
            creates: false,
            failed: None,
            done: false,
        }
    }
}

impl BulkLoad {
    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Adds rows in table order. May write a segment file; when that fails, the load answers nothing but this error from
    /// then on.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        self.check_usable()?;
        let batch = batch.clone().compact();
        self.table.check_batch(&batch)?;
        check_row_lengths(&batch)?;
        let added = self.add(batch);
        self.failed = added.as_ref().err().cloned();
        added
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => self.store.check_open(),
        }
    }

    fn add(&mut self, batch: Batch) -> Result<()> {
        if let Some(batches) = &mut self.one_by_one {
            batches.push(batch);
            return Ok(());
        }
        if self.pending.len() == 1 {
            return self.append_to(0, batch);
        }
        self.table
            .split(batch)?
            .into_iter()
            .try_for_each(|(partition, batch)| self.append_to(partition, batch))?;
        // Many partitions that fill at the same pace must not hold a segment each in memory.
        loop {
            let sum = |of: &dyn Fn(&Pending) -> usize| {
                self.pending.iter().map(of).sum::<usize>() / PENDING_SEGMENTS
            };
            if !self.is_full(sum(&|p| p.rows), sum(&|p| p.bytes)) {
                return Ok(());
            }
            let fullest =
                (0..self.pending.len()).max_by_key(|p| self.pending[*p].bytes).unwrap_or(0);
            self.write_pending(fullest as u32)?;
        }
    }

    fn append_to(&mut self, partition: u32, batch: Batch) -> Result<()> {
        let Some(pending) = self.pending.get_mut(partition as usize) else { return Ok(()) };
        pending.rows += batch.rows;
        pending.bytes += batch.flat_bytes();
        if batch.rows > 0 {
            pending.batches.push(batch);
        }
        // A batch may be large; what is written is split into segments of the right size.
        while self.pending.get(partition as usize).is_some_and(|p| self.is_full(p.rows, p.bytes)) {
            self.write_pending(partition)?;
        }
        Ok(())
    }

    /// Whether so many rows of so many bytes make a segment.
    fn is_full(&self, rows: usize, bytes: usize) -> bool {
        let options = &self.store.options;
        rows >= options.segment_rows || rows > 0 && bytes >= options.segment_bytes
    }

    fn pending_rows(&self, partition: u32) -> usize {
        self.pending.get(partition as usize).map_or(0, |p| p.rows)
    }

    /// Writes the next segment from the pending rows of a partition.
    fn write_pending(&mut self, partition: u32) -> Result<()> {
        let Some(pending) = self.pending.get_mut(partition as usize) else { return Ok(()) };
        let options = &self.store.options;
        let mut taken: Vec<Batch> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        let mut rest: Vec<Batch> = Vec::new();
        for batch in pending.batches.drain(..) {
            let size = batch.flat_bytes();
            // So many of its rows still fit; one always does.
            let left = options.segment_bytes.saturating_sub(bytes);
            let by_bytes = if size <= left {
                batch.rows
            } else {
                (batch.rows as u128 * left as u128 / size as u128) as usize
            };
            let room = (options.segment_rows - count).min(by_bytes.max(usize::from(count == 0)));
            if !rest.is_empty() || room == 0 {
                rest.push(batch);
            } else if batch.rows <= room {
                (count, bytes) = (count + batch.rows, bytes + size);
                taken.push(batch);
            } else {
                let slice = |from: usize, to: usize| {
                    let rows: Vec<u32> = (from as u32..to as u32).collect();
                    Batch::new(
                        batch.columns.iter().map(|c| Arc::new(c.take(&rows))).collect(),
                        to - from,
                    )
                };
                taken.push(slice(0, room));
                rest.push(slice(room, batch.rows));
                count += room;
            }
        }
        pending.bytes = rest.iter().map(Batch::flat_bytes).sum();
        pending.batches = rest;
        pending.rows -= count;
        if count == 0 {
            return Ok(());
        }
        let loaded = self.write_sorted(partition, taken, count)?;
        self.files.push(loaded);
        Ok(())
    }

    fn write_sorted(&self, partition: u32, batches: Vec<Batch>, count: usize) -> Result<Loaded> {
        let mut builder = self.table.segment_builder();
        let mut batches = batches;
        if self.table.key_columns().is_none() {
            let mut reserved = self.table.partition(partition).reserve_row_numbers(count as u64);
            for batch in &mut batches {
                let numbers: Vec<i64> =
                    reserved.by_ref().take(batch.rows).map(|n| n as i64).collect();
                batch.columns.push(Arc::new(Vector::new(
                    DataType::Int64,
                    Values::I64(numbers),
                    None,
                )));
            }
        }
        let row_number = [self.table.schema().columns.len()];
        let columns = self.table.key_columns().unwrap_or(&row_number);
        let keys = encode_keys(columns, &batches)?;
        keys.iter().try_for_each(|at| key::check_length(&at.bytes))?;
        let in_order = keys.windows(2).all(|pair| pair[0].bytes < pair[1].bytes);
        if in_order && self.table.sort_columns().is_none() {
            batches.iter().for_each(|batch| builder.push(batch));
        } else {
            self.push_in_order(keys, &batches, &mut builder)?;
        }
        let besides: Vec<&Segment> = self
            .files
            .iter()
            .filter(|file| file.partition == partition)
            .map(|file| &*file.segment)
            .collect();
        let builder =
            self.table.with_key_filter(self.table.partition(partition), builder, &besides, &[]);
        Ok(Loaded {
            partition,
            segment: self.store.write_segment(builder)?,
            rejected: RoaringBitmap::new(),
        })
    }

    /// Sorts by key; of one key twice, writes only the row the option asks for: inside a segment keys are
    /// unique, deleted rows included, or a search could meet the wrong one.
    fn push_in_order(
        &self,
        mut keys: Vec<KeyAt>,
        batches: &[Batch],
        builder: &mut SegmentBuilder,
    ) -> Result<()> {
        // Stable: of equal keys the earlier comes first.
        keys.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        match self.on_duplicate {
            OnDuplicate::Error => {
                if let Some(pair) = keys.windows(2).find(|pair| pair[0].bytes == pair[1].bytes) {
                    return Err(self
                        .table
                        .duplicate(&key::decode(&pair[0].bytes, &self.table.key_types())?));
                }
            }
            OnDuplicate::Skip => keys.dedup_by(|later, kept| later.bytes == kept.bytes),
            OnDuplicate::Replace => keys.dedup_by(|later, kept| {
                let same = later.bytes == kept.bytes;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            }),
        }
        let types: Vec<DataType> =
            self.table.segment_columns().iter().map(|c| c.data_type).collect();
        if let Some(sort) = self.table.sort_columns() {
            let orders = encode_keys(sort, batches)?;
            let first: Vec<usize> = batches
                .iter()
                .scan(0, |next, batch| Some(std::mem::replace(next, *next + batch.rows)))
                .collect();
            // Stable: of equal sort keys the lower key comes first.
            keys.sort_by_key(|key| {
                let at = first
                    .get(key.pick.batch as usize)
                    .map_or(0, |first| first + key.pick.row as usize);
                orders.get(at).map(|order| order.bytes.as_slice())
            });
        }
        let batches: Vec<&Batch> = batches.iter().collect();
        let longest = batches.iter().map(|batch| batch.longest_row()).max().unwrap_or(0);
        let at_once = rows_at_once(longest, &self.store.options);
        for run in keys.chunks(at_once) {
            let picks: Vec<Pick> = run.iter().map(|key| key.pick).collect();
            builder.push(&gather(&types, &batches, &picks));
        }
        Ok(())
    }

    /// Publishes all rows, or none. Returns how many rows the table gained or replaced.
    pub fn finish(mut self) -> Result<u64> {
        self.check_usable()?;
        if let Some(batches) = self.one_by_one.take() {
            return load::one_by_one(&self.store, &self.table, self.on_duplicate, &batches);
        }
        for partition in 0..self.pending.len() as u32 {
            while self.pending_rows(partition) > 0 {
                self.write_pending(partition)?;
            }
        }
        if self.files.is_empty() && !self.creates {
            return Ok(0);
        }
        self.resolve_inside()?;
        load::check_inside(&self.table, &self.states())?;
        if self.creates {
            return self.publish_created();
        }
        let (seen, lists) = {
            let _nobody_commits = self.store.commit.lock().unwrap_or_else(PoisonError::into_inner);
            (self.table.changed(), self.lists())
        };
        // First phase, without a lock.
        let replaced = self.resolve_outside(&lists)?;
        load::check_segments(&self.table, &lists, &self.states())?;
        let loaded = self.publish(seen, replaced)?;
        self.done = true;
        Ok(loaded)
    }

    /// The segments of each partition.
    fn lists(&self) -> Vec<Arc<SegmentList>> {
        self.table.partitions().iter().map(Partition::segments).collect()
    }

    /// The load's segments as if they were of the table; none where no index has to be looked at.
    fn states(&self) -> Vec<SegmentState> {
        if !self.table.has_unique_index() {
            return Vec::new();
        }
        self.files
            .iter()
            .map(|f| SegmentState::new(f.segment.clone(), FOREVER, f.rejected.clone()))
            .collect()
    }

    /// Keys that appear in more than one segment of this load.
    fn resolve_inside(&mut self) -> Result<()> {
        if self.table.key_columns().is_none() {
            return Ok(());
        }
        for later in 1..self.files.len() {
            for earlier in 0..later {
                let (before, after) = self.files.split_at_mut(later);
                let (Some(earlier), Some(later)) = (before.get_mut(earlier), after.first_mut())
                else {
                    continue;
                };
                if earlier.partition != later.partition {
                    continue;
                }
                let (table, on_duplicate) = (&self.table, self.on_duplicate);
                let (old, new) = (earlier.segment.clone(), later.segment.clone());
                let (old, new) = (table.sorted_keys(&old)?, table.sorted_keys(&new)?);
                common::each_common(&old, &new, &mut |old_at, new_at| {
                    let (old_row, new_row) = (old.row(old_at)?, new.row(new_at)?);
                    if earlier.rejected.contains(old_row) || later.rejected.contains(new_row) {
                        return Ok(());
                    }
                    match on_duplicate {
                        OnDuplicate::Error => return Err(table.duplicate(&new.at(new_at)?)),
                        OnDuplicate::Skip => later.rejected.insert(new_row),
                        OnDuplicate::Replace => earlier.rejected.insert(old_row),
                    };
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Keys of this load that the table, with these segments in its partitions, has already.
    fn resolve_outside(&mut self, lists: &[Arc<SegmentList>]) -> Result<Replaced> {
        let mut replaced = Replaced::default();
        if self.table.key_columns().is_none() {
            return Ok(replaced);
        }
        let own: Vec<u64> = self.files.iter().map(|f| f.segment.id()).collect();
        let (table, on_duplicate) = (self.table.clone(), self.on_duplicate);
        for file in &mut self.files {
            let segment = file.segment.clone();
            let new = table.sorted_keys(&segment)?;
            let mut met = |state: &Arc<SegmentState>, old_row: u32, new_at: usize| {
                let new_row = new.row(new_at)?;
                if state.is_deleted(old_row) || file.rejected.contains(new_row) {
                    return Ok(());
                }
                match on_duplicate {
                    OnDuplicate::Error => return Err(table.duplicate(&new.at(new_at)?)),
                    OnDuplicate::Skip => {
                        file.rejected.insert(new_row);
                    }
                    OnDuplicate::Replace => {
                        let made = || (file.partition, state.clone(), RoaringBitmap::new());
                        replaced
                            .rows
                            .entry(state.segment.id())
                            .or_insert_with(made)
                            .2
                            .insert(old_row);
                    }
                }
                Ok(())
            };
            let Some(list) = lists.get(file.partition as usize) else { continue };
            // Segments with so many rows that each of the load's keys is looked up by itself.
            let mut large = vec![false; list.len()];
            for (place, state) in list.iter().enumerate() {
                if !state.is_current() || own.contains(&state.segment.id()) {
                    continue;
                }
                let old = table.sorted_keys(&state.segment)?;
                if common::is_few(&new, segment.rows(), state.segment.rows()) {
                    large[place] = common::overlap(&old, &new)?.is_some();
                } else {
                    common::each_common(&old, &new, &mut |old_at, new_at| {
                        met(state, old.row(old_at)?, new_at)
                    })?;
                }
            }
            if !large.contains(&true) {
                continue;
            }
            for new_at in 0..segment.rows() {
                let key = new.at(new_at)?;
                for candidate in list.of_key(&table, &table.encode_key(&key)?)?.newest_first() {
                    let state = &list[candidate.place];
                    if large[candidate.place]
                        && let Some(old_row) = table.find_candidate(state, candidate, &key)?
                    {
                        met(state, old_row, new_at)?;
                    }
                }
            }
        }
        self.resolve_rowstores(&mut replaced)?;
        Ok(replaced)
    }

    fn resolve_rowstores(&mut self, replaced: &mut Replaced) -> Result<()> {
        let table = self.table.clone();
        let state =
            |file: &Loaded| SegmentState::new(file.segment.clone(), FOREVER, RoaringBitmap::new());
        let states: Vec<SegmentState> = self.files.iter().map(state).collect();
        table
            .partitions()
            .iter()
            .try_for_each(|partition| self.resolve_rowstore(&table, partition, &states, replaced))
    }

    fn resolve_rowstore(
        &mut self,
        table: &Table,
        partition: &Partition,
        states: &[SegmentState],
        replaced: &mut Replaced,
    ) -> Result<()> {
        partition.try_each_node(|node| {
            let newest = node.newest().map(|v| v.change);
            let locked = node.is_locked();
            if !locked && !matches!(newest, Some(Change::Put(_) | Change::Delete)) {
                return Ok(());
            }
            let values = key::decode(node.key(), &table.key_types())?;
            let own =
                |(file, _): &(&mut Loaded, &SegmentState)| file.partition == partition.number();
            for (file, state) in self.files.iter_mut().zip(states).filter(own) {
                let Some(row) = table.find_in_segment(state, &values)? else { continue };
                if file.rejected.contains(row) {
                    continue;
                }
                if locked {
                    return Err(held_by_another(table));
                }
                match (&newest, self.on_duplicate) {
                    // A tombstone that older snapshots still need must not hide the new row.
                    (Some(Change::Delete), _) | (_, OnDuplicate::Replace) => {
                        replaced.nodes.push((partition.number(), node.clone()));
                    }
                    (_, OnDuplicate::Error) => return Err(table.duplicate(&values)),
                    (_, OnDuplicate::Skip) => {
                        file.rejected.insert(row);
                    }
                }
            }
            Ok(())
        })
    }

    fn publish(&mut self, seen: Timestamp, mut replaced: Replaced) -> Result<u64> {
        let store = self.store.clone();
        let table = self.table.clone();
        let mut state = store.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let commit = state.last + 1;
        table.check_newest()?;
        // The segments are listed before the rowstore is looked through again: a concurrent insert either has
        // its lock taken by then, or finds the new rows.
        let states: Vec<Arc<SegmentState>> = self
            .files
            .iter()
            .map(|f| {
                let state = SegmentState::new(f.segment.clone(), commit, f.rejected.clone());
                Arc::new(state.with_content(commit).with_bitmaps(&store.bitmaps))
            })
            .collect();
        for partition in table.partitions() {
            let own =
                |(file, _): &(&Loaded, &Arc<SegmentState>)| file.partition == partition.number();
            let added = self.files.iter().zip(&states).filter(own).map(|(_, state)| state.clone());
            partition.update_segments(|list| list.extend(added));
        }
        let result = (|| {
            if table.changed() != seen {
                // Second phase: everything again, now that nothing can change any more.
                let lists = self.lists();
                replaced = self.resolve_outside(&lists)?;
                load::check_segments(&table, &lists, &self.states())?;
            } else {
                replaced.nodes.clear();
                self.resolve_rowstores(&mut replaced)?;
            }
            load::check_memory(&table, &self.states())?;
            let held = Held::lock(&replaced.nodes, store.new_owner(), &table)?;
            let mut payload = record::begin(commit);
            for (partition, node) in &replaced.nodes {
                record::delete(&mut payload, table.place(table.partition(*partition)), node.key());
            }
            for (partition, state, rows) in replaced.rows.values() {
                let place = table.place(table.partition(*partition));
                record::delete_rows(&mut payload, place, state.segment.id(), rows)?;
            }
            self.add_segments(&mut payload)?;
            Ok((self.store.log.append(&payload)?, held))
        })();
        let (lsn, held) = match result {
            Ok(appended) => appended,
            Err(error) => {
                let own: Vec<u64> = self.files.iter().map(|f| f.segment.id()).collect();
                for partition in table.partitions() {
                    partition
                        .update_segments(|list| list.retain(|s| !own.contains(&s.segment.id())));
                }
                return Err(error);
            }
        };
        state.last = commit;
        let oldest = store.oldest_snapshot();
        for (file, added) in self.files.iter().zip(&states) {
            if added.deleted_rows() != file.rejected.len() {
                added.delete(commit, file.rejected.clone(), commit);
            }
        }
        for (_, node) in &replaced.nodes {
            // The key's row is in one of the new segments: not deleted, but elsewhere, and changed.
            node.push_version(Version { commit, content: commit, change: Change::Flushed });
        }
        drop(held);
        for (_, state, rows) in replaced.rows.values() {
            state.delete(commit, rows.clone(), oldest);
        }
        table.set_changed(commit);
        // From here on the files belong to the table, whatever the sync says.
        self.done = true;
        drop(state);
        store.settle_strictly((commit, lsn))?;
        Ok(self.files.iter().map(|f| f.segment.rows() as u64 - f.rejected.len()).sum())
    }

    /// Appends to a record which segments the load adds to the table.
    pub(super) fn add_segments(&self, payload: &mut Vec<u8>) -> Result<()> {
        for partition in self.table.partitions() {
            let own = self.files.iter().filter(|f| f.partition == partition.number());
            let segments: Vec<NewSegment> = own
                .map(|f| NewSegment { id: f.segment.id(), deleted: f.rejected.clone() })
                .collect();
            if !segments.is_empty() {
                record::add_segments(payload, self.table.place(partition), &segments)?;
            }
        }
        Ok(())
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        if !self.done {
            for file in &self.files {
                self.store.remove_file(file.segment.name());
            }
        }
    }
}

/// An encoded key and where its row is.
struct KeyAt {
    bytes: Vec<u8>,
    pick: Pick,
}

/// Refuses rows that are too long.
pub(crate) fn check_row_lengths(batch: &Batch) -> Result<()> {
    if check_row_length(batch.longest_row()).is_ok() {
        return Ok(());
    }
    let bytes_of = |row: usize| {
        batch.columns.iter().filter_map(|c| c.bytes(row)).map(<[u8]>::len).sum::<usize>()
    };
    (0..batch.rows).try_for_each(|row| check_row_length(bytes_of(row)))
}

/// The columns at these positions of all rows in turn, however long.
fn encode_keys(columns: &[usize], batches: &[Batch]) -> Result<Vec<KeyAt>> {
    let mut keys = Vec::with_capacity(batches.iter().map(|b| b.rows).sum());
    for (index, batch) in batches.iter().enumerate() {
        let vectors: Vec<&Vector> = columns.iter().map(|c| &*batch.columns[*c]).collect();
        let rows = KeyRows::new(&vectors);
        for row in 0..batch.rows {
            let mut bytes = Vec::with_capacity(columns.len() * 9);
            rows.put(row, &mut bytes);
            keys.push(KeyAt { bytes, pick: Pick { batch: index as u32, row: row as u32 } });
        }
    }
    Ok(keys)
}
