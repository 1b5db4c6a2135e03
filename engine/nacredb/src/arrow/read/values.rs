//! The values of a message's body as vectors. Every length and offset is checked against the body.

use super::flat::Table;
use super::form::Form;
use crate::arrow::import::{bytes, coded_texts, scaled, texts};
use arrow_ipc::RecordBatch;
use nacre_column::{Bitmap, Values, Vector, VectorBuilder};
use nacre_types::{Column, DataType, Error, PhysicalType, Result};

/// Maximum number of rows of a record batch.
const MAX_ROWS: usize = 1 << 26;

/// A body whose columns are read one after another.
pub(super) struct Body<'a> {
    rows: usize,
    bytes: &'a [u8],
    /// Length and number of nulls of each column that is left.
    nodes: std::vec::IntoIter<(i64, i64)>,
    /// Offset and length of each buffer that is left.
    buffers: std::vec::IntoIter<(i64, i64)>,
}

impl<'a> Body<'a> {
    pub fn new(batch: Table<'_>, bytes: &'a [u8]) -> Result<Body<'a>> {
        if batch.table(RecordBatch::VT_COMPRESSION)?.is_some() {
            return Err(Error::unsupported("a compressed Arrow stream"));
        }
        let rows = batch.integer(RecordBatch::VT_LENGTH, 8, 0)?;
        let rows = usize::try_from(rows).ok().filter(|rows| *rows <= MAX_ROWS);
        let rows = rows
            .ok_or_else(|| Error::limit(format!("an Arrow batch of more than {MAX_ROWS} rows")))?;
        let nodes = batch.pairs(RecordBatch::VT_NODES)?;
        let buffers = batch.pairs(RecordBatch::VT_BUFFERS)?;
        Ok(Body { rows, bytes, nodes: nodes.into_iter(), buffers: buffers.into_iter() })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    fn buffer(&mut self) -> Result<&'a [u8]> {
        let bytes = self.buffers.next().and_then(|(offset, length)| {
            let start = usize::try_from(offset).ok()?;
            self.bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
        });
        bytes.ok_or_else(|| Error::corrupt("a buffer outside the body of its Arrow message"))
    }

    /// A buffer of values of a fixed length each.
    fn fixed(&mut self, value_bytes: usize) -> Result<&'a [u8]> {
        let needed = self.rows.checked_mul(value_bytes);
        let buffer = self.buffer()?;
        needed.and_then(|needed| buffer.get(..needed)).ok_or_else(too_short)
    }

    /// Reads which rows of the next column are not null. `None` if all are.
    fn validity(&mut self) -> Result<Option<Bitmap>> {
        let nulls = self.nulls()?;
        let buffer = self.buffer()?;
        if nulls == 0 {
            return Ok(None);
        }
        bits(buffer, self.rows).map(Some).ok_or_else(too_short)
    }

    /// The number of nulls of the next column.
    fn nulls(&mut self) -> Result<i64> {
        match self.nodes.next() {
            Some((length, nulls)) if length == self.rows as i64 => Ok(nulls),
            _ => Err(Error::corrupt("an Arrow column of other rows than its batch")),
        }
    }

    /// The next column, as a column of this type.
    pub fn vector(&mut self, form: Form, to: DataType) -> Result<Vector> {
        if form == Form::Null {
            self.nulls()?;
            return Ok(Vector::constant(to, &nacre_types::Value::Null, self.rows));
        }
        let validity = self.validity()?;
        let is_null = |row: usize| validity.as_ref().is_some_and(|bits| !bits.get(row));
        match (form, to) {
            (
                Form::Text { offset_bytes },
                DataType::Text { .. } | DataType::Json | DataType::Uuid,
            ) => {
                let parts = self.parts(offset_bytes)?;
                let text = |(row, part): (usize, &&'a [u8])| match is_null(row) {
                    true => Ok(None),
                    false => std::str::from_utf8(part).map(Some),
                };
                let all: Result<Vec<Option<&str>>, _> =
                    parts.iter().enumerate().map(text).collect();
                let all = all.map_err(|_| Error::corrupt("an Arrow text that is not UTF-8"))?;
                return texts(to, all.into_iter());
            }
            (Form::Binary { offset_bytes }, DataType::Binary { .. }) => {
                let parts = self.parts(offset_bytes)?;
                let part = |(row, part): (usize, &'a [u8])| (!is_null(row)).then_some(part);
                return bytes(to, parts.into_iter().enumerate().map(part));
            }
            (Form::FixedBinary { bytes: 0 }, DataType::Binary { .. }) => {
                self.buffer()?;
                let part = |row: usize| (!is_null(row)).then_some(&[][..]);
                return bytes(to, (0..self.rows).map(part));
            }
            (Form::FixedBinary { bytes: length }, DataType::Binary { .. }) => {
                let parts = self.fixed(length)?.chunks_exact(length).enumerate();
                return bytes(to, parts.map(|(row, part)| (!is_null(row)).then_some(part)));
            }
            _ => {}
        }
        let mut values = self.numbers(form, to, validity.as_ref())?;
        clear_nulls(&mut values, validity.as_ref());
        Ok(Vector::new(to, values, validity))
    }

    /// Values without a length of their own. Those of null rows may be anything.
    fn numbers(&mut self, form: Form, to: DataType, validity: Option<&Bitmap>) -> Result<Values> {
        let out_of_range = || Error::out_of_range(format!("a value does not fit {to}"));
        Ok(match (form, to) {
            (Form::Boolean, DataType::Boolean) => {
                let bits = bits(self.buffer()?, self.rows).ok_or_else(too_short)?;
                Values::Bool((0..self.rows).map(|row| bits.get(row)).collect())
            }
            (Form::Int { bytes: 8, signed: false }, DataType::UInt64) => {
                let unsigned = self.integers(8)?.into_iter().map(|v| v as u64 as i128);
                Values::I128(unsigned.collect())
            }
            (Form::Int { bytes, signed }, to)
                if to.is_integer() && to != DataType::UInt64 && (signed || bytes < 8) =>
            {
                Values::I64(self.narrow(bytes, signed)?)
            }
            (Form::Float32, DataType::Float32 | DataType::Float64) => {
                let float = |v: &[u8]| f64::from(f32::from_le_bytes([v[0], v[1], v[2], v[3]]));
                Values::F64(self.fixed(4)?.chunks_exact(4).map(float).collect())
            }
            (Form::Float64, DataType::Float64) => {
                let bits = self.integers(8)?.into_iter().map(|v| f64::from_bits(v as u64));
                Values::F64(bits.collect())
            }
            (Form::Decimal128 { scale: given }, DataType::Decimal { scale, .. })
                if given == i32::from(scale) =>
            {
                let wide = self.fixed(16)?.chunks_exact(16).map(i128_of);
                match to.physical() {
                    PhysicalType::I64 => {
                        // Null rows may hold anything, and a value out of range in a row that is
                        // not null does not fit either way.
                        Values::I64(wide.map(|v| i64::try_from(v).unwrap_or(i64::MAX)).collect())
                    }
                    _ => Values::I128(wide.collect()),
                }
            }
            (Form::Date { ms: false }, DataType::Date) => Values::I64(self.integers(4)?),
            (Form::Date { ms: true }, DataType::Date) => {
                let days = self.integers(8)?.into_iter().map(|ms| ms.div_euclid(86_400_000));
                Values::I64(days.collect())
            }
            (Form::Time { bytes, units }, DataType::Time) => {
                let values = self.integers(bytes)?;
                Values::I64(micros(values, units, validity).ok_or_else(out_of_range)?)
            }
            (Form::Timestamp { units }, DataType::Timestamp | DataType::TimestampTz) => {
                let values = self.integers(8)?;
                Values::I64(micros(values, units, validity).ok_or_else(out_of_range)?)
            }
            (form, to) => {
                return Err(Error::type_error(format!("Arrow type {form:?} is not {to}")));
            }
        })
    }

    /// The next buffer as signed integers of 4 or 8 bytes.
    fn integers(&mut self, bytes: usize) -> Result<Vec<i64>> {
        self.narrow(bytes, true)
    }

    /// The next buffer as integers of 1, 2, 4 or 8 bytes.
    fn narrow(&mut self, bytes: usize, signed: bool) -> Result<Vec<i64>> {
        let values = self.fixed(bytes)?.chunks_exact(bytes);
        Ok(match (bytes, signed) {
            (1, true) => values.map(|v| i64::from(v[0] as i8)).collect(),
            (1, false) => values.map(|v| i64::from(v[0])).collect(),
            (2, true) => values.map(|v| i64::from(i16::from_le_bytes([v[0], v[1]]))).collect(),
            (2, false) => values.map(|v| i64::from(u16::from_le_bytes([v[0], v[1]]))).collect(),
            (4, true) => values.map(|v| i64::from(u32_of(v) as i32)).collect(),
            (4, false) => values.map(|v| i64::from(u32_of(v))).collect(),
            _ => values.map(i64_of).collect(),
        })
    }

    /// The next two buffers as values between offsets.
    fn parts(&mut self, offset_bytes: usize) -> Result<Vec<&'a [u8]>> {
        let offsets = self.buffer()?;
        let data = self.buffer()?;
        if self.rows == 0 {
            // A batch without rows may lack its offset.
            return Ok(Vec::new());
        }
        let needed = (self.rows + 1) * offset_bytes;
        let offsets = offsets.get(..needed).ok_or_else(too_short)?.chunks_exact(offset_bytes);
        let offset = |v: &[u8]| match v.len() {
            4 => u32_of(v) as usize,
            // Too large an offset is outside the data either way.
            _ => usize::try_from(i64_of(v)).unwrap_or(usize::MAX),
        };
        let mut parts = Vec::with_capacity(self.rows);
        let mut start = None;
        for end in offsets.map(offset) {
            if let Some(start) = start {
                let part = data.get(start..end);
                parts
                    .push(part.ok_or_else(|| Error::corrupt("an Arrow value outside its buffer"))?);
            }
            start = Some(end);
        }
        Ok(parts)
    }

    /// The next column as positions in a dictionary, 0 where it is null.
    pub fn indices(&mut self, form: Form) -> Result<(Vec<usize>, Option<Bitmap>)> {
        let validity = self.validity()?;
        let Form::Int { bytes, signed } = form else {
            return Err(Error::corrupt("Arrow indices that are no integers"));
        };
        let mut keys = Vec::with_capacity(self.rows);
        for (row, key) in self.narrow(bytes, signed)?.into_iter().enumerate() {
            keys.push(match validity.as_ref().is_some_and(|bits| !bits.get(row)) {
                true => 0,
                // Too large an index is outside the dictionary either way.
                false => usize::try_from(key).unwrap_or(usize::MAX),
            });
        }
        Ok((keys, validity))
    }
}

/// The values at positions of a dictionary.
pub(super) fn coded(
    entries: Option<&Vector>,
    keys: Vec<usize>,
    validity: Option<Bitmap>,
    column: &Column,
) -> Result<Vector> {
    let is_null = |row: usize| validity.as_ref().is_some_and(|bits| !bits.get(row));
    let count = entries.map_or(0, Vector::len);
    if (0..keys.len()).any(|row| keys[row] >= count && !is_null(row)) {
        return Err(Error::corrupt("an index outside its Arrow dictionary"));
    }
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
        return Ok(Vector::constant(column.data_type, &nacre_types::Value::Null, keys.len()));
    };
    let has_null_entry = entries.null_count() > 0;
    if column.data_type.physical() == PhysicalType::Bytes && !has_null_entry {
        return Ok(coded_texts(entries, &keys, validity));
    }
    let mut builder = VectorBuilder::new(column.data_type);
    for (row, key) in keys.into_iter().enumerate() {
        match is_null(row) || entries.is_null(key) {
            true => builder.push_null(),
            false => builder.push(&entries.value(key)),
        }
    }
    Ok(builder.finish())
}

fn too_short() -> Error {
    Error::corrupt("an Arrow buffer shorter than its rows")
}

/// The first `len` bits of a buffer.
fn bits(buffer: &[u8], len: usize) -> Option<Bitmap> {
    let bytes = buffer.get(..len.div_ceil(8))?;
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    Bitmap::from_words(bytes.chunks(8).map(word).collect(), len)
}

fn u32_of(v: &[u8]) -> u32 {
    u32::from_le_bytes([v[0], v[1], v[2], v[3]])
}

fn i64_of(v: &[u8]) -> i64 {
    i64::from_le_bytes([v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]])
}

fn i128_of(v: &[u8]) -> i128 {
    (i128::from(i64_of(&v[8..])) << 64) | i128::from(i64_of(v) as u64)
}

/// Values of this many units a second, in microseconds.
fn micros(mut values: Vec<i64>, units: i64, validity: Option<&Bitmap>) -> Option<Vec<i64>> {
    match units {
        1_000_000 => Some(values),
        1_000_000_000 => Some(values.into_iter().map(|ns| ns.div_euclid(1_000)).collect()),
        units => {
            // Otherwise what null rows hold could be out of range.
            if let Some(valid) = validity {
                clear(&mut values, valid);
            }
            scaled(values.into_iter(), 1_000_000 / units)
        }
    }
}

/// Gives null rows the value zero.
fn clear<T: Default>(values: &mut [T], valid: &Bitmap) {
    let null = |(row, _): &(usize, &mut T)| !valid.get(*row);
    values.iter_mut().enumerate().filter(null).for_each(|(_, v)| *v = T::default());
}

fn clear_nulls(values: &mut Values, validity: Option<&Bitmap>) {
    let Some(valid) = validity else { return };
    match values {
        Values::Bool(values) => clear(values, valid),
        Values::I64(values) => clear(values, valid),
        Values::I128(values) => clear(values, valid),
        Values::F64(values) => clear(values, valid),
        Values::Bytes(_) => {}
    }
}
