//! Row lists in the temporary file, written once and read sequentially any number of times.

use super::codec;
use super::file::{Range, SpillFile};
use crate::buffer::RowBuffer;
use crate::buffer::limits::BATCH_BYTES;
use crate::context::Context;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_types::{DataType, Result, limits};
use std::sync::Arc;

/// Rows in the temporary file. Dropping them frees their ranges.
pub struct SpilledRows {
    file: Arc<SpillFile>,
    types: Arc<[DataType]>,
    chunks: Vec<Range>,
    rows: u64,
}

impl SpilledRows {
    /// No rows.
    pub fn new(file: Arc<SpillFile>, types: Arc<[DataType]>) -> SpilledRows {
        SpilledRows { file, types, chunks: Vec::new(), rows: 0 }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of batches.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Appends a batch, in two chunks if its texts, stored once per row, take many bytes.
    pub fn push(&mut self, batch: &Batch, context: &Context<'_>) -> Result<()> {
        debug_assert!(batch.selection.is_none() && batch.rows <= limits::VECTOR_ROWS);
        if batch.rows > 1 && batch.flat_bytes() > BATCH_BYTES {
            let half = batch.rows as u32 / 2;
            return [0..half, half..batch.rows as u32].into_iter().try_for_each(|rows| {
                self.push(
                    &Batch { selection: Some(rows.collect()), ..batch.clone() }.compact(),
                    context,
                )
            });
        }
        let bytes = codec::encode(&batch.columns, batch.rows);
        context.statistics.bytes_spilled.add(bytes.len());
        self.chunks.push(self.file.write(&bytes)?);
        self.rows += batch.rows as u64;
        Ok(())
    }

    /// Appends these rows of a buffer, in order.
    pub fn push_rows(
        &mut self,
        rows: &RowBuffer,
        order: &[u32],
        batch_rows: usize,
        context: &Context<'_>,
    ) -> Result<()> {
        for positions in order.chunks(batch_rows.clamp(1, limits::VECTOR_ROWS)) {
            self.push(&Batch::new(rows.take(positions), positions.len()), context)?;
        }
        Ok(())
    }

    /// Batch `at`; `None` past the last.
    pub fn read(&self, at: usize) -> Result<Option<Batch>> {
        let Some(range) = self.chunks.get(at) else { return Ok(None) };
        codec::decode(&self.file.read(range)?, &self.types).map(Some)
    }
}

impl Drop for SpilledRows {
    fn drop(&mut self) {
        self.chunks.iter().for_each(|range| self.file.free(range));
    }
}

/// An operator that reads the rows.
pub struct SpillScan {
    rows: Arc<SpilledRows>,
    at: usize,
}

impl SpillScan {
    pub fn new(rows: Arc<SpilledRows>) -> SpillScan {
        SpillScan { rows, at: 0 }
    }
}

impl Operator for SpillScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.give_way()?;
        self.at += 1;
        self.rows.read(self.at - 1)
    }
}
