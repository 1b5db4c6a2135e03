//! Constant: one value for every row that is not null.
//!
//! Body: the value, as a plain body of one row. A block of nulls only has no body and is known by
//! its header; this encoding never sees it.

use super::plain::{self, Plain};
use super::{Body, Input};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::{PhysicalType, Result};

/// Appends the body, if all rows that are not null hold the same value and there is one.
pub fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Some(first) = (0..input.len).find(|row| input.is_valid(*row)) else { return false };
    let at = input.start + first;
    let others =
        (first + 1..input.len).filter(|row| input.is_valid(*row)).map(|row| input.start + row);
    let same = match input.values {
        Values::Bool(v) => others.into_iter().all(|row| v[row] == v[at]),
        Values::I64(v) => others.into_iter().all(|row| v[row] == v[at]),
        Values::I128(v) => others.into_iter().all(|row| v[row] == v[at]),
        // By bits: zeroes of both signs, and NaNs, must come back as they were.
        Values::F64(v) => others.into_iter().all(|row| v[row].to_bits() == v[at].to_bits()),
        Values::Bytes(v) => others.into_iter().all(|row| v.get(row) == v.get(at)),
    };
    if same {
        plain::encode(Input { start: at, len: 1, validity: None, ..input }, out);
    }
    same
}

/// A constant body.
pub struct Constant<'a>(Plain<'a>);

impl<'a> Constant<'a> {
    /// Reads the head of a body.
    pub fn open(bytes: &'a [u8], physical: PhysicalType) -> Result<Constant<'a>> {
        Ok(Constant(Plain::open(bytes, physical, 1)?))
    }
}

impl<'a> Body<'a> for Constant<'a> {
    fn get(&self, _: usize) -> Result<Scalar<'a>> {
        self.0.get(0)
    }

    fn decode(&self, _: usize, _: usize) -> Result<Form> {
        Ok(Form::Constant(self.0.values(0, 1)?))
    }

    fn take(&self, _: &[u32]) -> Result<Form> {
        self.decode(0, 0)
    }

    fn filter(&self, predicate: &Predicate, _: usize, len: usize, out: &mut Bitmap) -> Result<()> {
        out.extend_run(predicate.accepts(&self.0.get(0)?), len);
        Ok(())
    }
}
