//! Values stored outside blocks, none of them null: a block header and a plain body, of any length.
//! Used for dictionaries and for the lists of bounds in a footer.

use super::header::{self, HEADER_BYTES};
use super::plain::{self, Plain};
use super::read::corrupt;
use super::scheme::Input;
use crate::Values;
use nacre_types::{DataType, PhysicalType, Result, invariant};

/// The encoding number in the header of such values: plain.
pub(super) const PLAIN: u8 = 1;

/// Encodes any number of values, none of them null.
pub fn encode_values(values: &Values) -> Vec<u8> {
    let mut out = header::write(PLAIN, 0, values.len());
    plain::encode(Input::new(values, None), &mut out);
    let opened = open_values(&out, values.physical(), values.len());
    invariant!(opened.is_ok(), "encoded values do not open: {:?}", opened.err());
    out
}

/// Decodes `count` values written by [`encode_values`]. The caller must trust `count`: values of no
/// bytes take no space, so the length of `bytes` does not bound it.
pub fn decode_values(bytes: &[u8], data_type: DataType, count: usize) -> Result<Values> {
    let values = open_values(bytes, data_type.physical(), count)?.values(0, count)?;
    check_text(data_type, &values)?;
    debug_assert_eq!(values.len(), count, "values decoded from a list");
    Ok(values)
}

/// Reads the head of values written by [`encode_values`].
pub(crate) fn open_values(bytes: &[u8], physical: PhysicalType, count: usize) -> Result<Plain<'_>> {
    match header::read(bytes, PLAIN, count)? {
        0 => Plain::read(&bytes[HEADER_BYTES..], physical, count),
        _ => Err(corrupt("values outside a block cannot be null")),
    }
}

/// Checks that text is UTF-8. Readers of a vector rely on it and do not check again.
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
