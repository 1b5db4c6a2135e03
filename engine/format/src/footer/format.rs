//! The byte format of the footer, encoding and decoding. `docs/FORMAT.md` describes it.
//!
//! The reader validates everything against the file's length and the row count, so that the rest of
//! the crate may trust offsets, counts and encodings.

use super::entry::{
    ColumnEntry, DictionaryEntry, DocumentEntry, OutlineEntry, PartOf, block_count, block_rows,
};
use super::parts::{self, Columns, WITH_PARTS};
use crate::column::ColumnSpec;
use crate::document::Schema;
use crate::identity::{Identity, OrderBounds};
use nacre_column::Bitmap;
use nacre_column::encoding::{Encoding, MAX_DICTIONARY_VALUES, decode_values, encode_values};
use nacre_types::bytes::{Reader, Write};
use nacre_types::limits::{MAX_SEGMENT_COLUMNS, MAX_SEGMENT_ROWS};
use nacre_types::{DataType, Error, Result, TableId, invariant, type_code};

/// First and last eight bytes of a segment file: a name, then the format version.
pub const MAGIC: [u8; 8] = *b"NACRSEG\x05";
/// The version before files had an identity and order bounds. Still read.
const WITHOUT_HEAD: u8 = 1;
/// The first version whose columns may have outlines.
const WITH_OUTLINES: u8 = 3;
/// The first version whose columns may have tokens.
const WITH_TOKENS: u8 = 4;
/// Greatest number of sub-columns of a segment.
pub const MAX_PARTS: usize = 1 << 14;
/// Footer offset, length, checksum, magic.
pub const TRAILER_BYTES: usize = 32;
/// Blocks start at multiples of this.
pub const ALIGNMENT: usize = 8;

const NULLABLE: u8 = 1;
const DICTIONARY: u8 = 2;
const OUTLINE: u8 = 4;
const DOCUMENT: u8 = 8;

/// Flags of the head.
const IDENTITY: u8 = 1;
const ORDER_BOUNDS: u8 = 2;

/// What a footer says apart from the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FooterHead {
    /// Which file it is. Missing in version 1, and in a file that belongs to no database.
    pub identity: Option<Identity>,
    /// The range of its rows. Missing in version 1, and in files whose rows have no such order.
    pub order_bounds: Option<OrderBounds>,
}

/// A decoded footer.
pub struct Footer {
    /// Number of rows.
    pub rows: usize,
    /// Identity and order bounds.
    pub head: FooterHead,
    /// The columns in file order, then their sub-columns.
    pub columns: Vec<ColumnEntry>,
}

/// The format version in the first or last bytes of a file.
///
/// # Errors
/// `corrupt` unless they are a segment's magic, `unsupported` for a version that this build does
/// not read.
pub fn version_of(found: &[u8], which: &str) -> Result<u8> {
    let (name, newest) = MAGIC.split_at(MAGIC.len() - 1);
    match found.split_last() {
        Some((version, found)) if found == name => match *version {
            version if (WITHOUT_HEAD..=newest[0]).contains(&version) => Ok(version),
            version => Err(Error::unsupported(format!(
                "segment format version {version}; this program reads up to {}",
                newest[0]
            ))),
        },
        _ => Err(Error::corrupt(format!("{which} bytes are not the magic of a segment"))),
    }
}

/// Encodes the footer. The columns are in file order, each followed by its sub-columns.
pub fn encode(rows: usize, head: &FooterHead, columns: &[ColumnEntry]) -> Vec<u8> {
    invariant!(rows <= MAX_SEGMENT_ROWS, "a footer of {rows} rows");
    let parts = columns.iter().filter(|column| column.part.is_some()).count();
    invariant!(
        columns.len() - parts <= MAX_SEGMENT_COLUMNS && parts <= MAX_PARTS,
        "a footer of {} columns, {parts} of them sub-columns",
        columns.len()
    );
    let mut out = Vec::new();
    out.put_u32(rows as u32);
    out.put_u32(columns.len() as u32);
    put_head(&mut out, head);
    for column in columns {
        column.assert_complete();
        out.put_varint(column.meta.id as u64);
        parts::put(&mut out, column.part);
        type_code::put(&mut out, column.meta.data_type);
        let nullable = if column.meta.nullable { NULLABLE } else { 0 };
        let dictionary = if column.dictionary.is_some() { DICTIONARY } else { 0 };
        let outline = if column.outline.is_some() { OUTLINE } else { 0 };
        let document = if column.document.is_some() { DOCUMENT } else { 0 };
        out.put_u8(nullable | dictionary | outline | document);
        out.put_varint(column.meta.raw_bytes);
        if let Some(dictionary) = column.dictionary {
            out.put_u64(dictionary.offset);
            out.put_u32(dictionary.length);
            out.put_u64(dictionary.checksum);
            out.put_u32(dictionary.values);
        }
        if let Some(outline) = column.outline {
            out.put_u64(outline.offset);
            out.put_u32(outline.length);
            out.put_u64(outline.checksum);
        }
        if let Some(document) = &column.document {
            document.schema.encode(&mut out);
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

fn put_head(out: &mut Vec<u8>, head: &FooterHead) {
    let start = out.len();
    let identity = if head.identity.is_some() { IDENTITY } else { 0 };
    out.put_u8(identity | if head.order_bounds.is_some() { ORDER_BOUNDS } else { 0 });
    if let Some(Identity { database, table, number }) = head.identity {
        out.put_u64(database);
        out.put_varint(u64::from(table));
        out.put_varint(number);
    }
    if let Some(OrderBounds { first, last }) = &head.order_bounds {
        out.put_bytes(first);
        out.put_bytes(last);
    }
    debug_assert!(
        read_head(&mut Reader::new(&out[start..], "footer")).is_ok_and(|read| read == *head),
        "the head of a footer does not read back"
    );
}

fn read_head(reader: &mut Reader<'_>) -> Result<FooterHead> {
    let flags = reader.u8()?;
    if flags & !(IDENTITY | ORDER_BOUNDS) != 0 {
        return Err(reader.corrupt("unknown flags"));
    }
    let mut head = FooterHead::default();
    if flags & IDENTITY != 0 {
        let database = reader.u64()?;
        let table = TableId::try_from(reader.varint()?).map_err(|_| reader.corrupt("table id"))?;
        head.identity = Some(Identity { database, table, number: reader.varint()? });
    }
    if flags & ORDER_BOUNDS != 0 {
        let (first, last) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        if first > last {
            return Err(reader.corrupt("order bounds out of order"));
        }
        head.order_bounds = Some(OrderBounds { first, last });
    }
    Ok(head)
}

/// Decodes a footer of a format version. Its blocks must lie in the first `end` bytes of the file.
pub fn decode(bytes: &[u8], end: u64, version: u8) -> Result<Footer> {
    let mut reader = Reader::new(bytes, "footer");
    let rows = reader.u32()? as usize;
    let count = reader.u32()? as usize;
    if rows > MAX_SEGMENT_ROWS || count > MAX_SEGMENT_COLUMNS + MAX_PARTS {
        return Err(reader.corrupt("more rows or columns than a segment may have"));
    }
    let head = match version {
        WITHOUT_HEAD => FooterHead::default(),
        _ => read_head(&mut reader)?,
    };
    let mut columns = Columns::default();
    for _ in 0..count {
        let id = reader.count(u32::MAX as usize)? as u32;
        let part = columns.part(&mut reader, version)?;
        let rows = part.map_or(rows, |part| columns.rows_of(part));
        let column = decode_column(&mut reader, id, part, rows, end, version)?;
        columns.add(&reader, column)?;
    }
    let columns = columns.finish(&reader)?;
    reader.finish()?;
    Ok(Footer { rows, head, columns })
}

fn decode_column(
    reader: &mut Reader<'_>,
    id: u32,
    part: Option<PartOf>,
    rows: usize,
    end: u64,
    version: u8,
) -> Result<ColumnEntry> {
    let blocks = block_count(rows);
    let data_type = type_code::get(reader)?;
    let flags = reader.u8()?;
    let outlines = if version >= WITH_OUTLINES { OUTLINE } else { 0 };
    let documents = if version >= WITH_PARTS && part.is_none() { DOCUMENT } else { 0 };
    if flags & !(NULLABLE | DICTIONARY | outlines | documents) != 0 {
        return Err(reader.corrupt("unknown column flags"));
    }
    let spec = ColumnSpec { id, data_type, nullable: flags & NULLABLE != 0 };
    let mut column = ColumnEntry { part, ..ColumnEntry::new(&spec, rows) };
    column.meta.raw_bytes = reader.varint()?;
    if flags & DICTIONARY != 0 {
        let (offset, length, checksum, values) =
            (reader.u64()?, reader.u32()?, reader.u64()?, reader.u32()?);
        if values as usize > MAX_DICTIONARY_VALUES || !inside(offset, length, end) {
            return Err(reader.corrupt("dictionary outside the file or too large"));
        }
        column.dictionary = Some(DictionaryEntry { offset, length, checksum, values });
    }
    if flags & OUTLINE != 0 {
        let (offset, length, checksum) = (reader.u64()?, reader.u32()?, reader.u64()?);
        if !inside(offset, length, end) {
            return Err(reader.corrupt("outline outside the file"));
        }
        column.outline = Some(OutlineEntry { offset, length, checksum });
    }
    if flags & DOCUMENT != 0 {
        if data_type != DataType::Json {
            return Err(reader.corrupt("sub-columns of a column that is not JSON"));
        }
        let schema = Schema::decode(reader, rows)?;
        column.document = Some(Box::new(DocumentEntry { schema, first: 0 }));
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
            Some(encoding) if encoding.shares() && column.dictionary.is_none() => {
                return Err(reader.corrupt("coded block without a dictionary"));
            }
            Some(Encoding::OnPair) if version < WITH_TOKENS => {
                return Err(reader.corrupt("encoding of a later version"));
            }
            Some(encoding) => column.encodings.push(encoding),
            None => return Err(reader.corrupt("unknown encoding")),
        }
    }
    if !column.has_one_kind_of_codes() {
        return Err(reader.corrupt("column with a dictionary of both values and tokens"));
    }
    column.nulls = reader
        .take(blocks * 2)?
        .as_chunks::<2>()
        .0
        .iter()
        .map(|v| u16::from_le_bytes(*v))
        .collect();
    if !column.offsets.is_sorted_by(|a, b| a < b) {
        return Err(reader.corrupt("blocks out of order"));
    }
    for block in 0..blocks {
        if !inside(column.offsets[block], column.lengths[block], end) {
            return Err(reader.corrupt("block outside the file"));
        }
        if column.nulls[block] as usize > block_rows(rows, block) {
            return Err(reader.corrupt("more nulls than rows"));
        }
    }
    let exact = words(reader.take((blocks + 1).div_ceil(64) * 8)?);
    column.bounds.exact = Bitmap::from_words(exact, blocks + 1)
        .ok_or_else(|| reader.corrupt("bits of exact bounds end early"))?;
    column.bounds.min = decode_values(reader.bytes()?, data_type, blocks + 1)?;
    column.bounds.max = decode_values(reader.bytes()?, data_type, blocks + 1)?;
    column.summarise();
    Ok(column)
}

/// Whether a block is non-empty and lies in the first `end` bytes of a file.
fn inside(offset: u64, length: u32, end: u64) -> bool {
    length > 0
        && offset.is_multiple_of(ALIGNMENT as u64)
        && offset >= MAGIC.len() as u64
        && offset.checked_add(length as u64).is_some_and(|last| last <= end)
}
