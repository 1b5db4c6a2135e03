/** What a new encoding takes: its folder, and its line in the list. */
export default {
  check: ['nacre-column', 'nacre-segment'],
  places: [
    {
      create: {
        'engine/column/src/encoding/dummy/mod.rs': `//! Dummy: 64-bit integers side by side.
//!
//! Body: 8 bytes per row, little-endian.

use super::read::array_at;
use super::scheme::{Body, Input, Offer, Scheme, Shared, Source};
use crate::{Form, Scalar, Values};
use nacre_types::Result;
use nacre_types::bytes::Write;

const ENDS_EARLY: &str = "dummy values end early";

/// A dummy body.
pub(crate) struct Dummy<'a> {
    bytes: &'a [u8],
}

impl Dummy<'_> {
    fn one(&self, row: usize) -> Result<i64> {
        array_at(self.bytes, row * 8, ENDS_EARLY).map(i64::from_le_bytes)
    }
}

impl<'a> Scheme<'a> for Dummy<'a> {
    const NAME: &'static str = "dummy";
    const OFFER: Offer = Offer::InsteadOfPlain;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        let Values::I64(values) = input.values() else { return false };
        values.iter().for_each(|value| out.put_u64(*value as u64));
        true
    }

    fn open(source: Source<'a>) -> Result<Dummy<'a>> {
        Ok(Dummy { bytes: source.bytes })
    }
}

impl<'a> Body<'a> for Dummy<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        self.one(row).map(Scalar::I64)
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        let values = (start..start + len).map(|row| self.one(row)).collect::<Result<_>>()?;
        Ok(Form::Flat(Values::I64(values)))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let values = rows.iter().map(|row| self.one(*row as usize)).collect::<Result<_>>()?;
        Ok(Form::Flat(Values::I64(values)))
    }
}
`,
      },
    },
    {
      edit: 'engine/column/src/encoding/mod.rs',
      after: 'BitPacked = 3, bitpacked::BitPacked;',
      insert: '    /// What the count of places adds.\n    Dummy = 11, dummy::Dummy;\n',
    },
  ],
};
