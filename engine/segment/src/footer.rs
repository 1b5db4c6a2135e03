//! The footer: everything about a segment but its values. Written last, read first, kept in memory.
//!
//! Whatever is read is checked against the file's length and the row count, so that readers may
//! trust offsets, counts and encodings. `docs/FORMAT.md` describes the bytes.

use crate::bounds::Bounds;
use crate::column::{ColumnMeta, ColumnSpec};
use nacre_column::Bitmap;
use nacre_column::encoding::{Encoding, MAX_DICTIONARY_VALUES, decode_values, encode_values};
use nacre_types::bytes::{Reader, Write};
use nacre_types::limits::{BLOCK_ROWS, MAX_SEGMENT_COLUMNS, MAX_SEGMENT_ROWS};
use nacre_types::{Result, Value, type_code};

/// First and last eight bytes of a segment file: a name and, last, the format's version.
pub const MAGIC: [u8; 8] = *b"NACRSEG\x01";
/// Footer offset, length, checksum, magic.
pub const TRAILER_BYTES: usize = 32;
/// Blocks start at multiples of this.
pub const ALIGNMENT: usize = 8;

const NULLABLE: u8 = 1;
const DICTIONARY: u8 = 2;

/// The dictionary of a column.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryEntry {
    /// Where it lies.
    pub offset: u64,
    /// Its length.
    pub length: u32,
    /// Its checksum.
    pub checksum: u64,
    /// Number of its values.
    pub values: u32,
}

/// A column: what is public about it, and where its blocks are. One array a property, one entry a
/// block: a segment of a million rows has 256 blocks a column.
#[derive(Debug)]
pub struct ColumnEntry {
    /// What inspection shows.
    pub meta: ColumnMeta,
    /// Where blocks lie.
    pub offsets: Vec<u64>,
    /// Their lengths.
    pub lengths: Vec<u32>,
    /// Their checksums.
    pub checksums: Vec<u64>,
    /// Their encodings.
    pub encodings: Vec<Encoding>,
    /// Their null rows.
    pub nulls: Vec<u16>,
    /// Their bounds, and the column's.
    pub bounds: Bounds,
    /// Its dictionary.
    pub dictionary: Option<DictionaryEntry>,
}

impl ColumnEntry {
    /// A column without blocks.
    pub fn new(spec: &ColumnSpec) -> ColumnEntry {
        ColumnEntry {
            meta: ColumnMeta {
                id: spec.id,
                data_type: spec.data_type,
                nullable: spec.nullable,
                encoding: Encoding::Constant.name(),
                bytes: 0,
                raw_bytes: 0,
                null_count: 0,
                min: Value::Null,
                max: Value::Null,
                exact: true,
            },
            offsets: Vec::new(),
            lengths: Vec::new(),
            checksums: Vec::new(),
            encodings: Vec::new(),
            nulls: Vec::new(),
            bounds: Bounds::new(spec.data_type.physical()),
            dictionary: None,
        }
    }

    /// Fills what of `meta` follows from the rest.
    fn summarise(&mut self, rows: usize) {
        let blocks = self.offsets.len();
        let meta = &mut self.meta;
        meta.null_count = self.nulls.iter().map(|n| *n as u64).sum();
        meta.bytes = self.lengths.iter().map(|n| *n as u64).sum();
        meta.bytes += self.dictionary.map_or(0, |d| d.length as u64);
        meta.exact = self.bounds.exact.get(blocks);
        if meta.null_count < rows as u64 {
            (meta.min, meta.max) = self.bounds.values(meta.data_type, blocks);
        }
        // Of encodings used equally often, the one with the greatest number.
        let uses = |encoding: &&Encoding| {
            (self.encodings.iter().filter(|used| used == encoding).count(), **encoding as u8)
        };
        if let Some(most) = Encoding::ALL.iter().max_by_key(uses).filter(|_| blocks > 0) {
            meta.encoding = most.name();
        }
    }
}

/// Number of blocks of a segment of so many rows.
pub fn block_count(rows: usize) -> usize {
    rows.div_ceil(BLOCK_ROWS)
}

/// Number of rows of one of them.
#[inline]
pub fn block_rows(rows: usize, block: usize) -> usize {
    BLOCK_ROWS.min(rows.saturating_sub(block * BLOCK_ROWS))
}

/// The footer's bytes.
pub fn encode(rows: usize, columns: &[ColumnEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(rows as u32);
    out.put_u32(columns.len() as u32);
    for column in columns {
        out.put_varint(column.meta.id as u64);
        // Nested columns: the entry this one is part of, counted from 1, and its path there.
        out.put_varint(0);
        out.put_bytes(&[]);
        type_code::put(&mut out, column.meta.data_type);
        let nullable = if column.meta.nullable { NULLABLE } else { 0 };
        out.put_u8(nullable | if column.dictionary.is_some() { DICTIONARY } else { 0 });
        out.put_varint(column.meta.raw_bytes);
        if let Some(dictionary) = column.dictionary {
            out.put_u64(dictionary.offset);
            out.put_u32(dictionary.length);
            out.put_u64(dictionary.checksum);
            out.put_u32(dictionary.values);
        }
        column.offsets.iter().for_each(|v| out.put_u64(*v));
        column.lengths.iter().for_each(|v| out.put_u32(*v));
        column.checksums.iter().for_each(|v| out.put_u64(*v));
        column.encodings.iter().for_each(|v| out.put_u8(*v as u8));
        column.nulls.iter().for_each(|v| out.put_u16(*v));
        column.bounds.exact.words().iter().for_each(|v| out.put_u64(*v));
        out.put_bytes(&encode_values(&column.bounds.min));
        out.put_bytes(&encode_values(&column.bounds.max));
    }
    out
}

/// Reads a footer whose blocks must lie in the first `end` bytes of the file.
pub fn decode(bytes: &[u8], end: u64) -> Result<(usize, Vec<ColumnEntry>)> {
    let mut reader = Reader::new(bytes, "footer");
    let rows = reader.u32()? as usize;
    let count = reader.u32()? as usize;
    if rows > MAX_SEGMENT_ROWS || count > MAX_SEGMENT_COLUMNS {
        return Err(reader.corrupt("more rows or columns than a segment may have"));
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(decode_column(&mut reader, rows, end)?);
    }
    reader.finish()?;
    Ok((rows, columns))
}

fn decode_column(reader: &mut Reader<'_>, rows: usize, end: u64) -> Result<ColumnEntry> {
    let blocks = block_count(rows);
    let id = reader.count(u32::MAX as usize)? as u32;
    if reader.varint()? != 0 || !reader.bytes()?.is_empty() {
        return Err(reader.corrupt("nested column in a version without any"));
    }
    let data_type = type_code::get(reader)?;
    let flags = reader.u8()?;
    if flags & !(NULLABLE | DICTIONARY) != 0 {
        return Err(reader.corrupt("unknown column flags"));
    }
    let mut column =
        ColumnEntry::new(&ColumnSpec { id, data_type, nullable: flags & NULLABLE != 0 });
    column.meta.raw_bytes = reader.varint()?;
    if flags & DICTIONARY != 0 {
        let (offset, length, checksum, values) =
            (reader.u64()?, reader.u32()?, reader.u64()?, reader.u32()?);
        if values as usize > MAX_DICTIONARY_VALUES || !inside(offset, length, end) {
            return Err(reader.corrupt("impossible dictionary"));
        }
        column.dictionary = Some(DictionaryEntry { offset, length, checksum, values });
    }
    let words = |bytes: &[u8]| {
        bytes.as_chunks::<8>().0.iter().map(|v| u64::from_le_bytes(*v)).collect::<Vec<u64>>()
    };
    column.offsets = words(reader.take(blocks * 8)?);
    column.lengths = reader
        .take(blocks * 4)?
        .as_chunks::<4>()
        .0
        .iter()
        .map(|v| u32::from_le_bytes(*v))
        .collect();
    column.checksums = words(reader.take(blocks * 8)?);
    for byte in reader.take(blocks)? {
        match Encoding::from_byte(*byte) {
            Some(Encoding::Dictionary) if column.dictionary.is_none() => {
                return Err(reader.corrupt("coded block without a dictionary"));
            }
            Some(encoding) => column.encodings.push(encoding),
            None => return Err(reader.corrupt("unknown encoding")),
        }
    }
    column.nulls = reader
        .take(blocks * 2)?
        .as_chunks::<2>()
        .0
        .iter()
        .map(|v| u16::from_le_bytes(*v))
        .collect();
    for block in 0..blocks {
        if !inside(column.offsets[block], column.lengths[block], end) {
            return Err(reader.corrupt("block outside the file"));
        }
        if column.nulls[block] as usize > block_rows(rows, block) {
            return Err(reader.corrupt("more nulls than rows"));
        }
    }
    let exact = words(reader.take((blocks + 1).div_ceil(64) * 8)?);
    column.bounds.exact = Bitmap::from_words(exact, blocks + 1).unwrap_or_default();
    column.bounds.min = decode_values(reader.bytes()?, data_type, blocks + 1)?;
    column.bounds.max = decode_values(reader.bytes()?, data_type, blocks + 1)?;
    column.summarise(rows);
    Ok(column)
}

fn inside(offset: u64, length: u32, end: u64) -> bool {
    offset.is_multiple_of(ALIGNMENT as u64)
        && offset >= MAGIC.len() as u64
        && offset.checked_add(length as u64).is_some_and(|last| last <= end)
}
