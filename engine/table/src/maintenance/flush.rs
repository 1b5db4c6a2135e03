//! Flush: writes the committed rows of a rowstore as sorted segments, in one commit that does not
//! change the table's contents. Writers are not blocked while the files are written: rows that are
//! locked or changed meanwhile stay in the rowstore and are marked deleted in the new segment from
//! the start.

use crate::commit::commits::Committed;
use crate::layout::rows::to_segment_batch;
use crate::maintenance::context::TaskContext;
use crate::maintenance::written::check_segment;
use crate::record::{self, NewSegment};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_log::MAX_RECORD_BYTES;
use nacre_rowstore::{Change, Key, Node, Row};
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::{Error, Result, Timestamp, invariant, limits, row};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rowstore row being flushed.
struct FlushRow {
    node: Arc<Node>,
    /// Commit of the version being written.
    commit: Timestamp,
}

/// A complete and synced file, with its rows in order.
struct NewFile {
    segment: Arc<Segment>,
    rows: Vec<FlushRow>,
}

/// Flushes all committed rows of a table. Only one flush runs at a time.
pub(crate) fn flush_table(context: &TaskContext, table: &Arc<Table>) -> Result<()> {
    loop {
        let table = context.catalog().newest(table)?;
        for partition in table.partitions() {
            while flush_partition(context, &table, partition)? {}
        }
        if table.is_newest() {
            return Ok(());
        }
    }
}

/// Flushes the committed rows of a partition, the oldest first if one record cannot name them all.
/// Returns whether there are more.
pub(crate) fn flush_partition(
    context: &TaskContext,
    table: &Table,
    partition: &Partition,
) -> Result<bool> {
    debug_assert!(
        std::ptr::eq(table.partition(partition.number()), partition),
        "partition {} of another table is flushed",
        partition.number()
    );
    let guard = context.snapshots().take();
    if !table.is_newest() {
        // Rows up to the snapshot may have a newer schema version than this one.
        return Ok(false);
    }
    let upto = last_that_fits(partition, guard.at());
    debug_assert!(upto <= guard.at(), "a flush up to {upto} at snapshot {}", guard.at());
    let is_all = upto == guard.at();
    let files = write_files(context, table, partition, upto)?;
    if files.is_empty() {
        drop(guard);
        collect_rowstore(context, table, partition)?;
        return Ok(false);
    }
    let committed = commit(context, table, partition, upto, &files);
    debug_assert!(
        !matches!(committed, Ok(Some(_)))
            || files.iter().all(|file| partition.segment(file.segment.id()).is_some()),
        "a segment of a flush is not listed"
    );
    // If the append itself failed, the log is unusable, and rows marked as flushed are read from
    // the segments until the database is opened again.
    if !matches!(committed, Ok(Some(_))) && context.commits().log().check_usable().is_ok() {
        for file in &files {
            partition.update_segments(|list| list.retain(|s| s.id() != file.segment.id()));
            context.files().remove_unnamed(file.segment.name());
        }
    }
    drop(guard);
    let settled = committed.and_then(|committed| {
        committed.map_or(Ok(()), |committed| context.commits().settle_strictly(committed))
    });
    // Even if nothing was flushed: rows flushed before may be waiting for collection.
    settled.and(collect_rowstore(context, table, partition))?;
    Ok(!is_all)
}

/// Frees versions and nodes of a partition's rowstore that no snapshot needs.
fn collect_rowstore(context: &TaskContext, table: &Table, partition: &Partition) -> Result<()> {
    table.collect_rowstore(partition, context.snapshots().oldest())
}

fn write_files(
    context: &TaskContext,
    table: &Table,
    partition: &Partition,
    upto: Timestamp,
) -> Result<Vec<NewFile>> {
    let mut filling = Filling::new(context, table, partition);
    let filled = match table.layout().sort_columns() {
        None => each_ready(table, partition, upto, &mut |row, flush| filling.add(row, flush)),
        Some(sort) => filling.add_sorted(sort, upto),
    };
    match filled.and_then(|()| filling.finish()) {
        Ok(()) => {
            check_files(table, &filling.files, filling.added, upto);
            Ok(filling.files)
        }
        Err(error) => {
            let files = filling.files.iter();
            files.for_each(|file| context.files().remove_unnamed(file.segment.name()));
            Err(error)
        }
    }
}

/// The files have each of the `added` rows once. Recovery drops from memory what was committed up to
/// `upto`, so a row of a later commit would be in two places.
fn check_files(table: &Table, files: &[NewFile], added: usize, upto: Timestamp) {
    files.iter().for_each(|file| check_segment(table, &file.segment));
    let written: usize = files.iter().map(|file| file.segment.rows()).sum();
    invariant!(written == added, "a flush of {added} rows has written {written}");
    let rows = || files.iter().flat_map(|file| &file.rows);
    invariant!(
        rows().all(|row| row.commit <= upto),
        "a flush up to {upto} has written a row of a later commit"
    );
    debug_assert!(
        table.layout().sort_columns().is_some()
            || rows().is_sorted_by(|a, b| a.node.key() < b.node.key()),
        "rows of a flush into {} files are out of order",
        files.len()
    );
}

/// Appends and applies the flush's record; `None` if the table was altered or truncated meanwhile.
/// The caller waits for the sync.
fn commit(
    context: &TaskContext,
    table: &Table,
    partition: &Partition,
    upto: Timestamp,
    files: &[NewFile],
) -> Result<Option<Committed>> {
    let mut turn = context.commits().lock();
    let commit = turn.next();
    if !table.is_newest() {
        return Ok(None);
    }
    invariant!(upto < commit, "commit {commit} flushes rows up to commit {upto}");
    // Check everything that can fail before the first row is marked as flushed.
    context.commits().log().check_usable()?;
    let most_bytes = check_record_fits(partition, upto, files)?;
    // List the segments, not visible to any snapshot yet, before marking any node as flushed: an
    // insert that finds such a node must find the row in a segment.
    let state = |file: &NewFile| {
        let state = SegmentState::new(file.segment.clone(), commit, RoaringBitmap::new());
        Arc::new(state.with_bitmaps(context.files().bitmaps()))
    };
    let states: Vec<Arc<SegmentState>> = files.iter().map(state).collect();
    partition.update_segments(|list| list.extend(states.iter().cloned()));
    let mut segments = Vec::with_capacity(files.len());
    for (file, added) in files.iter().zip(&states) {
        let mut excluded = RoaringBitmap::new();
        for (row, flushed) in file.rows.iter().enumerate() {
            if !flushed.node.flush(commit, flushed.commit) {
                excluded.insert(row as u32);
            }
        }
        if !excluded.is_empty() {
            added.delete(commit, excluded.clone(), commit);
        }
        debug_assert!(
            *added.all_deleted() == excluded,
            "the log and memory differ in the deleted rows of segment {}",
            added.id()
        );
        segments.push(NewSegment { id: file.segment.id(), deleted: excluded });
    }
    let except = remaining_keys(partition, upto);
    let mut payload = record::begin(commit);
    record::flush(&mut payload, table.place(partition), upto, &segments, &except)?;
    // Refused now, the record would leave rows that are neither in memory nor in a listed segment.
    invariant!(
        payload.len() <= MAX_RECORD_BYTES,
        "the record of a flush takes {} bytes after it was checked to fit",
        payload.len()
    );
    debug_assert!(
        payload.len() <= most_bytes,
        "the record of a flush takes {} bytes instead of at most {most_bytes}",
        payload.len()
    );
    let committed = turn.append(&payload)?;
    table.set_changed(commit);
    Ok(Some(committed))
}

/// Visits the rows of a partition that are ready to flush, in key order.
fn each_ready(
    table: &Table,
    partition: &Partition,
    upto: Timestamp,
    found: &mut dyn FnMut(Row, FlushRow) -> Result<()>,
) -> Result<()> {
    partition.try_each_node(|node| match ready(node, upto) {
        Some((row, flush)) => found(table.layout().upgrade(row)?, flush),
        None => Ok(()),
    })
}

/// Fills files one after the other.
struct Filling<'a> {
    context: &'a TaskContext,
    table: &'a Table,
    partition: &'a Partition,
    files: Vec<NewFile>,
    /// Rows of all files.
    added: usize,
    builder: SegmentBuilder,
    /// Rows of the current file.
    flushed: Vec<FlushRow>,
    /// Rows at its end that are not pushed to the builder yet.
    found: Vec<Row>,
    /// Bytes of `found`.
    bytes: usize,
}

impl<'a> Filling<'a> {
    fn new(context: &'a TaskContext, table: &'a Table, partition: &'a Partition) -> Filling<'a> {
        let builder = table.segment_builder();
        let (files, flushed, found) = (Vec::new(), Vec::new(), Vec::new());
        Filling { context, table, partition, files, added: 0, builder, flushed, found, bytes: 0 }
    }

    fn add(&mut self, row: Row, flush: FlushRow) -> Result<()> {
        let options = self.context.options();
        debug_assert!(
            row::version(&row) == Some(self.table.schema().version),
            "a row of another version of table {} is flushed",
            self.table.schema().name
        );
        self.added += 1;
        self.bytes += row.len();
        self.found.push(row);
        self.flushed.push(flush);
        let is_full = self.flushed.len() >= options.segment_rows;
        if is_full || self.found.len() >= limits::BLOCK_ROWS || self.bytes >= options.gather_bytes()
        {
            self.push()?;
        }
        if is_full || self.builder.memory_bytes() >= options.segment_bytes {
            self.finish()?;
        }
        debug_assert!(
            self.flushed.len() < options.segment_rows,
            "a full file of a flush takes more rows"
        );
        debug_assert!(
            self.builder.rows() + self.found.len() == self.flushed.len(),
            "{} and {} rows of a file of {}",
            self.builder.rows(),
            self.found.len(),
            self.flushed.len()
        );
        Ok(())
    }

    /// Adds all rows of the partition in sort order, as one run of segments.
    fn add_sorted(&mut self, sort: &[usize], upto: Timestamp) -> Result<()> {
        let table = self.table;
        let mut rows: Vec<(Vec<u8>, Row, FlushRow)> = Vec::new();
        each_ready(table, self.partition, upto, &mut |row, flush| {
            let values: Vec<_> =
                sort.iter().map(|column| table.layout().rows().value(&row, *column)).collect();
            let mut order = table.layout().encode_order(&values)?;
            order.extend_from_slice(flush.node.key());
            rows.push((order, row, flush));
            Ok(())
        })?;
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        debug_assert!(
            rows.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "two rows of a flush have the same key"
        );
        rows.into_iter().try_for_each(|(_, row, flush)| self.add(row, flush))
    }

    fn push(&mut self) -> Result<()> {
        let first = self.flushed.len() - self.found.len();
        // A row that fails to move is excluded by its number in the file.
        invariant!(
            self.builder.rows() == first,
            "row {first} of a file is pushed as its row {}",
            self.builder.rows()
        );
        let keys: Vec<Key> =
            self.flushed[first..].iter().map(|flush| flush.node.key().clone()).collect();
        if !self.found.is_empty() {
            self.builder.push(&to_segment_batch(self.table.layout(), &self.found, &keys)?);
        }
        self.found.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Completes the current file, if it has rows.
    fn finish(&mut self) -> Result<()> {
        self.push()?;
        if self.flushed.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.builder, self.table.segment_builder());
        // Files of one flush overlap if rows are not sorted by key.
        let besides: Vec<&Segment> = match self.table.layout().sort_columns() {
            None => Vec::new(),
            Some(_) => self.files.iter().map(|file| &*file.segment).collect(),
        };
        let full = self.partition.with_key_filter(self.table.layout(), full, &besides, &[]);
        let segment = self.context.files().write_segment(full)?;
        let rows = std::mem::take(&mut self.flushed);
        invariant!(
            segment.rows() == rows.len(),
            "segment {} of {} flushed rows has {}",
            segment.id(),
            rows.len(),
            segment.rows()
        );
        self.files.push(NewFile { segment, rows });
        Ok(())
    }
}

/// Upper bound of a row's bytes in a flush's record: its key, if it stays, and its bit among the
/// excluded rows of a file. Less than in the record of its own commit.
fn bytes_in_record(node: &Node) -> usize {
    node.key().len() + 6
}

/// Limit on the rows' bytes in a flush's record, leaving room for the file numbers.
const RECORD_BYTES: usize = if cfg!(test) { 1 << 20 } else { MAX_RECORD_BYTES - (1 << 20) };
const _: () = assert!(RECORD_BYTES < MAX_RECORD_BYTES);

/// The last commit up to which one record can name all rows of a partition; at least the commit of
/// the oldest row.
fn last_that_fits(partition: &Partition, visible: Timestamp) -> Timestamp {
    // The rowstore is larger than its keys, so the exact count is seldom needed.
    if partition.rowstore().bytes() <= RECORD_BYTES {
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

/// The commit of a node's row, if a flush up to `upto` may have to name it.
fn could_be_named(node: &Node, upto: Timestamp) -> Option<Timestamp> {
    node.newest()
        .filter(|v| v.commit <= upto && matches!(v.change, Change::Put(_)))
        .map(|v| v.commit)
}

/// Fails if a flush's record might exceed the log's limit in the worst case; returns the most bytes
/// that it may take.
fn check_record_fits(partition: &Partition, upto: Timestamp, files: &[NewFile]) -> Result<usize> {
    let numbers = (files.len() + 1) * 1_024;
    let most = partition.rowstore().bytes().saturating_add(numbers);
    if most <= MAX_RECORD_BYTES {
        return Ok(most);
    }
    let mut bytes = numbers;
    partition.each_node(|node| {
        if could_be_named(node, upto).is_some() {
            bytes += bytes_in_record(node);
        }
    });
    if bytes > MAX_RECORD_BYTES {
        return Err(Error::limit("the keys of a flush do not fit into one log record"));
    }
    Ok(bytes)
}

/// The row of a node if it can be flushed: its newest version is old enough and its lock is free. A
/// row with a newer version would be excluded at the commit.
fn ready(node: &Arc<Node>, upto: Timestamp) -> Option<(Row, FlushRow)> {
    let newest = node.newest().filter(|v| v.commit <= upto)?;
    let Change::Put(row) = newest.change else { return None };
    (!node.is_locked()).then(|| (row, FlushRow { node: node.clone(), commit: newest.commit }))
}

/// Keys of rows that are old enough but stay in the rowstore because they are locked.
fn remaining_keys(partition: &Partition, upto: Timestamp) -> Vec<Vec<u8>> {
    let mut except = Vec::new();
    partition.each_node(|node| {
        if could_be_named(node, upto).is_some() {
            except.push(node.key().to_vec());
        }
    });
    debug_assert!(
        except.is_sorted_by(|a, b| a < b),
        "keys that a flush leaves in memory are named twice"
    );
    except
}
