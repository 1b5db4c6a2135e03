//! Dictionary: bit-packed codes into the sorted distinct values of a column in a segment.
//!
//! The dictionary is a block of its own: a block header of kind plain, then a plain body of its
//! values, strictly ascending. The body of a column block is a bit-packed body of codes (with
//! 8-byte references). A code is the position of its value, so the order of codes is the order of
//! values. One row costs its code and one entry; the dictionary is decoded whole only once somebody
//! asks for more than a few rows, and is then shared by every vector of the segment.

use super::bitpacked::BitPacked;
use super::plain::Plain;
use super::{Body, corrupt};
use crate::block::{check_text, open_values};
use crate::kernel::Predicate;
use crate::{Bitmap, BytesColumn, Form, Scalar, Values};
use nacre_types::hash::Map;
use nacre_types::{DataType, PhysicalType, Result, key};
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

/// Distinct values of a dictionary at most.
pub const MAX_DICTIONARY_VALUES: usize = 1 << 16;
/// A few rows are taken by entry while the dictionary has not been decoded, when it has more than
/// this many entries a row.
const ENTRIES_A_ROW: usize = 16;

/// A dictionary under construction: the sorted values, and the codes of every block.
pub(crate) struct Built {
    pub values: Values,
    pub codes: Vec<Vec<u32>>,
}

/// Builds the dictionary of a column, unless it has too many distinct values or values whose order
/// is not their identity (NaN, negative zero). Null rows get code 0.
pub(crate) fn build(blocks: &[(Values, Option<Bitmap>)], max_values: usize) -> Option<Built> {
    let (first, _) = blocks.first()?;
    match first.physical() {
        PhysicalType::Bool => None,
        PhysicalType::I64 => build_as(
            blocks,
            max_values,
            |values, row| if let Values::I64(v) = values { Some(v[row]) } else { None },
            Values::I64,
        ),
        PhysicalType::I128 => build_as(
            blocks,
            max_values,
            |values, row| if let Values::I128(v) = values { Some(v[row]) } else { None },
            Values::I128,
        ),
        PhysicalType::F64 => build_as(
            blocks,
            max_values,
            |values, row| match values {
                Values::F64(v) if !v[row].is_nan() && v[row].to_bits() != (-0.0f64).to_bits() => {
                    Some(key::order_f64(v[row]))
                }
                _ => None,
            },
            |ordered| Values::F64(ordered.into_iter().map(from_order).collect()),
        ),
        PhysicalType::Bytes => build_as(
            blocks,
            max_values,
            |values, row| if let Values::Bytes(v) = values { Some(v.get(row)) } else { None },
            |values| {
                let mut column = BytesColumn::default();
                values.into_iter().for_each(|v| column.push(v));
                Values::Bytes(column)
            },
        ),
    }
}

/// The inverse of [`key::order_f64`] for everything a dictionary of floats holds.
fn from_order(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

fn build_as<'a, K: Hash + Ord + Copy>(
    blocks: &'a [(Values, Option<Bitmap>)],
    max_values: usize,
    at: impl Fn(&'a Values, usize) -> Option<K>,
    finish: impl Fn(Vec<K>) -> Values,
) -> Option<Built> {
    let mut numbers: Map<K, u32> = Map::default();
    let mut codes = Vec::with_capacity(blocks.len());
    for (values, validity) in blocks {
        let mut block = Vec::with_capacity(values.len());
        let mut previous: Option<(K, u32)> = None;
        for row in 0..values.len() {
            if validity.as_ref().is_some_and(|v| !v.get(row)) {
                block.push(0);
                continue;
            }
            let value = at(values, row)?;
            let number = match previous {
                Some((same, number)) if same == value => number,
                _ => {
                    let next = numbers.len() as u32;
                    *numbers.entry(value).or_insert(next)
                }
            };
            previous = Some((value, number));
            block.push(number);
        }
        if numbers.len() > max_values {
            return None;
        }
        codes.push(block);
    }
    if numbers.is_empty() {
        return None;
    }
    // Numbers in order of appearance become codes in order of value.
    let mut sorted: Vec<(K, u32)> = numbers.into_iter().collect();
    sorted.sort_unstable_by_key(|(value, _)| *value);
    let mut code_of = vec![0u32; sorted.len()];
    for (code, (_, number)) in sorted.iter().enumerate() {
        code_of[*number as usize] = code as u32;
    }
    codes.iter_mut().flatten().for_each(|code| *code = code_of[*code as usize]);
    Some(Built { values: finish(sorted.into_iter().map(|(value, _)| value).collect()), codes })
}

/// The dictionary of a column, opened.
pub struct Dictionary<'a> {
    entries: Plain<'a>,
    count: usize,
    data_type: DataType,
    decoded: &'a OnceLock<Arc<Values>>,
}

impl<'a> Dictionary<'a> {
    /// Reads the head of a dictionary block of `count` values. `decoded` keeps the decoded values
    /// as long as the caller keeps the bytes.
    pub fn open(
        bytes: &'a [u8],
        data_type: DataType,
        count: usize,
        decoded: &'a OnceLock<Arc<Values>>,
    ) -> Result<Dictionary<'a>> {
        if count > MAX_DICTIONARY_VALUES {
            return Err(corrupt("dictionary has too many values"));
        }
        let entries = open_values(bytes, data_type.physical(), count)?;
        Ok(Dictionary { entries, count, data_type, decoded })
    }

    /// All values, ascending.
    pub fn values(&self) -> Result<Arc<Values>> {
        if let Some(values) = self.decoded.get() {
            return Ok(values.clone());
        }
        let values = self.entries.values(0, self.count)?;
        check_text(self.data_type, &values)?;
        if !ascends(&values) {
            return Err(corrupt("dictionary is not sorted"));
        }
        Ok(self.decoded.get_or_init(|| Arc::new(values)).clone())
    }
}

fn ascends(values: &Values) -> bool {
    match values {
        Values::Bool(v) => v.is_sorted_by(|a, b| a < b),
        Values::I64(v) => v.is_sorted_by(|a, b| a < b),
        Values::I128(v) => v.is_sorted_by(|a, b| a < b),
        Values::F64(v) => v.is_sorted_by(|a, b| key::order_f64(*a) < key::order_f64(*b)),
        Values::Bytes(v) => (1..v.len()).all(|row| v.get(row - 1) < v.get(row)),
    }
}

/// The body of a block of codes.
pub(crate) struct Coded<'a> {
    codes: BitPacked<'a>,
    dictionary: Dictionary<'a>,
}

impl<'a> Coded<'a> {
    pub(crate) fn open(
        bytes: &'a [u8],
        rows: usize,
        dictionary: Dictionary<'a>,
    ) -> Result<Coded<'a>> {
        Ok(Coded { codes: BitPacked::open(bytes, PhysicalType::I64, rows)?, dictionary })
    }

    fn checked(&self, codes: Vec<u32>) -> Result<Vec<u32>> {
        match codes.iter().fold(0, |max, code| max.max(*code)) {
            max if (max as usize) < self.dictionary.count => Ok(codes),
            _ => Err(corrupt("code outside the dictionary")),
        }
    }
}

impl<'a> Body<'a> for Coded<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        let code = self.codes.one::<u32>(row)? as usize;
        if code < self.dictionary.count {
            self.dictionary.entries.get(code)
        } else {
            Err(corrupt("code outside the dictionary"))
        }
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        let codes = self.checked(self.codes.range(start, len)?)?;
        Ok(Form::Dictionary { codes, values: self.dictionary.values()? })
    }

    /// The dictionary is sorted, so a predicate on values is one on codes: each end of a range is searched.
    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let values = self.dictionary.values()?;
        let number_below = |at: usize, bound: i128| match &*values {
            Values::I64(v) => (v[at] as i128) < bound,
            Values::I128(v) => v[at] < bound,
            Values::F64(v) => (key::order_f64(v[at]) as i128) < bound,
            Values::Bool(v) => (v[at] as i128) < bound,
            Values::Bytes(_) => false,
        };
        let bytes_below =
            |at: usize, bound: &[u8]| matches!(&*values, Values::Bytes(v) if v.get(at) < bound);
        let codes = predicate.positions(self.dictionary.count, number_below, bytes_below);
        if codes.is_empty() {
            out.extend_run(false, len);
            return Ok(());
        }
        self.codes.filter_as::<u32>(&codes, start, len, out)
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let codes = self.checked(self.codes.some(rows)?)?;
        // Repeated codes may ask for more bytes than there are entries: then decode after all.
        if self.dictionary.decoded.get().is_none()
            && codes.len().saturating_mul(ENTRIES_A_ROW) < self.dictionary.count
            && let Ok(values) = self.dictionary.entries.pick(&codes)
        {
            return Ok(Form::Flat(values));
        }
        Ok(Form::Dictionary { codes, values: self.dictionary.values()? })
    }
}
