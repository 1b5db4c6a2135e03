//! Seekable encodings: how one block of at most [`BLOCK_ROWS`](nacre_types::limits::BLOCK_ROWS)
//! rows of one column becomes bytes, and how one row, some rows or a range come back.
//!
//! A block is an 8-byte header, a validity bitmap when some rows are null, and a body. Each
//! encoding owns one folder and describes its body there. Encoders write what decoders check:
//! bytes are untrusted, so every decoder answers `corrupt` instead of panicking, and allocates no
//! more than a small multiple of what the bytes and the row count justify. Checksums, zone maps
//! and files are not known here.

pub(crate) mod alp;
pub(crate) mod bitpacked;
pub(crate) mod constant;
pub(crate) mod delta;
pub(crate) mod dictionary;
pub(crate) mod fsst;
pub(crate) mod lz4;
pub(crate) mod plain;
pub(crate) mod run_length;

pub use dictionary::{Dictionary, MAX_DICTIONARY_VALUES};

use crate::kernel::{Predicate, filter_form};
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::{Error, Result};
use std::cmp::Ordering;

/// The encodings, as they are numbered in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Values side by side.
    Plain = 1,
    /// One value for all rows, or all rows null.
    Constant = 2,
    /// Integers as differences to a reference, in just enough bits.
    BitPacked = 3,
    /// Bit-packed codes into a sorted dictionary shared by the column's blocks.
    Dictionary = 4,
    /// Small compressed chunks of rows.
    Lz4 = 5,
    /// Equal neighbours as one value and where they end.
    RunLength = 6,
    /// Integers as differences to the row before, in just enough bits.
    Delta = 7,
    /// Text as codes of frequent short pieces.
    Fsst = 8,
    /// Doubles as the decimals they were written from.
    Alp = 9,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Encoding; 9] = [
        Encoding::Plain,
        Encoding::Constant,
        Encoding::BitPacked,
        Encoding::Dictionary,
        Encoding::Lz4,
        Encoding::RunLength,
        Encoding::Delta,
        Encoding::Fsst,
        Encoding::Alp,
    ];

    /// The encoding of a stored number.
    pub fn from_byte(byte: u8) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|e| *e as u8 == byte)
    }

    /// As inspection shows it.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Plain => "plain",
            Encoding::Constant => "constant",
            Encoding::BitPacked => "bitpacked",
            Encoding::Dictionary => "dictionary",
            Encoding::Lz4 => "lz4",
            Encoding::RunLength => "run_length",
            Encoding::Delta => "delta",
            Encoding::Fsst => "fsst",
            Encoding::Alp => "alp",
        }
    }
}

/// The part of a column that becomes one block. Values at null rows are ignored.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Values of (at least) the rows.
    pub values: &'a Values,
    /// Validity of the whole of `values`; `None` when nothing is null.
    pub validity: Option<&'a Bitmap>,
    /// First row.
    pub start: usize,
    /// Number of rows.
    pub len: usize,
}

impl Input<'_> {
    /// Whether the block's row is not null.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.is_none_or(|v| v.get(self.start + row))
    }

    /// Number of null rows.
    pub fn null_count(&self) -> usize {
        if self.validity.is_none() {
            0
        } else {
            (0..self.len).filter(|row| !self.is_valid(*row)).count()
        }
    }
}

/// What a decoder of a block's body answers. Rows are below the block's row count, ranges inside it.
pub(crate) trait Body<'a> {
    /// One row, decoding nothing else than it must.
    fn get(&self, row: usize) -> Result<Scalar<'a>>;
    /// Reads a byte of what [`Body::get`] will need of a row far from the body's head, so that memory brings it while the
    /// caller does something else. The byte means nothing.
    fn touch(&self, _row: usize) -> u8 {
        0
    }
    /// How one row orders to other bytes, if it is text or binary: what a search asks at each of its steps.
    fn order_to(&self, row: usize, other: &[u8]) -> Result<Ordering> {
        match self.get(row)? {
            Scalar::Bytes(bytes) => Ok((*bytes).cmp(other)),
            _ => Err(corrupt("text is not bytes")),
        }
    }
    /// A range of rows.
    fn decode(&self, start: usize, len: usize) -> Result<Form>;
    /// Some rows, ascending; a row may repeat.
    fn take(&self, rows: &[u32]) -> Result<Form>;
    /// Appends a bit for every row of a range: whether it passes. What a null row gets does not matter.
    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        filter_form(&self.decode(start, len)?, len, predicate, out);
        Ok(())
    }
}

#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    Error::corrupt(what)
}

/// `bytes[start..start + len]`, or `corrupt`.
#[inline]
pub(crate) fn slice<'a>(bytes: &'a [u8], start: usize, len: usize, what: &str) -> Result<&'a [u8]> {
    match bytes.get(start..).and_then(|rest| rest.get(..len)) {
        Some(slice) => Ok(slice),
        None => Err(corrupt(what)),
    }
}

#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize, what: &str) -> Result<[u8; N]> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
        Some(array) => Ok(*array),
        None => Err(corrupt(what)),
    }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize, what: &str) -> Result<usize> {
    Ok(u32::from_le_bytes(array_at(bytes, at, what)?) as usize)
}
