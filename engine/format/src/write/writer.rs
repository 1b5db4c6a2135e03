//! Writes a segment, column by column, in steps.
//!
//! Each column is written with its dictionary first and its outline last, and freed as it is
//! written. The footer comes last, so a truncated file has no trailer and is not a segment.

use super::blocks::Column;
use super::derived::Derivation;
use super::documents::{Documents, Extremes, MAX_COLUMN_PARTS, Shredded, Shredding};
use crate::column::ColumnSpec;
use crate::document::SubColumn;
use crate::footer::{
    self, ALIGNMENT, ColumnEntry, DictionaryEntry, DocumentEntry, FooterHead, MAGIC, MAX_PARTS,
    OutlineEntry, PartOf, TRAILER_BYTES, extremes,
};
use crate::outline::OutlineBuilder;
use nacre_column::block::{ColumnPlan, Planning, encode_block};
use nacre_column::encoding::MAX_DICTIONARY_VALUES;
use nacre_column::{BlockValues, Scalar, Values, write_cost};
use nacre_host::LocalFile;
use nacre_types::bytes::Write;
use nacre_types::checksum::checksum;
use nacre_types::limits::{BLOCK_ROWS, MAX_COLUMN_ID};
use nacre_types::{DataType, Error, Result, invariant};
use std::collections::VecDeque;

/// Bytes collected before they are written to the file.
pub const WRITE_BYTES: usize = 1 << 20;

/// A segment being written, a few blocks at a time.
pub struct SegmentWriter {
    rows: usize,
    head: FooterHead,
    /// Derives columns from the others; `None` once it has.
    derivation: Option<Derivation>,
    /// How many columns are written besides the derived ones.
    written: usize,
    columns: VecDeque<Column>,
    /// A column of documents before it is written.
    shredding: Option<Shredding>,
    /// The sub-columns of the last column, and what they are of it.
    parts: VecDeque<(Column, PartOf)>,
    /// A column before its blocks are written.
    planning: Option<ColumnPlanning>,
    current: Option<ColumnWriter>,
    entries: Vec<ColumnEntry>,
    out: Output,
}

impl SegmentWriter {
    /// Starts writing columns of `rows` rows each, and those derived from them.
    pub(super) fn new(
        columns: Vec<Column>,
        derivation: Derivation,
        written: usize,
        rows: usize,
        head: FooterHead,
    ) -> SegmentWriter {
        SegmentWriter {
            rows,
            head,
            entries: Vec::with_capacity(columns.len()),
            derivation: Some(derivation),
            written,
            columns: columns.into(),
            shredding: None,
            parts: VecDeque::new(),
            planning: None,
            current: None,
            out: Output { written: 0, buffer: MAGIC.to_vec() },
        }
    }

    /// Adds the derived columns.
    fn add_derived(&mut self, derived: Vec<Column>) {
        debug_assert!(self.written <= self.columns.len(), "{} columns are written", self.written);
        self.columns.truncate(self.written);
        self.columns.extend(derived);
        for column in &self.columns {
            let (held, rows) = (column.rows(), self.rows);
            invariant!(held == rows, "column {} with {held} of {rows} rows", column.spec.id);
        }
        let mut ids: Vec<u32> = self.columns.iter().map(|column| column.spec.id).collect();
        ids.sort_unstable();
        invariant!(ids.is_sorted_by(|a, b| a < b), "a segment with one column id twice");
    }

    /// Encodes and writes about `blocks` blocks; a block of long texts counts as several. Returns
    /// the file's length once it is complete. Every step takes the same file; none syncs it. After
    /// an error the writer must not be used again.
    pub fn step(&mut self, file: &dyn LocalFile, blocks: usize) -> Result<Option<u64>> {
        debug_assert!(blocks > 0, "a step of no blocks never ends");
        let mut left = blocks;
        while left > 0 {
            if let Some(mut derivation) = self.derivation.take() {
                match derivation.step(self.columns.make_contiguous(), blocks) {
                    Some(cost) => {
                        left = left.saturating_sub(cost);
                        self.derivation = Some(derivation);
                    }
                    None => self.add_derived(derivation.finish()),
                }
                continue;
            }
            let Some(mut column) = self.current.take() else {
                match self.begin_next(file, left)? {
                    Some(cost) => left = left.saturating_sub(cost),
                    None => return self.finish(file).map(Some),
                }
                continue;
            };
            let cost = column.step(file, &mut self.out, left)?;
            left = left.saturating_sub(cost);
            match column.next == column.blocks.len() {
                true => {
                    self.entries.push(column.finish(file, &mut self.out)?);
                }
                false => self.current = Some(column),
            }
        }
        Ok(None)
    }

    /// Begins the next column, or prepares it; returns what that cost. `None` after the last one.
    fn begin_next(&mut self, file: &dyn LocalFile, left: usize) -> Result<Option<usize>> {
        if let Some(mut planned) = self.planning.take() {
            let cost = planned.planning.step(&planned.column.blocks);
            match cost {
                Some(_) => self.planning = Some(planned),
                None => self.current = Some(ColumnWriter::begin(planned, file, &mut self.out)?),
            }
            return Ok(Some(cost.unwrap_or(1)));
        }
        if let Some(shredding) = &mut self.shredding {
            let cost = shredding.step(left)?;
            if cost.is_none()
                && let Some(shredding) = self.shredding.take()
            {
                self.begin_shredded(shredding.finish());
            }
            return Ok(Some(cost.unwrap_or(0)));
        }
        if let Some((column, part)) = self.parts.pop_front() {
            self.begin(column, None, Some(part));
            return Ok(Some(0));
        }
        let Some(column) = self.columns.pop_front() else { return Ok(None) };
        let parts = self.entries.iter().filter(|entry| entry.part.is_some()).count();
        if column.spec.data_type == DataType::Json && parts + MAX_COLUMN_PARTS <= MAX_PARTS {
            self.shredding = Some(Shredding::new(column));
        } else {
            self.begin(column, None, None);
        }
        Ok(Some(0))
    }

    /// Begins to plan a column.
    fn begin(&mut self, column: Column, documents: Option<Documents>, part: Option<PartOf>) {
        debug_assert!(part.is_none() || documents.is_none(), "documents in a sub-column");
        let planning = Planning::new(column.searched);
        self.planning = Some(ColumnPlanning { column, documents, part, planning });
    }

    /// Begins to write a column of documents, its sub-columns next.
    fn begin_shredded(&mut self, shredded: Shredded) {
        let Shredded { column, documents } = shredded;
        debug_assert!(self.parts.is_empty(), "sub-columns of another column");
        let parent = self.entries.len();
        let Some((documents, parts)) = documents else {
            return self.begin(column, None, None);
        };
        for SubColumn { node, kind, blocks, .. } in parts {
            let (data_type, nullable) = (kind.data_type(), kind.nullable());
            let spec = ColumnSpec { id: column.spec.id, data_type, nullable };
            self.parts.push_back((Column::new(spec, blocks, 0), PartOf { parent, node, kind }));
        }
        self.begin(column, Some(documents), None);
    }

    fn finish(&mut self, file: &dyn LocalFile) -> Result<u64> {
        let footer = footer::encode(self.rows, &self.head, &self.entries);
        let out = &mut self.out;
        // The trailer directly follows the footer.
        let offset = out.align();
        debug_assert!(
            footer::decode(&footer, offset, MAGIC[MAGIC.len() - 1]).is_ok_and(|read| {
                read.rows == self.rows
                    && read.head == self.head
                    && read.columns.len() == self.entries.len()
            }),
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

/// A column being planned.
struct ColumnPlanning {
    column: Column,
    documents: Option<Documents>,
    part: Option<PartOf>,
    planning: Planning,
}

/// A column being written.
struct ColumnWriter {
    blocks: Vec<BlockValues>,
    next: usize,
    plan: ColumnPlan,
    entry: ColumnEntry,
    /// Smallest and largest value so far.
    whole: Option<(Scalar<'static>, Scalar<'static>)>,
    /// The outline so far; `None` for columns of which single rows are not read by parts.
    outline: Option<OutlineBuilder>,
    /// Of documents, the least and the greatest of each block, which is not in the blocks.
    extremes: Option<VecDeque<Extremes>>,
}

impl ColumnWriter {
    /// Writes the dictionary of a column that is planned, if it has one.
    fn begin(
        planned: ColumnPlanning,
        file: &dyn LocalFile,
        out: &mut Output,
    ) -> Result<ColumnWriter> {
        let ColumnPlanning { column, documents, part, planning } = planned;
        let plan = planning.finish();
        let mut entry = ColumnEntry { part, ..ColumnEntry::new(&column.spec, column.rows()) };
        entry.meta.raw_bytes = column.raw_bytes;
        // Blocks that only say which rows are null are constant.
        let dictionary = if documents.is_some() { None } else { plan.dictionary() };
        if let Some((bytes, values)) = dictionary {
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
        let by_parts = column.spec.id <= MAX_COLUMN_ID;
        let mut extremes = None;
        if let Some(documents) = documents {
            extremes = Some(documents.extremes);
            let schema = documents.schema;
            entry.document = Some(Box::new(DocumentEntry { schema, first: 0 }));
        }
        Ok(ColumnWriter {
            blocks: column.blocks,
            next: 0,
            plan,
            entry,
            whole: None,
            outline: by_parts.then(OutlineBuilder::default),
            extremes,
        })
    }

    /// Writes blocks until they cost as much as `blocks` of them; returns what they cost.
    fn step(&mut self, file: &dyn LocalFile, out: &mut Output, blocks: usize) -> Result<usize> {
        let data_type = self.entry.meta.data_type;
        let entry = &mut self.entry;
        let mut cost = 0;
        while cost < blocks && self.next < self.blocks.len() {
            let index = self.next;
            self.next += 1;
            // Frees the values of a block once it is written.
            let (values, validity) =
                std::mem::replace(&mut self.blocks[index], (Values::Bool(Vec::new()), None));
            let is_last = index + 1 == self.blocks.len();
            cost = cost.saturating_add(write_cost(&values));
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
            if let Some(outline) = &mut self.outline {
                outline.push(&block.bytes, data_type, block.encoding, values.len())?;
            }
            let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones());
            invariant!(nulls <= values.len(), "{nulls} nulls in {} rows", values.len());
            entry.nulls.push(nulls as u16);
            let found = match &mut self.extremes {
                Some(extremes) => extremes.pop_front().flatten(),
                None => extremes(&values, validity.as_ref()),
            };
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
        Ok(cost)
    }

    /// Writes the outline, if any, and returns the entry of a column whose blocks are written.
    fn finish(self, file: &dyn LocalFile, out: &mut Output) -> Result<ColumnEntry> {
        let mut entry = self.entry;
        if let Some(bytes) = self.outline.and_then(OutlineBuilder::finish) {
            let (length, checksum) = (length(&bytes)?, checksum(&bytes));
            let offset = out.put(file, &bytes)?;
            entry.outline = Some(OutlineEntry { offset, length, checksum });
        }
        entry.bounds.push(entry.meta.data_type, self.whole.as_ref());
        entry.assert_complete();
        Ok(entry)
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
