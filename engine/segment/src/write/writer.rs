//! Writes a segment, column by column, in steps.
//!
//! Each column is written with its dictionary first, and freed as it is written. The footer comes
//! last, so a truncated file has no trailer and is not a segment.

use super::blocks::{BlockValues, Column};
use crate::footer::{
    self, ALIGNMENT, ColumnEntry, DictionaryEntry, MAGIC, TRAILER_BYTES, extremes,
};
use nacre_column::block::{ColumnPlan, encode_block};
use nacre_column::encoding::MAX_DICTIONARY_VALUES;
use nacre_column::{Scalar, Values};
use nacre_host::LocalFile;
use nacre_types::bytes::Write;
use nacre_types::checksum::checksum;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, invariant};

/// Bytes collected before they are written to the file.
pub(crate) const WRITE_BYTES: usize = 1 << 20;

/// A segment being written, a few blocks at a time.
pub struct SegmentWriter {
    rows: usize,
    columns: std::vec::IntoIter<Column>,
    current: Option<ColumnWriter>,
    entries: Vec<ColumnEntry>,
    out: Output,
}

impl SegmentWriter {
    /// Starts writing columns of `rows` rows each.
    pub(super) fn new(columns: Vec<Column>, rows: usize) -> SegmentWriter {
        for column in &columns {
            let held = column.rows();
            invariant!(held == rows, "column {} with {held} of {rows} rows", column.spec.id);
        }
        SegmentWriter {
            rows,
            entries: Vec::with_capacity(columns.len()),
            columns: columns.into_iter(),
            current: None,
            out: Output { written: 0, buffer: MAGIC.to_vec() },
        }
    }

    /// Encodes and writes up to `blocks` blocks of one column. Returns the file's length once it is
    /// complete. Every step takes the same file; none syncs it. After an error the writer must not
    /// be used again.
    pub fn step(&mut self, file: &dyn LocalFile, blocks: usize) -> Result<Option<u64>> {
        debug_assert!(blocks > 0, "a step of no blocks never ends");
        let mut column = match self.current.take() {
            Some(column) => column,
            None => match self.columns.next() {
                // Planning reads the whole column and is a separate step.
                Some(column) => {
                    self.current = Some(ColumnWriter::begin(column, file, &mut self.out)?);
                    return Ok(None);
                }
                None => return self.finish(file).map(Some),
            },
        };
        if column.step(file, &mut self.out, blocks)? {
            self.entries.push(column.finish(self.rows));
        } else {
            self.current = Some(column);
        }
        Ok(None)
    }

    fn finish(&mut self, file: &dyn LocalFile) -> Result<u64> {
        let footer = footer::encode(self.rows, &self.entries);
        let out = &mut self.out;
        // The trailer directly follows the footer.
        let offset = out.align();
        debug_assert!(
            footer::decode(&footer, offset).is_ok_and(
                |(rows, entries)| rows == self.rows && entries.len() == self.entries.len()
            ),
            "the footer does not read back"
        );
        let start = out.buffer.len() + footer.len();
        out.buffer.extend_from_slice(&footer);
        out.buffer.put_u64(offset);
        out.buffer.put_u64(footer.len() as u64);
        out.buffer.put_u64(checksum(&footer));
        out.buffer.extend_from_slice(&MAGIC);
        let trailer = out.buffer.len() - start;
        invariant!(trailer == TRAILER_BYTES, "a trailer of {trailer} bytes");
        out.flush(file)?;
        let end = offset + (footer.len() + TRAILER_BYTES) as u64;
        invariant!(out.written == end, "a file of {} bytes ends at byte {end}", out.written);
        Ok(out.written)
    }
}

/// A column being written.
struct ColumnWriter {
    blocks: Vec<BlockValues>,
    next: usize,
    plan: ColumnPlan,
    entry: ColumnEntry,
    /// Smallest and largest value so far.
    whole: Option<(Scalar<'static>, Scalar<'static>)>,
}

impl ColumnWriter {
    /// Plans a column and writes its dictionary, if any.
    fn begin(column: Column, file: &dyn LocalFile, out: &mut Output) -> Result<ColumnWriter> {
        let plan = match column.searched {
            true => ColumnPlan::choose_for_search(&column.blocks),
            false => ColumnPlan::choose(&column.blocks),
        };
        let mut entry = ColumnEntry::new(&column.spec);
        entry.meta.raw_bytes = column.raw_bytes;
        if let Some((bytes, values)) = plan.dictionary() {
            invariant!(
                (1..=MAX_DICTIONARY_VALUES).contains(&values),
                "a dictionary of {values} values in column {}",
                column.spec.id
            );
            let (length, checksum) = (length(&bytes)?, checksum(&bytes));
            let offset = out.put(file, &bytes)?;
            entry.dictionary =
                Some(DictionaryEntry { offset, length, checksum, values: values as u32 });
        }
        Ok(ColumnWriter { blocks: column.blocks, next: 0, plan, entry, whole: None })
    }

    /// Writes up to `blocks` blocks. Returns whether all are written.
    fn step(&mut self, file: &dyn LocalFile, out: &mut Output, blocks: usize) -> Result<bool> {
        let data_type = self.entry.meta.data_type;
        let entry = &mut self.entry;
        let end = self.next.saturating_add(blocks).min(self.blocks.len());
        for index in self.next..end {
            // Frees the values of a block once it is written.
            let (values, validity) =
                std::mem::replace(&mut self.blocks[index], (Values::Bool(Vec::new()), None));
            let is_last = index + 1 == self.blocks.len();
            invariant!(
                values.len() == BLOCK_ROWS || (is_last && values.len() < BLOCK_ROWS),
                "block {index} of {} rows",
                values.len()
            );
            let block = encode_block(&self.plan, index, &values, validity.as_ref());
            entry.lengths.push(length(&block.bytes)?);
            entry.checksums.push(checksum(&block.bytes));
            entry.encodings.push(block.encoding);
            entry.offsets.push(out.put(file, &block.bytes)?);
            let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones());
            invariant!(nulls <= values.len(), "{nulls} nulls in {} rows", values.len());
            entry.nulls.push(nulls as u16);
            let found = extremes(&values, validity.as_ref());
            invariant!(
                found.is_none() == (nulls == values.len()),
                "bounds of a block of {} rows with {nulls} nulls",
                values.len()
            );
            entry.bounds.push(data_type, found.as_ref());
            let Some((min, max)) = found else { continue };
            self.whole = Some(match self.whole.take() {
                None => (min.into_owned(), max.into_owned()),
                Some((low, high)) => (
                    if min.order(&low).is_lt() { min.into_owned() } else { low },
                    if max.order(&high).is_gt() { max.into_owned() } else { high },
                ),
            });
        }
        self.next = end;
        Ok(end == self.blocks.len())
    }

    /// The entry of a column once all its blocks are written.
    fn finish(self, rows: usize) -> ColumnEntry {
        let mut entry = self.entry;
        entry.bounds.push(entry.meta.data_type, self.whole.as_ref());
        entry.assert_complete(rows);
        entry
    }
}

/// The length of a block, as stored in the footer.
fn length(bytes: &[u8]) -> Result<u32> {
    invariant!(!bytes.is_empty(), "a block without bytes");
    u32::try_from(bytes.len()).map_err(|_| Error::limit("block longer than 4 GiB"))
}

/// Buffered output to the file, in large writes.
struct Output {
    written: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Appends bytes at the next aligned offset and returns that offset.
    fn put(&mut self, file: &dyn LocalFile, bytes: &[u8]) -> Result<u64> {
        let offset = self.align();
        invariant!(offset.is_multiple_of(ALIGNMENT as u64), "a block at byte {offset}");
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            // Writes whole units only, so that the remainder starts aligned.
            self.align();
            self.flush(file)?;
        }
        Ok(offset)
    }

    /// Pads to the next aligned offset and returns it.
    fn align(&mut self) -> u64 {
        let padded = self.buffer.len().next_multiple_of(ALIGNMENT);
        self.buffer.resize(padded, 0);
        self.written + padded as u64
    }

    fn flush(&mut self, file: &dyn LocalFile) -> Result<()> {
        debug_assert!(
            self.written.is_multiple_of(ALIGNMENT as u64),
            "blocks are written at byte {}",
            self.written
        );
        file.write(self.written, &self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
