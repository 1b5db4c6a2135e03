//! Constant: one value for all non-null rows.
//!
//! Body: the value, as a plain body of one row. A block with only nulls has no body: its header
//! says so, and this encoding never handles it.

use super::plain::{self, Plain};
use super::scheme::{Body, Input, Offer, Scheme, Shared, Source};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::Result;

/// Appends the body if all non-null rows hold the same value and there is at least one.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Some(first) = (0..input.len).find(|row| input.is_valid(*row)) else { return false };
    let at = input.start + first;
    let others =
        (first + 1..input.len).filter(|row| input.is_valid(*row)).map(|row| input.start + row);
    let same = match input.values {
        Values::Bool(v) => others.into_iter().all(|row| v[row] == v[at]),
        Values::I64(v) => others.into_iter().all(|row| v[row] == v[at]),
        Values::I128(v) => others.into_iter().all(|row| v[row] == v[at]),
        // By bits: both zeroes and every NaN must round-trip.
        Values::F64(v) => others.into_iter().all(|row| v[row].to_bits() == v[at].to_bits()),
        Values::Bytes(v) => others.into_iter().all(|row| v.get(row) == v.get(at)),
    };
    if same {
        plain::encode(input.one(first), out);
    }
    same
}

/// A constant body.
pub(crate) struct Constant<'a>(Plain<'a>);

impl<'a> Scheme<'a> for Constant<'a> {
    const NAME: &'static str = "constant";
    const OFFER: Offer = Offer::First;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    #[inline]
    fn open(source: Source<'a>) -> Result<Constant<'a>> {
        Ok(Constant(Plain::read(source.bytes, source.physical, 1)?))
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
