//! Rows that a load has not written to a file yet, by partition.

use crate::load::loader::Loader;
use nacre_column::Batch;
use nacre_types::invariant;
use std::sync::Arc;

/// A load into several partitions keeps at most this many segments' worth of rows in memory.
const PENDING_SEGMENTS: usize = 2;

/// Rows of one partition that a load has not written to a file yet.
#[derive(Default)]
pub(super) struct Pending {
    batches: Vec<Batch>,
    rows: usize,
    /// Bytes of the flat values.
    bytes: usize,
}

/// Rows for one segment.
pub(super) struct SegmentRows {
    pub batches: Vec<Batch>,
    pub count: usize,
}

impl Pending {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the flat values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds rows.
    pub fn add(&mut self, batch: Batch) {
        debug_assert!(batch.selection.is_none(), "a batch to be loaded is not compact");
        self.rows += batch.rows;
        self.bytes += batch.flat_bytes();
        if batch.rows > 0 {
            self.batches.push(batch);
        }
        debug_assert!(
            self.batches.len() <= self.rows,
            "{} batches of {} pending rows",
            self.batches.len(),
            self.rows
        );
    }

    /// Takes the first rows, as many as fit into a segment and at least one if there are any. A
    /// large batch is split where the segment is full.
    pub fn take(&mut self, segment_rows: usize, segment_bytes: usize) -> SegmentRows {
        let mut taken: Vec<Batch> = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        let mut rest: Vec<Batch> = Vec::new();
        for batch in self.batches.drain(..) {
            let size = batch.flat_bytes();
            // Rows of this batch that still fit; at least one does.
            let left = segment_bytes.saturating_sub(bytes);
            let by_bytes = if size <= left {
                batch.rows
            } else {
                (batch.rows as u128 * left as u128 / size as u128) as usize
            };
            let room = (segment_rows - count).min(by_bytes.max(usize::from(count == 0)));
            if !rest.is_empty() || room == 0 {
                rest.push(batch);
            } else if batch.rows <= room {
                (count, bytes) = (count + batch.rows, bytes + size);
                taken.push(batch);
            } else {
                taken.push(slice(&batch, 0, room));
                rest.push(slice(&batch, room, batch.rows));
                count += room;
            }
        }
        debug_assert!(
            count <= segment_rows && taken.iter().map(|batch| batch.rows).sum::<usize>() == count,
            "{count} rows are taken for a segment of {segment_rows}"
        );
        let before = self.rows;
        self.bytes = rest.iter().map(Batch::flat_bytes).sum();
        self.batches = rest;
        self.rows -= count;
        self.check();
        invariant!(
            count > 0 || before == 0,
            "none of {before} pending rows goes into a segment of {segment_rows}"
        );
        SegmentRows { batches: taken, count }
    }

    fn check(&self) {
        debug_assert!(
            self.rows == self.batches.iter().map(|batch| batch.rows).sum::<usize>(),
            "{} pending rows are not those of the batches",
            self.rows
        );
    }
}

/// Whether the partitions together hold as many rows as a load keeps in memory.
pub(super) fn is_full(pending: &[Pending], loader: &Loader) -> bool {
    debug_assert!(!pending.is_empty(), "rows of a table without partitions are loaded");
    let sum =
        |of: &dyn Fn(&Pending) -> usize| pending.iter().map(of).sum::<usize>() / PENDING_SEGMENTS;
    loader.is_full(sum(&Pending::rows), sum(&Pending::bytes))
}

/// The partition of which a segment is to be written: one that fills it, or else, since many
/// partitions that fill at the same pace must not each hold a segment in memory, the fullest.
pub(super) fn to_write(pending: &[Pending], loader: &Loader) -> Option<u32> {
    let fills = |(_, one): &(u32, &Pending)| loader.is_full(one.rows(), one.bytes());
    let fullest = || (0u32..).zip(pending).max_by_key(|(_, one)| one.bytes());
    let found = (0u32..).zip(pending).find(fills);
    let found = found.or_else(|| fullest().filter(|_| is_full(pending, loader)));
    debug_assert!(
        found.is_none_or(|(_, one)| one.rows() > 0),
        "a segment of no rows is to be written"
    );
    found.map(|(partition, _)| partition)
}

/// Rows of a batch that has no selection.
pub(super) fn slice(batch: &Batch, from: usize, to: usize) -> Batch {
    debug_assert!(from < to && to <= batch.rows, "rows {from} to {to} of {}", batch.rows);
    let rows: Vec<u32> = (from as u32..to as u32).collect();
    Batch::new(batch.columns.iter().map(|c| Arc::new(c.take(&rows))).collect(), to - from)
}
