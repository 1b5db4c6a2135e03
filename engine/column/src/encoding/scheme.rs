//! What an encoding provides: [`Scheme`] writes a body and opens one, [`Body`] reads an opened one.
//! The list in the parent module names the encodings; everything else goes through these traits.

use super::read::corrupt;
use crate::kernel::{Predicate, filter_form};
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::{DataType, PhysicalType, Result, invariant};
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

/// The rows of a column that become one block. Values at null rows are ignored.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(super) values: &'a Values,
    /// Of all of `values`, not of the range only.
    pub(super) validity: Option<&'a Bitmap>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl<'a> Input<'a> {
    /// All rows of `values`. `validity` has one bit for each; `None` when no row is null.
    pub fn new(values: &'a Values, validity: Option<&'a Bitmap>) -> Input<'a> {
        let (len, bits) = (values.len(), validity.map(Bitmap::len));
        invariant!(bits.is_none_or(|bits| bits == len), "{bits:?} validity bits for {len} rows");
        Input { values, validity, start: 0, len }
    }

    /// The one row `row` of the input, as an input of its own. It is not null.
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

    /// The same rows without validity, when none of them is null.
    pub(crate) fn without_validity(self) -> Input<'a> {
        debug_assert_eq!(self.null_count(), 0, "null rows in an input that drops its validity");
        Input { validity: None, ..self }
    }
}

/// The dictionary of a column, as its pages hold it.
#[derive(Clone, Copy)]
pub struct Dictionary<'a> {
    /// The block of its values.
    pub bytes: &'a [u8],
    /// Number of its values.
    pub count: usize,
    /// Keeps the decoded values for as long as the bytes are kept.
    pub decoded: &'a OnceLock<Arc<Values>>,
}

/// The stored form of a body, with what the directory says of it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The body, and whatever bytes follow it in the block.
    pub bytes: &'a [u8],
    pub data_type: DataType,
    pub physical: PhysicalType,
    pub rows: usize,
    pub dictionary: Option<Dictionary<'a>>,
}

/// When a block is offered to an encoding. The encodings of one kind are asked in the order of the
/// list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Before all others: the encoding is used for every block that it can hold.
    First,
    /// When the plan of the column names it.
    ByColumn,
    /// In place of plain values.
    InsteadOfPlain,
    /// In place of whatever holds the block so far.
    InsteadOfAny,
    /// When nothing else holds the block. Holds every block.
    Last,
}

/// An encoding. The type is that of its opened bodies.
pub(crate) trait Scheme<'a>: Body<'a> + Sized {
    /// As reports show it.
    const NAME: &'static str;
    /// When a block is offered to it.
    const OFFER: Offer;

    /// Whether a block is worth encoding to see how long it gets, given that `rival` bytes hold it
    /// already. Called for [`Offer::InsteadOfPlain`] and [`Offer::InsteadOfAny`].
    fn suits(_input: Input<'_>, _rival: usize) -> bool {
        true
    }

    /// Whether a block of `bytes` in this encoding is small enough to make up for what reading it
    /// costs beside one of `rival` bytes.
    fn pays(bytes: usize, rival: usize) -> bool {
        bytes * 4 < rival * 3
    }

    /// Appends the body. Returns whether the encoding can hold the values; if not, what it has
    /// appended means nothing. `codes` has a code for each of `input.values()` and is there for
    /// encodings that use a dictionary.
    fn encode(input: Input<'_>, codes: Option<&[u32]>, out: &mut Vec<u8>) -> bool;

    /// Reads the head of a body, and no more: a point read opens a block for every value.
    fn open(source: Source<'a>) -> Result<Self>;
}

/// An opened body. Rows are below the block's row count, ranges inside it.
pub(crate) trait Body<'a> {
    /// Decodes one row, and nothing that it does not need.
    fn get(&self, row: usize) -> Result<Scalar<'a>>;

    /// Reads a byte that [`Body::get`] will need for a row, so that it is in the processor's cache
    /// by then. The byte itself means nothing.
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

    /// Decodes some rows, in ascending order; a row may repeat.
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
}
