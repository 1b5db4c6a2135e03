//! Flush: turns the committed rows of a rowstore into sorted segments, in one commit that changes no
//! content. Writers are not blocked while the files are written: rows that were locked or changed
//! meanwhile stay in the rowstore and are marked deleted in the new segment from its beginning.

use crate::layout::gather::gather_bytes;
use crate::layout::rows;
use crate::record::{self, NewSegment};
use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_log::{Lsn, MAX_RECORD_BYTES};
use nacre_rowstore::{Change, Key, Node, Row};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::{Error, Result, Timestamp, limits};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A row on its way from the rowstore to a segment.
struct FlushRow {
    node: Arc<Node>,
    /// Commit of the version that is written.
    commit: Timestamp,
}

/// A file that is written and synced, and in which order its rows came.
struct NewFile {
    segment: Arc<Segment>,
    rows: Vec<FlushRow>,
}

impl Store {
    /// Removes a file nobody refers to; what cannot be removed now is an orphan, removed at the next start. After the
    /// log has failed a record may name the file all the same, so it is left to that start to find out.
    pub(crate) fn remove_file(&self, name: &str) {
        if self.log.check_usable().is_err() {
            return;
        }
        if self.host.store.remove(name).is_err() {
            // Nothing refers to it: recovery removes it.
        }
    }

    /// Flushes all committed rows of a table. One flush runs at a time.
    pub(crate) fn flush_table(self: &Arc<Self>, table: &Arc<Table>) -> Result<()> {
        loop {
            let table = self.newest(table)?;
            for partition in table.partitions() {
                while self.flush_partition(&table, partition)? {}
            }
            if table.is_newest() {
                return Ok(());
            }
        }
    }

    /// Flushes committed rows of a partition, the oldest if one record cannot name all; answers whether there are more.
    pub(crate) fn flush_partition(
        self: &Arc<Self>,
        table: &Arc<Table>,
        partition: &Partition,
    ) -> Result<bool> {
        let guard = self.snapshot();
        if !table.is_newest() {
            // Rows up to the snapshot may be of a version this one does not know.
            return Ok(false);
        }
        let upto = last_that_fits(partition, guard.at());
        let is_all = upto == guard.at();
        let files = self.write_flush_files(table, partition, upto)?;
        if files.is_empty() {
            drop(guard);
            self.collect_rowstore(table, partition)?;
            return Ok(false);
        }
        let committed = self.commit_flush(table, partition, upto, &files);
        // When the append itself failed, the log is done for, and rows that say "flushed" are read from the segments
        // until the database is opened again.
        if !matches!(committed, Ok(Some(_))) && self.log.check_usable().is_ok() {
            for file in &files {
                partition
                    .update_segments(|list| list.retain(|s| s.segment.id() != file.segment.id()));
                self.remove_file(file.segment.name());
            }
        }
        drop(guard);
        let settled =
            committed.and_then(|committed| committed.map_or(Ok(()), |at| self.settle_strictly(at)));
        // Also when nothing could be flushed: what was flushed before may be waiting for it.
        settled.and(self.collect_rowstore(table, partition))?;
        Ok(!is_all)
    }

    fn write_flush_files(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        upto: Timestamp,
    ) -> Result<Vec<NewFile>> {
        let mut filling = Filling::new(self, table, partition);
        let filled = match table.sort_columns() {
            None => each_ready(table, partition, upto, &mut |row, flush| filling.add(row, flush)),
            Some(sort) => filling.add_sorted(sort, upto),
        };
        match filled.and_then(|()| filling.finish()) {
            Ok(()) => Ok(filling.files),
            Err(error) => {
                filling.files.iter().for_each(|file| self.remove_file(file.segment.name()));
                Err(error)
            }
        }
    }

    /// Appends and applies the flush's record; nothing when the table was altered or emptied meanwhile. The caller
    /// waits for its sync.
    fn commit_flush(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        upto: Timestamp,
        files: &[NewFile],
    ) -> Result<Option<(Timestamp, Lsn)>> {
        let mut state = self.commit.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let commit = state.last + 1;
        if !table.is_newest() {
            return Ok(None);
        }
        // Whatever can be refused is refused before the first row says that it is somewhere else.
        self.log.check_usable()?;
        check_record_fits(partition, upto, files)?;
        // The segments are listed, for nobody's snapshot yet, before any node says "flushed": an insert that
        // meets such a node must find the row in a segment.
        let states: Vec<Arc<SegmentState>> = files
            .iter()
            .map(|f| {
                Arc::new(
                    SegmentState::new(f.segment.clone(), commit, RoaringBitmap::new())
                        .with_bitmaps(&self.bitmaps),
                )
            })
            .collect();
        partition.update_segments(|list| list.extend(states.iter().cloned()));
        let mut segments = Vec::with_capacity(files.len());
        for (file, added) in files.iter().zip(&states) {
            let mut excluded = RoaringBitmap::new();
            for (row, flushed) in file.rows.iter().enumerate() {
                if flushed.node.flush(commit, flushed.commit) {
                    continue;
                }
                excluded.insert(row as u32);
            }
            if !excluded.is_empty() {
                added.delete(commit, excluded.clone(), commit);
            }
            segments.push(NewSegment { id: file.segment.id(), deleted: excluded });
        }
        let except = remaining_keys(partition, upto);
        let mut payload = record::begin(commit);
        record::flush(&mut payload, table.place(partition), upto, &segments, &except)?;
        let lsn = self.log.append(&payload)?;
        state.last = commit;
        table.set_changed(commit);
        Ok(Some((commit, lsn)))
    }

    /// Frees versions and nodes of a partition's rowstore that no snapshot needs.
    pub(crate) fn collect_rowstore(&self, table: &Table, partition: &Partition) -> Result<()> {
        let oldest = self.oldest_snapshot();
        partition.each_node(|node| partition.rowstore.collect(node, oldest));
        table.sweep(partition)?;
        partition.collected(table.entry_bytes(partition.number()), oldest);
        Ok(())
    }
}

/// The rows of a partition that may be flushed, in the order of their keys.
fn each_ready(
    table: &Table,
    partition: &Partition,
    upto: Timestamp,
    found: &mut dyn FnMut(Row, FlushRow) -> Result<()>,
) -> Result<()> {
    partition.try_each_node(|node| match ready(node, upto) {
        Some((row, flush)) => found(table.upgrade(row)?, flush),
        None => Ok(()),
    })
}

/// Files that are filled one after the other.
struct Filling<'a> {
    store: &'a Store,
    table: &'a Table,
    partition: &'a Partition,
    files: Vec<NewFile>,
    builder: SegmentBuilder,
    /// Rows of the file.
    flushed: Vec<FlushRow>,
    /// Those of them that the builder does not have yet.
    found: Vec<Row>,
    bytes: usize,
}

impl<'a> Filling<'a> {
    fn new(store: &'a Store, table: &'a Table, partition: &'a Partition) -> Filling<'a> {
        let builder = table.segment_builder();
        let (files, flushed, found) = (Vec::new(), Vec::new(), Vec::new());
        Filling { store, table, partition, files, builder, flushed, found, bytes: 0 }
    }

    fn add(&mut self, row: Row, flush: FlushRow) -> Result<()> {
        let options = &self.store.options;
        self.bytes += row.len();
        self.found.push(row);
        self.flushed.push(flush);
        let is_full = self.flushed.len() >= options.segment_rows;
        if is_full || self.found.len() >= limits::BLOCK_ROWS || self.bytes >= gather_bytes(options)
        {
            self.push()?;
        }
        if is_full || self.builder.memory_bytes() >= options.segment_bytes {
            self.finish()?;
        }
        Ok(())
    }

    /// All rows of the partition, sorted: they make one run of segments.
    fn add_sorted(&mut self, sort: &[usize], upto: Timestamp) -> Result<()> {
        let table = self.table;
        let mut rows: Vec<(Vec<u8>, Row, FlushRow)> = Vec::new();
        each_ready(table, self.partition, upto, &mut |row, flush| {
            let values: Vec<_> =
                sort.iter().map(|column| table.layout().value(&row, *column)).collect();
            let mut order = table.encode_order(&values)?;
            order.extend_from_slice(flush.node.key());
            rows.push((order, row, flush));
            Ok(())
        })?;
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().try_for_each(|(_, row, flush)| self.add(row, flush))
    }

    fn push(&mut self) -> Result<()> {
        let first = self.flushed.len() - self.found.len();
        let keys: Vec<Key> =
            self.flushed[first..].iter().map(|flush| flush.node.key().clone()).collect();
        if !self.found.is_empty() {
            self.builder.push(&rows::to_segment_batch(self.table, &self.found, &keys)?);
        }
        self.found.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Completes the file, if it has rows.
    fn finish(&mut self) -> Result<()> {
        self.push()?;
        if self.flushed.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.builder, self.table.segment_builder());
        // Files of a flush overlap where the rows' order is not that of their keys.
        let besides: Vec<&Segment> = match self.table.sort_columns() {
            None => Vec::new(),
            Some(_) => self.files.iter().map(|file| &*file.segment).collect(),
        };
        let full = self.table.with_key_filter(self.partition, full, &besides, &[]);
        let segment = self.store.write_segment(full)?;
        self.files.push(NewFile { segment, rows: std::mem::take(&mut self.flushed) });
        Ok(())
    }
}

/// Bytes of a flush's record that a row may take: its key if it stays, and its place among the rows of a file that do
/// not count. Less than the record of the row's own commit had.
fn bytes_in_record(node: &Node) -> usize {
    node.key().len() + 6
}

/// Bytes that the rows of a flush may take in its record, with room for the numbers of its files.
const RECORD_BYTES: usize = if cfg!(test) { 1 << 20 } else { MAX_RECORD_BYTES - (1 << 20) };

/// The last commit up to which all rows of a partition could be named by one record; at least that of the oldest.
fn last_that_fits(partition: &Partition, visible: Timestamp) -> Timestamp {
    // A rowstore takes more bytes than its keys, so it is seldom necessary to look at them.
    if partition.rowstore.bytes() <= RECORD_BYTES {
        return visible;
    }
    let mut bytes_of: BTreeMap<Timestamp, usize> = BTreeMap::new();
    partition.each_node(|node| {
        if let Some(commit) = could_be_named(node, visible) {
            *bytes_of.entry(commit).or_default() += bytes_in_record(node);
        }
    });
    let (mut sum, mut upto) = (0, None);
    for (commit, bytes) in bytes_of {
        sum += bytes;
        if sum > RECORD_BYTES
            && let Some(upto) = upto
        {
            return upto;
        }
        upto = Some(commit);
    }
    visible
}

/// The commit of a node's row that a flush up to `upto` may have to name.
fn could_be_named(node: &Node, upto: Timestamp) -> Option<Timestamp> {
    node.newest()
        .filter(|v| v.commit <= upto && matches!(v.change, Change::Put(_)))
        .map(|v| v.commit)
}

/// Fails when the record of a flush could be longer than the log takes, with all rows at the worst.
fn check_record_fits(partition: &Partition, upto: Timestamp, files: &[NewFile]) -> Result<()> {
    let numbers = (files.len() + 1) * 1_024;
    if partition.rowstore.bytes().saturating_add(numbers) <= MAX_RECORD_BYTES {
        return Ok(());
    }
    let mut bytes = numbers;
    partition.each_node(|node| {
        if could_be_named(node, upto).is_some() {
            bytes += bytes_in_record(node);
        }
    });
    if bytes > MAX_RECORD_BYTES {
        return Err(Error::limit("a flush whose keys do not fit one record of the log"));
    }
    Ok(())
}

/// The row of a node that may be flushed: its newest version is old enough (others would be excluded again at the
/// commit), and nobody holds its lock.
fn ready(node: &Arc<Node>, upto: Timestamp) -> Option<(Row, FlushRow)> {
    let newest = node.newest().filter(|v| v.commit <= upto)?;
    let Change::Put(row) = newest.change else { return None };
    (!node.is_locked()).then(|| (row, FlushRow { node: node.clone(), commit: newest.commit }))
}

/// Keys that stay in the rowstore although their rows are old enough: somebody holds their lock.
fn remaining_keys(partition: &Partition, upto: Timestamp) -> Vec<Vec<u8>> {
    let mut except = Vec::new();
    partition.each_node(|node| {
        if could_be_named(node, upto).is_some() {
            except.push(node.key().to_vec());
        }
    });
    except
}
