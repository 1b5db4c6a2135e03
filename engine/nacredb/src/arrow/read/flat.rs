//! Tables of metadata, read where they lie. The readers that are generated from Arrow's schema
//! check all types of all messages first, which is 40 KB of code in a browser.
//!
//! Source: Google, *FlatBuffers Internals*: a table begins with the distance to the offsets of its
//! fields, which are numbered as in the generated readers (`VT_…`). Every read is checked.

use nacre_types::{Error, Result};

/// A table of metadata.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the offsets of the fields begin, and how many bytes they take.
    offsets: usize,
    offset_bytes: usize,
}

impl<'a> Table<'a> {
    /// The table that everything else is reached from.
    pub fn root(bytes: &'a [u8]) -> Result<Table<'a>> {
        Table::new(bytes, target(bytes, 0)?)
    }

    fn new(bytes: &'a [u8], at: usize) -> Result<Table<'a>> {
        let back = integer(bytes, at, 4)?;
        let offsets = i64::try_from(at).ok().and_then(|at| usize::try_from(at - back).ok());
        let offsets = offsets.ok_or_else(outside)?;
        let offset_bytes = integer(bytes, offsets, 2)? as u16 as usize;
        if bytes.len().saturating_sub(offsets) < offset_bytes {
            return Err(outside());
        }
        Ok(Table { bytes, at, offsets, offset_bytes })
    }

    /// Where a field is; `None` if it is absent.
    fn field(&self, field: u16) -> Result<Option<usize>> {
        debug_assert!(field >= 4 && field.is_multiple_of(2), "a field numbered {field}");
        let field = usize::from(field);
        if field + 2 > self.offset_bytes {
            return Ok(None);
        }
        let offset = integer(self.bytes, self.offsets + field, 2)? as u16 as usize;
        Ok((offset > 0).then_some(self.at + offset))
    }

    /// A signed integer of some bytes.
    pub fn integer(&self, field: u16, bytes: usize, absent: i64) -> Result<i64> {
        self.field(field)?.map_or(Ok(absent), |at| integer(self.bytes, at, bytes))
    }

    pub fn bool(&self, field: u16) -> Result<bool> {
        Ok(self.integer(field, 1, 0)? != 0)
    }

    pub fn table(&self, field: u16) -> Result<Option<Table<'a>>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        Table::new(self.bytes, target(self.bytes, at)?).map(Some)
    }

    pub fn text(&self, field: u16) -> Result<Option<&'a str>> {
        let Some(bytes) = self.list(field, 1)? else { return Ok(None) };
        let text = std::str::from_utf8(bytes);
        text.map(Some).map_err(|_| Error::corrupt("a text in an Arrow message is not UTF-8"))
    }

    /// Pairs of integers of eight bytes each.
    pub fn pairs(&self, field: u16) -> Result<Vec<(i64, i64)>> {
        let bytes = self.list(field, 16)?.unwrap_or_default();
        let pair = |at| Ok((integer(bytes, at, 8)?, integer(bytes, at + 8, 8)?));
        (0..bytes.len()).step_by(16).map(pair).collect()
    }

    /// The tables of a list.
    pub fn tables(&self, field: u16) -> Result<Vec<Table<'a>>> {
        let Some(at) = self.field(field)? else { return Ok(Vec::new()) };
        let count = self.list(field, 4)?.map_or(0, <[u8]>::len) / 4;
        let start = target(self.bytes, at)? + 4;
        let table = |at| Table::new(self.bytes, target(self.bytes, at)?);
        (0..count).map(|element| table(start + element * 4)).collect()
    }

    /// The bytes of a list whose elements take some bytes each.
    fn list(&self, field: u16, element_bytes: usize) -> Result<Option<&'a [u8]>> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        let start = target(self.bytes, at)?;
        let count = integer(self.bytes, start, 4)? as u32 as usize;
        let end = count.checked_mul(element_bytes).and_then(|bytes| bytes.checked_add(start + 4));
        let bytes = end.and_then(|end| self.bytes.get(start + 4..end));
        bytes.map(Some).ok_or_else(outside)
    }
}

/// What the distance at a position leads to.
fn target(bytes: &[u8], at: usize) -> Result<usize> {
    at.checked_add(integer(bytes, at, 4)? as u32 as usize).ok_or_else(outside)
}

/// A signed integer of one to eight bytes.
fn integer(bytes: &[u8], at: usize, length: usize) -> Result<i64> {
    debug_assert!((1..=8).contains(&length), "an integer of {length} bytes");
    let end = at.checked_add(length);
    let part = end.and_then(|end| bytes.get(at..end)).ok_or_else(outside)?;
    let sign = if part[length - 1] & 0x80 == 0 { 0 } else { 0xff };
    let mut all = [sign; 8];
    all[..length].copy_from_slice(part);
    Ok(i64::from_le_bytes(all))
}

fn outside() -> Error {
    Error::corrupt("the metadata of an Arrow message refers to what is outside of it")
}
