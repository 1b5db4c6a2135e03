//! LZ4: long text and binary in small compressed chunks of rows.
//!
//! Body: a `u32` number of rows in a chunk (the last may have fewer), a `u32` number of chunks,
//! then for every chunk two `u32`: where its compressed bytes end, relative to the first chunk, and
//! its length uncompressed; then the chunks, each one LZ4 block. Uncompressed, a chunk is the
//! length of every row as a varint, then the bytes of all rows. Reading one row thus decompresses
//! one chunk.

mod prefix;

use super::read::{corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::kernel::Predicate;
use crate::{Bitmap, BytesColumn, Form, Scalar, Values};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{PhysicalType, Result, invariant};
use prefix::Prefix;
use std::borrow::Cow;

/// Target size of a chunk, in uncompressed bytes.
const CHUNK_BYTES: usize = 2048;
/// LZ4 expands a byte to fewer bytes than this: a larger ratio is damage.
const MAX_RATIO: usize = 256;
const ENDS_EARLY: &str = "compressed chunk ends early";

/// Appends the body if the values are text or binary.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Values::Bytes(values) = input.values else { return false };
    let get = |row: usize| if input.is_valid(row) { values.get(input.start + row) } else { &[] };
    let total: usize = (0..input.len).map(|row| get(row).len()).sum();
    // The rows of a chunk: a power of two near the target, from one row to all of them.
    let average = total / input.len.max(1) + 1;
    let chunk_rows = (CHUNK_BYTES / average)
        .max(1)
        .next_power_of_two()
        .min(input.len.max(1).next_power_of_two());
    let chunks = input.len.div_ceil(chunk_rows);
    out.put_u32(chunk_rows as u32);
    out.put_u32(chunks as u32);
    let table = out.len();
    out.resize(table + chunks * 8, 0);
    let data = out.len();
    let mut raw = Vec::new();
    for chunk in 0..chunks {
        let rows = chunk * chunk_rows..input.len.min((chunk + 1) * chunk_rows);
        raw.clear();
        rows.clone().for_each(|row| raw.put_varint(get(row).len() as u64));
        rows.for_each(|row| raw.extend_from_slice(get(row)));
        let packed = lz4_flex::block::compress(&raw);
        let (from, to) = (raw.len(), packed.len());
        // The reader rejects such a chunk.
        invariant!(from / MAX_RATIO <= to, "a chunk of {from} bytes in {to}");
        out.extend_from_slice(&packed);
        let long = out.len() - data > u32::MAX as usize || raw.len() > u32::MAX as usize;
        invariant!(!long, "compressed chunks longer than 4 GiB");
        let ends = [(out.len() - data) as u32, raw.len() as u32];
        for (at, end) in (table + chunk * 8..).step_by(4).zip(ends) {
            out[at..at + 4].copy_from_slice(&end.to_le_bytes());
        }
    }
    true
}

/// A compressed body.
pub(crate) struct Lz4<'a> {
    chunk_rows: usize,
    table: &'a [u8],
    data: &'a [u8],
    rows: usize,
}

/// A decompressed chunk: where its first row starts and where each row ends.
struct Chunk {
    bytes: Vec<u8>,
    start: usize,
    ends: Vec<usize>,
}

impl Chunk {
    fn get(&self, row: usize) -> &[u8] {
        debug_assert!(row < self.ends.len(), "row {row} of a chunk of {}", self.ends.len());
        let start = if row == 0 { self.start } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }
}

impl<'a> Lz4<'a> {
    /// The compressed bytes of a chunk, and its uncompressed length.
    fn packed(&self, index: usize) -> Result<(&'a [u8], usize)> {
        let start = if index == 0 { 0 } else { u32_at(self.table, index * 8 - 8, ENDS_EARLY)? };
        let end = u32_at(self.table, index * 8, ENDS_EARLY)?;
        let len = u32_at(self.table, index * 8 + 4, ENDS_EARLY)?;
        let packed = self.data.get(start..end).ok_or_else(|| corrupt(ENDS_EARLY))?;
        if len / MAX_RATIO > packed.len() {
            return Err(corrupt("compressed chunk claims an impossible length"));
        }
        Ok((packed, len))
    }

    /// Reads one row: decompresses its chunk up to the end of the row.
    fn row(&self, row: usize) -> Result<Vec<u8>> {
        debug_assert!(row < self.rows, "row {row} of a compressed body of {}", self.rows);
        let (index, row) = (row / self.chunk_rows, row % self.chunk_rows);
        let (packed, len) = self.packed(index)?;
        let rows = self.chunk_rows.min(self.rows - index * self.chunk_rows);
        let mut prefix = Prefix::new(packed, len);
        // The lengths of all rows come first, most of them one byte long.
        let mut wanted = rows;
        let (start, begin, end) = loop {
            prefix.extend_to(wanted)?;
            let mut reader = Reader::new(&prefix.bytes, "compressed chunk");
            let (mut begin, mut end, mut read) = (0usize, 0usize, 0);
            while read < rows {
                let Ok(length) = reader.count(len) else { break };
                if read == row {
                    (begin, end) = (end, end.saturating_add(length));
                } else if read < row {
                    end = end.saturating_add(length);
                }
                read += 1;
            }
            if read == rows {
                break (reader.position(), begin, end);
            }
            // Some lengths are longer: decompress further, up to the whole chunk.
            if wanted == len {
                return Err(corrupt(ENDS_EARLY));
            }
            wanted = (wanted + rows).min(len);
        };
        prefix.extend_to(start.saturating_add(end))?;
        Ok(prefix.bytes[start + begin..start + end].to_vec())
    }

    fn chunk(&self, index: usize) -> Result<Chunk> {
        let (packed, len) = self.packed(index)?;
        let mut bytes = vec![0; len];
        match lz4_flex::block::decompress_into(packed, &mut bytes) {
            Ok(n) if n == len => {}
            _ => return Err(corrupt("compressed chunk does not decompress")),
        }
        let rows = self.chunk_rows.min(self.rows - index * self.chunk_rows);
        let mut reader = Reader::new(&bytes, "compressed chunk");
        let mut ends = Vec::with_capacity(rows);
        let mut end = 0usize;
        for _ in 0..rows {
            end = end.saturating_add(reader.count(len)?);
            ends.push(end);
        }
        let start = reader.position();
        if end != len - start {
            return Err(corrupt("compressed chunk has rows of the wrong length"));
        }
        ends.iter_mut().for_each(|end| *end += start);
        debug_assert!(ends.is_sorted() && ends.last() == Some(&len), "row ends of a chunk");
        Ok(Chunk { bytes, start, ends })
    }
}

impl<'a> Scheme<'a> for Lz4<'a> {
    const NAME: &'static str = "lz4";
    const OFFER: Offer = Offer::ByColumn;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    fn open(source: Source<'a>) -> Result<Lz4<'a>> {
        let Source { bytes, physical, rows, .. } = source;
        let chunk_rows = u32_at(bytes, 0, ENDS_EARLY)?;
        let chunks = u32_at(bytes, 4, ENDS_EARLY)?;
        if physical != PhysicalType::Bytes || chunk_rows == 0 || rows.div_ceil(chunk_rows) != chunks
        {
            return Err(corrupt("compressed block has the wrong number of chunks"));
        }
        let table = slice(bytes, 8, chunks * 8, ENDS_EARLY)?;
        Ok(Lz4 { chunk_rows, table, data: &bytes[8 + table.len()..], rows })
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        see(slice(source.bytes, 0, 8, ENDS_EARLY)?);
        Ok(true)
    }
}

impl<'a> Body<'a> for Lz4<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(Scalar::Bytes(Cow::Owned(self.row(row)?)))
    }

    /// Where the chunk of the row ends, and the one before it; then the chunk.
    fn parts(&self, row: usize, see: See<'_, 'a>) {
        debug_assert!(row < self.rows, "row {row} of a compressed body of {}", self.rows);
        let index = row / self.chunk_rows;
        let table = self.table.get(index.saturating_sub(1) * 8..(index + 1) * 8);
        see(table.unwrap_or_default());
        see(self.packed(index).map_or(&[], |(packed, _)| packed));
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let mut out = BytesColumn::default();
        out.offsets.reserve(len);
        let end = start + len;
        let mut at = start;
        while at < end {
            let index = at / self.chunk_rows;
            let chunk = self.chunk(index)?;
            let first = index * self.chunk_rows;
            let (from, to) = (at - first, chunk.ends.len().min(end - first));
            let from_byte = if from == 0 { chunk.start } else { chunk.ends[from - 1] };
            let before = out.data.len();
            out.data.extend_from_slice(&chunk.bytes[from_byte..chunk.ends[to - 1]]);
            out.offsets
                .extend(chunk.ends[from..to].iter().map(|end| (before + end - from_byte) as u32));
            at = first + to;
        }
        debug_assert_eq!(out.len(), len, "texts of a range");
        Ok(Form::Flat(Values::Bytes(out)))
    }

    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let end = start + len;
        let mut at = start;
        while at < end {
            let index = at / self.chunk_rows;
            let chunk = self.chunk(index)?;
            let first = index * self.chunk_rows;
            let to = chunk.ends.len().min(end - first);
            (at - first..to).for_each(|row| out.push(predicate.accepts_bytes(chunk.get(row))));
            at = first + to;
        }
        Ok(())
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let mut out = BytesColumn::default();
        for run in
            rows.chunk_by(|a, b| *a as usize / self.chunk_rows == *b as usize / self.chunk_rows)
        {
            let chunk = self.chunk(run[0] as usize / self.chunk_rows)?;
            run.iter().for_each(|row| out.push(chunk.get(*row as usize % self.chunk_rows)));
        }
        Ok(Form::Flat(Values::Bytes(out)))
    }
}
