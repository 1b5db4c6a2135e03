//! A block as a whole: header, validity, and the body of one of the encodings.
//!
//! Header, 8 bytes: encoding (`u8`), flags (`u8`: 1 = a validity bitmap follows, 2 = every row is
//! null, there is nothing else), two zero bytes, number of rows (`u32`). The validity bitmap is one
//! bit a row, 1 = not null, in 64-bit little-endian words.

use crate::encoding::alp::{self, Alp};
use crate::encoding::bitpacked::{self, BitPacked};
use crate::encoding::constant::{self, Constant};
use crate::encoding::delta::{self, Delta};
use crate::encoding::dictionary::{Coded, Dictionary};
use crate::encoding::fsst::{self, Fsst};
use crate::encoding::lz4::{self, Lz4};
use crate::encoding::plain::{self, Plain};
use crate::encoding::run_length::{self, RunLength};
use crate::encoding::{Body, Encoding, Input, array_at, corrupt, slice};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values, Vector, VectorBuilder};
use nacre_types::bytes::Write;
use nacre_types::{DataType, Error, PhysicalType, Result, Value};
use std::cmp::Ordering;

const HEADER_BYTES: usize = 8;
const HAS_VALIDITY: u8 = 1;
const ALL_NULL: u8 = 2;

/// Encodes a block, if the encoding can hold it. `codes` of all rows of `input.values` are needed
/// for, and only for, [`Encoding::Dictionary`].
pub fn encode(encoding: Encoding, input: Input<'_>, codes: Option<&[u32]>) -> Option<Vec<u8>> {
    let nulls = input.null_count();
    if nulls == input.len && nulls > 0 {
        return (encoding == Encoding::Constant).then(|| header(encoding, ALL_NULL, input.len));
    }
    let input = Input { validity: input.validity.filter(|_| nulls > 0), ..input };
    let mut out = header(encoding, if nulls > 0 { HAS_VALIDITY } else { 0 }, input.len);
    if nulls > 0 {
        for at in (0..input.len).step_by(64) {
            let rows = at..input.len.min(at + 64);
            out.put_u64(
                rows.fold(0, |word, row| word | (input.is_valid(row) as u64) << (row - at)),
            );
        }
    }
    let done = match encoding {
        Encoding::Plain => {
            plain::encode(input, &mut out);
            true
        }
        Encoding::Constant => constant::encode(input, &mut out),
        Encoding::BitPacked => bitpacked::encode(input, &mut out),
        Encoding::Dictionary => {
            codes.is_some_and(|codes| bitpacked::encode_integers(codes, input, &mut out))
        }
        Encoding::Lz4 => lz4::encode(input, &mut out),
        Encoding::RunLength => run_length::encode(input, &mut out),
        Encoding::Delta => delta::encode(input, &mut out),
        Encoding::Fsst => fsst::encode(input, &mut out),
        Encoding::Alp => alp::encode(input, &mut out),
    };
    done.then_some(out)
}

fn header(encoding: Encoding, flags: u8, rows: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&[encoding as u8, flags, 0, 0]);
    out.put_u32(rows as u32);
    out
}

/// Encodes any number of values, none of them null, as a header and a plain body: dictionaries, and
/// lists of values outside blocks.
pub fn encode_values(values: &Values) -> Vec<u8> {
    let mut out = header(Encoding::Plain, 0, values.len());
    plain::encode(Input { values, validity: None, start: 0, len: values.len() }, &mut out);
    out
}

/// Reads back what [`encode_values`] made of `count` values. The caller has reason to believe in so many: values of no
/// bytes take no room.
pub fn decode_values(bytes: &[u8], data_type: DataType, count: usize) -> Result<Values> {
    let values = open_values(bytes, data_type.physical(), count)?.values(0, count)?;
    check_text(data_type, &values)?;
    Ok(values)
}

/// Reads the head of what [`encode_values`] made.
pub(crate) fn open_values(
    bytes: &[u8],
    physical: PhysicalType,
    entries: usize,
) -> Result<Plain<'_>> {
    match open_header(bytes, Encoding::Plain, entries)? {
        0 => Plain::open(&bytes[HEADER_BYTES..], physical, entries),
        _ => Err(corrupt("values outside a block cannot be null")),
    }
}

fn open_header(bytes: &[u8], encoding: Encoding, rows: usize) -> Result<u8> {
    let [kind, flags, 0, 0, r0, r1, r2, r3] =
        array_at::<HEADER_BYTES>(bytes, 0, "block header ends early")?
    else {
        return Err(corrupt("block header has bits that mean nothing"));
    };
    if kind != encoding as u8 || u32::from_le_bytes([r0, r1, r2, r3]) as usize != rows {
        return Err(corrupt("block header disagrees with the directory"));
    }
    Ok(flags)
}

enum AnyBody<'a> {
    Nulls,
    Plain(Plain<'a>),
    Constant(Constant<'a>),
    BitPacked(BitPacked<'a>),
    Coded(Coded<'a>),
    Lz4(Lz4<'a>),
    RunLength(RunLength<'a>),
    Delta(Delta<'a>),
    Fsst(Fsst<'a>),
    Alp(Alp<'a>),
}

impl<'a> AnyBody<'a> {
    // Not a trait object: a point read opens a block for every value and must not allocate.
    #[inline]
    fn as_body(&self) -> Option<&dyn Body<'a>> {
        Some(match self {
            AnyBody::Nulls => return None,
            AnyBody::Plain(body) => body,
            AnyBody::Constant(body) => body,
            AnyBody::BitPacked(body) => body,
            AnyBody::Coded(body) => body,
            AnyBody::Lz4(body) => body,
            AnyBody::RunLength(body) => body,
            AnyBody::Delta(body) => body,
            AnyBody::Fsst(body) => body,
            AnyBody::Alp(body) => body,
        })
    }
}

/// One block, opened: cheap enough to do for every access.
pub struct Block<'a> {
    data_type: DataType,
    rows: usize,
    validity: Option<&'a [u8]>,
    body: AnyBody<'a>,
}

impl<'a> Block<'a> {
    /// Reads the head of a block of `rows` rows. `dictionary` is needed for [`Encoding::Dictionary`].
    #[inline]
    pub fn open(
        bytes: &'a [u8],
        data_type: DataType,
        encoding: Encoding,
        rows: usize,
        dictionary: Option<Dictionary<'a>>,
    ) -> Result<Block<'a>> {
        let flags = open_header(bytes, encoding, rows)?;
        let physical = data_type.physical();
        let mut at = HEADER_BYTES;
        let mut validity = None;
        let body = match (flags, encoding) {
            (ALL_NULL, Encoding::Constant) => {
                return Ok(Block { data_type, rows, validity, body: AnyBody::Nulls });
            }
            (0, _) => &bytes[at..],
            (HAS_VALIDITY, _) => {
                let words = slice(bytes, at, rows.div_ceil(64) * 8, "validity ends early")?;
                at += words.len();
                validity = Some(words);
                &bytes[at..]
            }
            _ => return Err(corrupt("unknown block flags")),
        };
        let body = match encoding {
            Encoding::Plain => AnyBody::Plain(Plain::open(body, physical, rows)?),
            Encoding::Constant => AnyBody::Constant(Constant::open(body, physical)?),
            Encoding::BitPacked => AnyBody::BitPacked(BitPacked::open(body, physical, rows)?),
            Encoding::Dictionary => {
                let dictionary = dictionary
                    .ok_or_else(|| corrupt("block needs a dictionary and there is none"))?;
                AnyBody::Coded(Coded::open(body, rows, dictionary)?)
            }
            Encoding::Lz4 => AnyBody::Lz4(Lz4::open(body, physical, rows)?),
            Encoding::RunLength => AnyBody::RunLength(RunLength::open(body, physical, rows)?),
            Encoding::Delta => AnyBody::Delta(Delta::open(body, physical, rows)?),
            Encoding::Fsst => AnyBody::Fsst(Fsst::open(body, physical, rows)?),
            Encoding::Alp => AnyBody::Alp(Alp::open(body, physical, rows)?),
        };
        Ok(Block { data_type, rows, validity, body })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn is_valid(&self, row: usize) -> bool {
        self.validity.is_none_or(|v| v.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1))
    }

    /// One row, decoding nothing else than it must.
    #[inline]
    pub fn get(&self, row: usize) -> Result<Scalar<'a>> {
        if row >= self.rows {
            return Err(out_of_range());
        }
        match self.body.as_body() {
            Some(body) if self.is_valid(row) => body.get(row),
            _ => Ok(Scalar::Null),
        }
    }

    /// Makes memory bring what [`Block::get`] will read of a row, in the time until then.
    #[inline]
    pub fn touch(&self, row: usize) {
        if let Some(body) = self.body.as_body()
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

    /// How one row orders to a value, as [`Scalar::compare`] says, without making the row's value.
    #[inline]
    pub fn compare(&self, row: usize, other: &Value) -> Result<Option<Ordering>> {
        let (bytes, body) = match (other, self.body.as_body()) {
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

    /// A range of rows: constant or dictionary form where the block is so.
    pub fn decode(&self, start: usize, len: usize) -> Result<Vector> {
        if start.checked_add(len).is_none_or(|end| end > self.rows) {
            return Err(out_of_range());
        }
        let validity = self.validity.and_then(|bytes| validity_range(bytes, start, len));
        let form = match self.body.as_body() {
            Some(body) if len > 0 => body.decode(start, len)?,
            _ => return Ok(self.nothing(len)),
        };
        self.vector(form, validity, len)
    }

    /// Some rows, which must ascend; a row may repeat.
    pub fn take(&self, rows: &[u32]) -> Result<Vector> {
        if !rows.is_sorted() || rows.last().is_some_and(|last| *last as usize >= self.rows) {
            return Err(out_of_range());
        }
        let form = match self.body.as_body() {
            Some(body) if !rows.is_empty() => body.take(rows)?,
            _ => return Ok(self.nothing(rows.len())),
        };
        let mut validity = None;
        if self.validity.is_some() && rows.iter().any(|row| !self.is_valid(*row as usize)) {
            let mut bits = Bitmap::default();
            rows.iter().for_each(|row| bits.push(self.is_valid(*row as usize)));
            validity = Some(bits);
        }
        self.vector(form, validity, rows.len())
    }

    /// Which rows of a range pass a predicate of the block's physical type, without decoding where the
    /// encoding can do without. Nulls never pass.
    pub fn filter(&self, predicate: &Predicate, start: usize, len: usize) -> Result<Bitmap> {
        if start.checked_add(len).is_none_or(|end| end > self.rows) {
            return Err(out_of_range());
        }
        debug_assert_eq!(predicate.physical(), self.data_type.physical());
        let body = match self.body.as_body() {
            Some(body) if len > 0 && !predicate.is_nothing() => body,
            _ => return Ok(Bitmap::filled(len, false)),
        };
        let mut out = Bitmap::default();
        out.reserve(len);
        body.filter(predicate, start, len, &mut out)?;
        debug_assert_eq!(out.len(), len);
        Ok(match self.validity.and_then(|bytes| validity_range(bytes, start, len)) {
            Some(validity) => out.and(&validity),
            None => out,
        })
    }

    /// What a block of nulls answers, and what any block answers when nothing is asked.
    fn nothing(&self, len: usize) -> Vector {
        match self.body {
            AnyBody::Nulls => Vector::constant(self.data_type, &Value::Null, len),
            _ => Vector::new(self.data_type, Values::empty(self.data_type.physical()), None),
        }
    }

    fn vector(&self, form: Form, validity: Option<Bitmap>, len: usize) -> Result<Vector> {
        if let Form::Flat(values) | Form::Constant(values) = &form {
            check_text(self.data_type, values)?;
        }
        Ok(Vector::from_form(self.data_type, form, validity, len))
    }
}

/// Text must be UTF-8: nobody behind a vector checks it again.
pub(crate) fn check_text(data_type: DataType, values: &Values) -> Result<()> {
    let Values::Bytes(column) = values else { return Ok(()) };
    if matches!(data_type, DataType::Binary { .. }) || column.data.is_ascii() {
        return Ok(());
    }
    match (0..column.len()).all(|row| std::str::from_utf8(column.get(row)).is_ok()) {
        true => Ok(()),
        false => Err(corrupt("text is not UTF-8")),
    }
}

/// The bits of a range, or `None` when all are set.
fn validity_range(bytes: &[u8], start: usize, len: usize) -> Option<Bitmap> {
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
