//! Flush: turns the committed rows of a rowstore into sorted segments, in one commit that changes no
//! content. Writers are not blocked while the files are written: rows that were locked or changed
//! meanwhile stay in the rowstore and are marked deleted in the new segment from its beginning.

use crate::partition::Partition;
use crate::record::{self, NewSegment};
use crate::rows;
use crate::segments::SegmentState;
use crate::store::Store;
use crate::table::Table;
use nacre_column::Batch;
use nacre_log::{Lsn, MAX_RECORD_BYTES};
use nacre_rowstore::{Change, Key, Node, Row};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::{Error, Result, Timestamp, limits};
use roaring::RoaringBitmap;
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

/// Files of one flush overlap where the rows' order is not that of their keys.
fn segments_of(files: &[NewFile]) -> Vec<&Segment> {
    files.iter().map(|file| &*file.segment).collect()
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
            table.partitions().iter().try_for_each(|partition| self.flush_partition(&table, partition))?;
            if table.is_newest() {
                return Ok(());
            }
        }
    }

    pub(crate) fn flush_partition(self: &Arc<Self>, table: &Arc<Table>, partition: &Partition) -> Result<()> {
        let guard = self.snapshot();
        let upto = guard.at();
        if !table.is_newest() {
            // Rows up to the snapshot may be of a version this one does not know.
            return Ok(());
        }
        let files = self.write_flush_files(table, partition, upto)?;
        if files.is_empty() {
            drop(guard);
            self.collect_rowstore(table, partition)?;
            return Ok(());
        }
        let committed = self.commit_flush(table, partition, upto, &files);
        // When the append itself failed, the log is done for, and rows that say "flushed" are read from the segments
        // until the database is opened again.
        if !matches!(committed, Ok(Some(_))) && self.log.check_usable().is_ok() {
            for file in &files {
                partition.update_segments(|list| list.retain(|s| s.segment.id() != file.segment.id()));
                self.remove_file(file.segment.name());
            }
        }
        drop(guard);
        if let Some(committed) = committed? {
            self.settle_strictly(committed)?;
        }
        self.collect_rowstore(table, partition)?;
        Ok(())
    }

    fn write_flush_files(&self, table: &Arc<Table>, partition: &Partition, upto: Timestamp) -> Result<Vec<NewFile>> {
        if table.sort_columns().is_some() {
            return self.write_sorted_files(table, partition, upto);
        }
        let mut files = Vec::new();
        let mut builder = table.segment_builder();
        let mut flushed: Vec<FlushRow> = Vec::new();
        let mut after: Option<Key> = None;
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        loop {
            nodes.clear();
            let room = self.options.segment_rows.saturating_sub(flushed.len());
            partition.rowstore.range_after(after.as_deref(), limits::BLOCK_ROWS.min(room), &mut nodes);
            let Some(last) = nodes.last() else { break };
            after = Some(last.key().clone());
            let mut found: Vec<Row> = Vec::new();
            let mut keys: Vec<Key> = Vec::new();
            for node in &nodes {
                let Some((row, flush)) = ready(node, upto) else { continue };
                found.push(table.upgrade(row)?);
                keys.push(node.key().clone());
                flushed.push(flush);
            }
            push_limited(&mut builder, &rows::to_segment_batch(table, &found, &keys)?);
            if flushed.len() >= self.options.segment_rows {
                let full = std::mem::replace(&mut builder, table.segment_builder());
                let segment = self.write_segment(table.with_key_filter(partition, full, &[], &[]))?;
                files.push(NewFile { segment, rows: std::mem::take(&mut flushed) });
            }
        }
        if !flushed.is_empty() {
            let builder = table.with_key_filter(partition, builder, &[], &[]);
            files.push(NewFile { segment: self.write_segment(builder)?, rows: flushed });
        }
        Ok(files)
    }

    /// The same for a table whose segments are not sorted by the key: all rows, sorted, make one run of segments.
    fn write_sorted_files(&self, table: &Table, partition: &Partition, upto: Timestamp) -> Result<Vec<NewFile>> {
        let mut rows: Vec<(Vec<u8>, Row, FlushRow)> = Vec::new();
        let mut after: Option<Key> = None;
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let sort = table.sort_columns().unwrap_or_default();
        loop {
            nodes.clear();
            partition.rowstore.range_after(after.as_deref(), limits::BLOCK_ROWS, &mut nodes);
            let Some(last) = nodes.last() else { break };
            after = Some(last.key().clone());
            for node in &nodes {
                let Some((row, flush)) = ready(node, upto) else { continue };
                let row = table.upgrade(row)?;
                let values: Vec<_> = sort.iter().map(|column| table.layout().value(&row, *column)).collect();
                let mut order = table.encode_order(&values)?;
                order.extend_from_slice(node.key());
                rows.push((order, row, flush));
            }
        }
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut files = Vec::new();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut builder = table.segment_builder();
            let mut flushed: Vec<FlushRow> = Vec::new();
            while rows.peek().is_some() && flushed.len() < self.options.segment_rows {
                let room = limits::BLOCK_ROWS.min(self.options.segment_rows - flushed.len());
                let mut found: Vec<Row> = Vec::new();
                let mut keys: Vec<Key> = Vec::new();
                for (_, row, flush) in rows.by_ref().take(room) {
                    found.push(row);
                    keys.push(flush.node.key().clone());
                    flushed.push(flush);
                }
                builder.push(&rows::to_segment_batch(table, &found, &keys)?);
            }
            let builder = table.with_key_filter(partition, builder, &segments_of(&files), &[]);
            files.push(NewFile { segment: self.write_segment(builder)?, rows: flushed });
        }
        Ok(files)
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
        check_record_fits(partition, files)?;
        // The segments are listed, for nobody's snapshot yet, before any node says "flushed": an insert that
        // meets such a node must find the row in a segment.
        let states: Vec<Arc<SegmentState>> = files
            .iter()
            .map(|f| {
                Arc::new(SegmentState::new(f.segment.clone(), commit, RoaringBitmap::new()).with_bitmaps(&self.bitmaps))
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
        partition.flushed(table.entry_bytes(partition.number()));
        Ok(())
    }
}

/// Fails when the record of a flush could be longer than the log takes: it names the keys that stay, at worst all, and
/// the rows that do not count, at worst all.
fn check_record_fits(partition: &Partition, files: &[NewFile]) -> Result<()> {
    let rows: usize = files.iter().map(|file| file.rows.len() * 4 + 1_024).sum();
    let longest = |keys: usize| keys.saturating_add(rows) + 1_024;
    // A rowstore takes more bytes than its keys, so it is seldom necessary to look at them.
    if longest(partition.rowstore.bytes()) <= MAX_RECORD_BYTES {
        return Ok(());
    }
    let mut keys = 0;
    partition.each_node(|node| keys += node.key().len() + 10);
    if longest(keys) > MAX_RECORD_BYTES {
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
        if node.newest().is_some_and(|v| v.commit <= upto && matches!(v.change, Change::Put(_))) {
            except.push(node.key().to_vec());
        }
    });
    except
}

fn push_limited(builder: &mut SegmentBuilder, batch: &Batch) {
    if batch.rows > 0 {
        builder.push(batch);
    }
}
