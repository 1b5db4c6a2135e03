//! Encodes rows: a count, then each column flat or as one value for all rows, after its validity.
//!
//! The reader knows the types and has verified the checksum; truncated bytes are an error
//! nevertheless.

use nacre_column::{Batch, Bitmap, BytesColumn, Form, Values, Vector};
use nacre_types::bytes::Reader;
use nacre_types::{DataType, PhysicalType, Result};
use std::borrow::Cow;
use std::sync::Arc;

const CONSTANT: u8 = 1;
const NULLABLE: u8 = 2;

/// Encodes all rows of columns.
pub(super) fn encode(columns: &[Arc<Vector>], rows: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(columns.iter().map(|c| c.memory_bytes() + 16).sum());
    out.extend_from_slice(&(rows as u32).to_le_bytes());
    for column in columns {
        let (values, constant) = match column.form() {
            Form::Constant(one) => (Cow::Borrowed(one), CONSTANT),
            _ => (column.flat(), 0),
        };
        out.push(constant | if column.validity().is_some() { NULLABLE } else { 0 });
        if let Some(validity) = column.validity() {
            validity.words().iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
        match &*values {
            Values::Bool(v) => out.extend(v.iter().map(|v| u8::from(*v))),
            Values::I64(v) => v.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
            Values::I128(v) => v.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
            Values::F64(v) => v.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
            Values::Bytes(v) => {
                v.offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
                out.extend_from_slice(&v.data);
            }
        }
    }
    out
}

/// Decodes rows of columns of these types.
pub(super) fn decode(bytes: &[u8], types: &[DataType]) -> Result<Batch> {
    let mut reader = Reader::new(bytes, "a temporary file");
    let rows = reader.u32()? as usize;
    let mut columns = Vec::with_capacity(types.len());
    for data_type in types {
        let tag = reader.u8()?;
        let validity = match tag & NULLABLE {
            0 => None,
            _ => {
                let words = words(&mut reader, rows.div_ceil(64))?;
                Some(Bitmap::from_words(words, rows).ok_or_else(|| reader.corrupt("validity"))?)
            }
        };
        let values =
            values(&mut reader, data_type.physical(), if tag & CONSTANT == 0 { rows } else { 1 })?;
        let form = if tag & CONSTANT == 0 { Form::Flat(values) } else { Form::Constant(values) };
        columns.push(Arc::new(Vector::from_form(*data_type, form, validity, rows)));
    }
    reader.finish()?;
    Ok(Batch::new(columns, rows))
}

fn words(reader: &mut Reader<'_>, count: usize) -> Result<Vec<u64>> {
    (0..count).map(|_| reader.u64()).collect()
}

fn values(reader: &mut Reader<'_>, physical: PhysicalType, count: usize) -> Result<Values> {
    Ok(match physical {
        PhysicalType::Bool => Values::Bool(reader.take(count)?.iter().map(|v| *v != 0).collect()),
        PhysicalType::I64 => {
            Values::I64(words(reader, count)?.into_iter().map(|v| v as i64).collect())
        }
        PhysicalType::I128 => {
            Values::I128((0..count).map(|_| reader.i128()).collect::<Result<_>>()?)
        }
        PhysicalType::F64 => {
            Values::F64(words(reader, count)?.into_iter().map(f64::from_bits).collect())
        }
        PhysicalType::Bytes => {
            let offsets = (0..=count).map(|_| reader.u32()).collect::<Result<Vec<_>>>()?;
            let data = reader.take(offsets.last().map_or(0, |end| *end as usize))?.to_vec();
            if !offsets.is_sorted() {
                return Err(reader.corrupt("offsets"));
            }
            Values::Bytes(BytesColumn { offsets, data })
        }
    })
}
