//! Dictionary: bit-packed codes into the sorted distinct values of a column in a segment.
//!
//! The dictionary is a block of its own: a block header of the plain encoding, then a plain body of
//! its values, strictly ascending. The body of a column block is a bit-packed body of codes (with
//! 8-byte references). A code is the position of its value, so codes order like values. Reading one
//! row takes its code and one entry. The first read of more than a few rows decodes the whole
//! dictionary, which all vectors of the segment then share.

mod build;
mod order;

#[cfg(test)]
pub(crate) use build::build;
pub(crate) use build::{Building, Built};
pub(super) use order::ascends;

use super::bitpacked::{self, BitPacked};
use super::plain::Plain;
use super::read::corrupt;
use super::scheme::{Body, Dictionary, Input, Offer, Scheme, See, Shared, Source};
use super::values::{check_text, open_values};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::{DataType, PhysicalType, Result, invariant, key};
use std::sync::Arc;

/// Maximum number of distinct values in a dictionary.
pub const MAX_DICTIONARY_VALUES: usize = 1 << 16;
/// While the dictionary is not decoded, rows are read entry by entry if it has more than this many
/// entries per row.
const ENTRIES_PER_ROW: usize = 16;

/// The body of a block of codes, with the dictionary of its column.
pub(crate) struct Coded<'a> {
    codes: BitPacked<'a>,
    dictionary: Dictionary<'a>,
    entries: Plain<'a>,
    data_type: DataType,
}

impl Coded<'_> {
    /// All values of the dictionary, ascending.
    fn values(&self) -> Result<Arc<Values>> {
        let Dictionary { count, decoded, .. } = self.dictionary;
        if let Some(values) = decoded.get() {
            debug_assert_eq!(values.len(), count, "decoded values of a dictionary");
            return Ok(values.clone());
        }
        let values = self.entries.values(0, count)?;
        check_text(self.data_type, &values)?;
        if !ascends(&values) {
            return Err(corrupt("dictionary is not sorted"));
        }
        Ok(decoded.get_or_init(|| Arc::new(values)).clone())
    }

    /// Checks that all codes are within the dictionary and returns them.
    fn checked(&self, codes: Vec<u32>) -> Result<Vec<u32>> {
        match codes.iter().fold(0, |max, code| max.max(*code)) {
            max if (max as usize) < self.dictionary.count => Ok(codes),
            _ => Err(corrupt("code outside the dictionary")),
        }
    }
}

impl<'a> Scheme<'a> for Coded<'a> {
    const NAME: &'static str = "dictionary";
    const OFFER: Offer = Offer::ByColumn;
    const SEEK_ONE_IN: usize = 4;
    const SHARES: bool = true;

    fn encode(input: Input<'_>, shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        let Shared::Codes(codes) = shared else { return false };
        invariant!(
            codes.len() == input.values.len(),
            "{} codes for {} values",
            codes.len(),
            input.values.len()
        );
        bitpacked::encode_integers(codes, input, out)
    }

    #[inline]
    fn open(source: Source<'a>) -> Result<Coded<'a>> {
        let Source { bytes, data_type, rows, .. } = source;
        let missing = || corrupt("coded block of a column without a dictionary");
        let dictionary = source.dictionary.ok_or_else(missing)?;
        if dictionary.count > MAX_DICTIONARY_VALUES {
            return Err(corrupt("dictionary has too many values"));
        }
        let entries = open_values(dictionary.bytes, source.physical, dictionary.count)?;
        let codes = BitPacked::read(bytes, PhysicalType::I64, rows)?;
        Ok(Coded { codes, dictionary, entries, data_type })
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        BitPacked::read(source.bytes, PhysicalType::I64, source.rows)?.head(see);
        Ok(true)
    }
}

impl<'a> Body<'a> for Coded<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        let code = self.codes.one::<u32>(row)? as usize;
        if code < self.dictionary.count {
            self.entries.get(code)
        } else {
            Err(corrupt("code outside the dictionary"))
        }
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        self.codes.parts(row, row, see);
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        let codes = self.checked(self.codes.range(start, len)?)?;
        Ok(Form::Dictionary { codes, values: self.values()? })
    }

    /// The dictionary is sorted, so a predicate on values is one on codes: a binary search finds
    /// each end of a range.
    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let values = self.values()?;
        let number_below = |at: usize, bound: i128| match &*values {
            Values::I64(v) => (v[at] as i128) < bound,
            Values::I128(v) => v[at] < bound,
            Values::F64(v) => (key::order_f64(v[at]) as i128) < bound,
            Values::Bool(v) => (v[at] as i128) < bound,
            Values::Bytes(_) => false,
        };
        let bytes_below =
            |at: usize, bound: &[u8]| matches!(&*values, Values::Bytes(v) if v.get(at) < bound);
        debug_assert_eq!(values.len(), self.dictionary.count, "decoded values of a dictionary");
        let codes = predicate.positions(values.len(), number_below, bytes_below);
        if codes.is_empty() {
            out.extend_run(false, len);
            return Ok(());
        }
        self.codes.filter_as::<u32>(&codes, start, len, out)
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let codes = self.checked(self.codes.some(rows)?)?;
        // Repeated codes may take more bytes than all entries together; `pick` refuses that, and
        // the whole dictionary is decoded instead.
        if self.dictionary.decoded.get().is_none()
            && codes.len().saturating_mul(ENTRIES_PER_ROW) < self.dictionary.count
            && let Ok(values) = self.entries.pick(&codes)
        {
            return Ok(Form::Flat(values));
        }
        Ok(Form::Dictionary { codes, values: self.values()? })
    }
}
