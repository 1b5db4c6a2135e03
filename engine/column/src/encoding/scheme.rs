//! The interface of an encoding: [`Scheme`] writes a body and opens one, [`Body`] reads an opened
//! one. The list in the parent module names the encodings; all other code uses these traits.

use super::onpair::tokens::TokenSet;
use super::read::corrupt;
use crate::kernel::{Pattern, Predicate, filter_form};
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::{DataType, PhysicalType, Result, invariant};
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// The rows of a column that form one block. Values at null rows are ignored.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(super) values: &'a Values,
    /// Covers all of `values`, not only the range.
    pub(super) validity: Option<&'a Bitmap>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl<'a> Input<'a> {
    /// All rows of `values`. `validity` has one bit per row; `None` if there are no nulls.
    pub fn new(values: &'a Values, validity: Option<&'a Bitmap>) -> Input<'a> {
        let (len, bits) = (values.len(), validity.map(Bitmap::len));
        invariant!(bits.is_none_or(|bits| bits == len), "{bits:?} validity bits for {len} rows");
        Input { values, validity, start: 0, len }
    }

    /// Row `row` of the input as an input of its own. It is not null.
    pub(super) fn one(self, row: usize) -> Input<'a> {
        debug_assert!(row < self.len && self.is_valid(row), "row {row} of {} is a value", self.len);
        Input { validity: None, start: self.start + row, len: 1, ..self }
    }

    /// The values.
    pub fn values(&self) -> &'a Values {
        self.values
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a row is not null.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        debug_assert!(row < self.len, "row {row} of an input of {}", self.len);
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

    /// The same rows without validity if none is null.
    pub(crate) fn without_validity(self) -> Input<'a> {
        debug_assert_eq!(self.null_count(), 0, "null rows in an input that drops its validity");
        Input { validity: None, ..self }
    }
}

/// What the blocks of a column share, for the encoding of one of them.
#[derive(Clone, Copy)]
pub enum Shared<'a> {
    /// Nothing: the block can be read alone.
    Nothing,
    /// A dictionary of values. It has a code for each value of the block.
    Codes(&'a [u32]),
    /// A dictionary of tokens.
    Tokens(&'a TokenSet),
}

/// The dictionary of a column, as stored in its pages.
#[derive(Clone, Copy)]
pub struct Dictionary<'a> {
    /// The encoded block of its values, or of its tokens.
    pub bytes: &'a [u8],
    /// Number of values.
    pub count: usize,
    /// Caches the decoded values for the lifetime of the bytes.
    pub decoded: &'a OnceLock<Arc<Values>>,
}

/// The stored form of a body, with its description from the directory.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The body, and any bytes that follow it in the block.
    pub bytes: &'a [u8],
    pub data_type: DataType,
    pub physical: PhysicalType,
    pub rows: usize,
    pub dictionary: Option<Dictionary<'a>>,
}

/// When a block is offered to an encoding. Encodings of one kind are asked in list order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Before all others: the encoding is used for every block that it can hold.
    First,
    /// If the plan of the column names it.
    ByColumn,
    /// As an alternative to plain values.
    InsteadOfPlain,
    /// As an alternative to any encoding chosen so far.
    InsteadOfAny,
    /// If no other encoding holds the block. Holds every block.
    Last,
}

/// Receives slices of a block.
pub(crate) type See<'s, 'a> = &'s mut dyn FnMut(&'a [u8]);

/// An encoding. `Self` is the type of its opened bodies.
pub(crate) trait Scheme<'a>: Body<'a> + Sized {
    /// Name in reports.
    const NAME: &'static str;
    /// When a block is offered to it.
    const OFFER: Offer;
    /// Fetching rows one by one is faster than decoding a vector and picking them if at most one
    /// row in this many is wanted (`npm run bench -- take`).
    const SEEK_ONE_IN: usize = 16;
    /// Whether reading a block takes the dictionary of its column.
    const SHARES: bool = false;

    /// Whether it is worth encoding a block to measure its size, given that `rival` bytes hold it
    /// already. Called for [`Offer::InsteadOfPlain`] and [`Offer::InsteadOfAny`].
    fn suits(_input: Input<'_>, _rival: usize) -> bool {
        true
    }

    /// Whether `bytes` in this encoding are few enough, compared to `rival`, to justify its cost of
    /// reading.
    fn pays(bytes: usize, rival: usize) -> bool {
        bytes * 4 < rival * 3
    }

    /// Appends the body. Returns `false` if the encoding cannot hold the values; the appended bytes
    /// are then meaningless. `shared` is what the encoding shares between the blocks of a column.
    fn encode(input: Input<'_>, shared: Shared<'_>, out: &mut Vec<u8>) -> bool;

    /// Reads the head of a body and nothing more: a point read opens a block for every value.
    fn open(source: Source<'a>) -> Result<Self>;

    /// Passes the slices of a body that [`Scheme::open`] and [`Body::parts`] read for any row. The
    /// dictionary may be missing. Returns whether rows are read by parts at all.
    fn head(_source: Source<'a>, _see: See<'_, 'a>) -> Result<bool> {
        Ok(false)
    }
}

/// An opened body. Callers pass rows below the block's row count and ranges within it.
pub(crate) trait Body<'a> {
    /// Decodes one row and nothing else.
    fn get(&self, row: usize) -> Result<Scalar<'a>>;

    /// Passes the slices that [`Body::get`] reads for a row besides the head, as far as their place
    /// is known. Bytes that were not read yet are zero, so the place of a slice may depend on one
    /// that is passed first: callers read what is passed and call again, until nothing is new.
    fn parts(&self, _row: usize, _see: See<'_, 'a>) {}

    /// Reads a byte that [`Body::get`] will need for a row, which brings it into the processor's
    /// cache. The byte itself is meaningless.
    fn touch(&self, _row: usize) -> u8 {
        0
    }

    /// Compares a row of text or binary with other bytes: one step of a binary search.
    fn order_to(&self, row: usize, other: &[u8]) -> Result<Ordering> {
        match self.get(row)? {
            Scalar::Bytes(bytes) => Ok((*bytes).cmp(other)),
            _ => Err(corrupt("text is not bytes")),
        }
    }

    /// Decodes a range of rows.
    fn decode(&self, start: usize, len: usize) -> Result<Form>;

    /// Decodes the rows at ascending positions, which may repeat.
    fn take(&self, rows: &[u32]) -> Result<Form>;

    /// Appends a bit for every row of a range: whether it passes. The bit of a null row is ignored.
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

    /// Those of `rows`, whose first bit is row `start`, that pass a pattern; `None` if decoding
    /// them is as good.
    fn matches(&self, _pattern: &Pattern, _start: usize, _rows: &Bitmap) -> Result<Option<Bitmap>> {
        Ok(None)
    }
}
