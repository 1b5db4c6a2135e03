//! Reading a block: its head once, then rows, ranges, position lists and filters through its
//! encoding.

use crate::encoding::header::{self, ALL_NULL, HAS_VALIDITY, HEADER_BYTES};
use crate::encoding::read::{corrupt, slice};
use crate::encoding::scheme::{Body, Source};
use crate::encoding::values::check_text;
use crate::encoding::{Dictionary, Encoding, Opened};
use crate::kernel::{Pattern, Predicate};
use crate::{Bitmap, Form, Scalar, Values, Vector, VectorBuilder};
use nacre_types::{DataType, Error, PhysicalType, Result, Value};
use std::cmp::Ordering;

/// An opened block. Opening is cheap enough to repeat for every access.
pub struct Block<'a> {
    data_type: DataType,
    rows: usize,
    validity: Option<&'a [u8]>,
    /// `None` when every row is null.
    opened: Option<Opened<'a>>,
}

impl<'a> Block<'a> {
    /// Reads the head of a block of `rows` rows. Some encodings need the dictionary of the
    /// column ([`Encoding::shares`]).
    #[inline]
    pub fn open(
        bytes: &'a [u8],
        data_type: DataType,
        encoding: Encoding,
        rows: usize,
        dictionary: Option<Dictionary<'a>>,
    ) -> Result<Block<'a>> {
        let flags = header::read(bytes, encoding as u8, rows)?;
        let mut at = HEADER_BYTES;
        let mut validity = None;
        match flags {
            0 => {}
            ALL_NULL if encoding == Encoding::Constant => {
                return Ok(Block { data_type, rows, validity, opened: None });
            }
            HAS_VALIDITY => {
                let words = slice(bytes, at, rows.div_ceil(64) * 8, "validity ends early")?;
                at += words.len();
                validity = Some(words);
            }
            _ => return Err(corrupt("unknown block flags")),
        }
        let physical = data_type.physical();
        let source = Source { bytes: &bytes[at..], data_type, physical, rows, dictionary };
        let opened = Some(Opened::open(encoding, source)?);
        Ok(Block { data_type, rows, validity, opened })
    }

    /// The opened body; `None` when every row is null.
    #[inline]
    fn body(&self) -> Option<&dyn Body<'a>> {
        self.opened.as_ref().map(Opened::body)
    }

    /// Passes the slices of a block that [`Block::open`] reads, and those that all rows share; in
    /// order, none of them overlapping. The dictionary of a dictionary-coded block may be missing.
    /// Returns whether its rows are read by parts at all, see [`Block::parts`].
    pub fn head(
        bytes: &'a [u8],
        data_type: DataType,
        encoding: Encoding,
        rows: usize,
        see: &mut dyn FnMut(&'a [u8]),
    ) -> Result<bool> {
        let flags = header::read(bytes, encoding as u8, rows)?;
        let at = match flags {
            0 => HEADER_BYTES,
            HAS_VALIDITY => HEADER_BYTES + rows.div_ceil(64) * 8,
            _ => return Ok(false),
        };
        debug_assert!(at.is_multiple_of(8), "a body at byte {at}");
        let physical = data_type.physical();
        let body = bytes.get(at..).ok_or_else(|| corrupt("validity ends early"))?;
        see(slice(bytes, 0, HEADER_BYTES, "block header ends early")?);
        let source = Source { bytes: body, data_type, physical, rows, dictionary: None };
        Opened::head(encoding, source, see)
    }

    /// Passes the slices that [`Block::get`] reads for a row, besides the head and the dictionary.
    ///
    /// The block may have been opened from bytes of which only the head and some of these slices
    /// were read and the rest is zero. The place of a slice may depend on one that is passed before
    /// it, so callers read what is passed and call again, until nothing is new.
    pub fn parts(&self, row: usize, see: &mut dyn FnMut(&'a [u8])) {
        debug_assert!(row < self.rows, "parts of row {row} of a block of {}", self.rows);
        if let Some(bits) = self.validity {
            see(bits.get(row / 8..=row / 8).unwrap_or_default());
        }
        if let Some(body) = self.body() {
            body.parts(row, see);
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn is_valid(&self, row: usize) -> bool {
        debug_assert!(row < self.rows, "row {row} of a block of {}", self.rows);
        self.validity.is_none_or(|v| v.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1))
    }

    /// Decodes one row and nothing else.
    #[inline]
    pub fn get(&self, row: usize) -> Result<Scalar<'a>> {
        if row >= self.rows {
            return Err(out_of_range());
        }
        match self.body() {
            Some(body) if self.is_valid(row) => body.get(row),
            _ => Ok(Scalar::Null),
        }
    }

    /// Prefetches the data of a row that [`Block::get`] reads.
    #[inline]
    pub fn touch(&self, row: usize) {
        if let Some(body) = self.body()
            && row < self.rows
        {
            std::hint::black_box(body.touch(row));
        }
    }

    /// Appends one row to a vector of the block's type.
    pub fn push_to(&self, row: usize, out: &mut VectorBuilder) -> Result<()> {
        match self.get(row)? {
            Scalar::Null => out.push_null(),
            Scalar::Bool(v) => out.push_bool(v),
            Scalar::I64(v) => out.push_i64(v),
            Scalar::I128(v) => out.push_i128(v),
            Scalar::F64(v) => out.push_f64(v),
            Scalar::Bytes(v) => {
                let is_text = !matches!(self.data_type, DataType::Binary { .. });
                if is_text && std::str::from_utf8(&v).is_err() {
                    return Err(corrupt("text is not UTF-8"));
                }
                out.push_bytes(&v);
            }
        }
        Ok(())
    }

    /// Compares one row with a value like [`Scalar::compare`], without copying the row's value.
    #[inline]
    pub fn compare(&self, row: usize, other: &Value) -> Result<Option<Ordering>> {
        let (bytes, body) = match (other, self.body()) {
            (Value::Text(text), Some(body)) if row < self.rows && self.is_valid(row) => {
                (text.as_bytes(), body)
            }
            _ => return Ok(self.get(row)?.compare(other)),
        };
        if self.data_type.physical() != PhysicalType::Bytes {
            return Ok(None);
        }
        body.order_to(row, bytes).map(Some)
    }

    /// Decodes a range of rows, in constant or dictionary form if the block has one.
    pub fn decode(&self, start: usize, len: usize) -> Result<Vector> {
        if start.checked_add(len).is_none_or(|end| end > self.rows) {
            return Err(out_of_range());
        }
        let validity = self.validity.and_then(|bytes| validity_range(bytes, start, len));
        let form = match self.body() {
            Some(body) if len > 0 => body.decode(start, len)?,
            _ => return Ok(self.without_body(len)),
        };
        self.vector(form, validity, len)
    }

    /// Decodes the rows at ascending positions, which may repeat.
    pub fn take(&self, rows: &[u32]) -> Result<Vector> {
        if !rows.is_sorted() || rows.last().is_some_and(|last| *last as usize >= self.rows) {
            return Err(out_of_range());
        }
        let form = match self.body() {
            Some(body) if !rows.is_empty() => body.take(rows)?,
            _ => return Ok(self.without_body(rows.len())),
        };
        let mut validity = None;
        if self.validity.is_some() && rows.iter().any(|row| !self.is_valid(*row as usize)) {
            let mut bits = Bitmap::default();
            rows.iter().for_each(|row| bits.push(self.is_valid(*row as usize)));
            validity = Some(bits);
        }
        self.vector(form, validity, rows.len())
    }

    /// Tests a range of rows against a predicate of the block's physical type, without decoding if
    /// the encoding supports it. Null rows never pass.
    pub fn filter(&self, predicate: &Predicate, start: usize, len: usize) -> Result<Bitmap> {
        if start.checked_add(len).is_none_or(|end| end > self.rows) {
            return Err(out_of_range());
        }
        debug_assert_eq!(
            predicate.physical(),
            self.data_type.physical(),
            "physical type of a filter and its block"
        );
        let body = match self.body() {
            Some(body) if len > 0 && !predicate.is_nothing() => body,
            _ => return Ok(Bitmap::filled(len, false)),
        };
        let mut out = Bitmap::default();
        if predicate.is_everything() {
            out = Bitmap::filled(len, true);
        } else {
            out.reserve(len);
            body.filter(predicate, start, len, &mut out)?;
        }
        debug_assert_eq!(out.len(), len, "bits of a filtered range");
        Ok(match self.validity.and_then(|bytes| validity_range(bytes, start, len)) {
            Some(validity) => out.and(&validity),
            None => out,
        })
    }

    /// Those of `rows`, whose first bit is row `start`, that are not null and pass a pattern;
    /// `None` if the encoding tests decoded text only.
    pub fn matches(
        &self,
        pattern: &Pattern,
        start: usize,
        rows: &Bitmap,
    ) -> Result<Option<Bitmap>> {
        if start.checked_add(rows.len()).is_none_or(|end| end > self.rows) {
            return Err(out_of_range());
        }
        debug_assert_eq!(self.data_type.physical(), PhysicalType::Bytes, "a pattern of text");
        let Some(body) = self.body() else {
            return Ok(Some(Bitmap::filled(rows.len(), false)));
        };
        let passed = match self.validity.and_then(|bits| validity_range(bits, start, rows.len())) {
            Some(validity) => body.matches(pattern, start, &rows.and(&validity))?,
            None => body.matches(pattern, start, rows)?,
        };
        debug_assert!(
            passed.as_ref().is_none_or(|passed| passed.and_not(rows).count_ones() == 0),
            "a pattern adds no rows"
        );
        Ok(passed)
    }

    /// The vector of a block without a body: all rows are null, or there are none.
    fn without_body(&self, len: usize) -> Vector {
        debug_assert!(len == 0 || self.opened.is_none(), "rows without a body");
        match self.opened {
            None => Vector::constant(self.data_type, &Value::Null, len),
            Some(_) => Vector::new(self.data_type, Values::empty(self.data_type.physical()), None),
        }
    }

    fn vector(&self, form: Form, validity: Option<Bitmap>, len: usize) -> Result<Vector> {
        if let Form::Flat(values) | Form::Constant(values) = &form {
            check_text(self.data_type, values)?;
        }
        Ok(Vector::from_form(self.data_type, form, validity, len))
    }
}

/// The validity of a range; `None` if it contains no null.
fn validity_range(bytes: &[u8], start: usize, len: usize) -> Option<Bitmap> {
    debug_assert!(start + len <= bytes.len() * 8, "validity of rows {start}+{len}");
    let (words, _) = bytes.as_chunks::<8>();
    let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
    let shift = start % 64;
    let shifted = (start / 64..).take(len.div_ceil(64)).map(|at| match shift {
        0 => word(at),
        _ => word(at) >> shift | word(at + 1) << (64 - shift),
    });
    Bitmap::from_words(shifted.collect(), len).filter(|bits| bits.count_ones() < len)
}

#[cold]
fn out_of_range() -> Error {
    corrupt("row outside its block")
}
