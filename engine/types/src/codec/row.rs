//! The compact byte row of the rowstore and the log.
//!
//! Layout: the schema version (`u16`), the null bitmap (one bit per column, 1 = null), the fixed
//! part (one slot per column, in order: 1, 8 or 16 bytes by physical type; for text and binary a
//! `u32` end offset into the variable part), and the variable part. Any column can be found without
//! reading its neighbours. The version identifies rows that were written before a column was added
//! or dropped.

use crate::bytes::Write;
use crate::{DataType, Error, PhysicalType, Result, Value, key};

/// Size of the version, in bytes.
const VERSION_BYTES: usize = 2;

/// The positions of the columns in a row. Built once per version of a table's schema.
#[derive(Clone, Debug)]
pub struct RowLayout {
    version: u16,
    types: Vec<DataType>,
    slots: Vec<u32>,
    bytes_columns: Vec<u32>,
    fixed_start: usize,
    fixed_end: usize,
}

/// Returns the schema version under which a row was written.
#[inline]
pub fn version(row: &[u8]) -> Option<u16> {
    row.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

impl RowLayout {
    /// Builds the layout of columns of these types under a schema version.
    pub fn new(types: Vec<DataType>, version: u16) -> RowLayout {
        let fixed_start = VERSION_BYTES + types.len().div_ceil(8);
        let mut at = fixed_start;
        let mut slots = Vec::with_capacity(types.len());
        let mut bytes_columns = Vec::new();
        for (index, data_type) in types.iter().enumerate() {
            slots.push(at as u32);
            at += match data_type.physical() {
                PhysicalType::Bool => 1,
                PhysicalType::I64 | PhysicalType::F64 => 8,
                PhysicalType::I128 => 16,
                PhysicalType::Bytes => {
                    bytes_columns.push(index as u32);
                    4
                }
            };
        }
        RowLayout { version, types, slots, bytes_columns, fixed_start, fixed_end: at }
    }

    /// The schema version.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Column types.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Encodes one row of values. Errors: `type` for a value that is not of its column's type.
    pub fn encode(&self, row: &[Value]) -> Result<Vec<u8>> {
        if row.len() != self.types.len() {
            return Err(Error::type_error("row has the wrong number of values"));
        }
        let variable =
            || self.bytes_columns.iter().filter_map(|column| bytes_of(&row[*column as usize]));
        let mut out =
            Vec::with_capacity(self.fixed_end + variable().map(<[u8]>::len).sum::<usize>());
        out.put_u16(self.version);
        out.resize(self.fixed_start, 0);
        let mut end = 0;
        for (index, (value, data_type)) in row.iter().zip(&self.types).enumerate() {
            if value.is_null() {
                out[VERSION_BYTES + index / 8] |= 1 << (index % 8);
            }
            let mismatch = || Error::type_error(format!("value {value} is not {data_type}"));
            match data_type.physical() {
                PhysicalType::Bool => out.push(match value {
                    Value::Boolean(v) => u8::from(*v),
                    Value::Null => 0,
                    _ => return Err(mismatch()),
                }),
                PhysicalType::I64 => {
                    let v = if value.is_null() {
                        0
                    } else {
                        key::integer(value).ok_or_else(mismatch)?
                    };
                    out.put_u64(v as i64 as u64);
                }
                PhysicalType::I128 => {
                    out.put_i128(if value.is_null() {
                        0
                    } else {
                        key::integer(value).ok_or_else(mismatch)?
                    });
                }
                PhysicalType::F64 => {
                    let v = match value {
                        Value::Float(v) => *v,
                        Value::Null => 0.0,
                        _ => return Err(mismatch()),
                    };
                    out.put_u64(v.to_bits());
                }
                PhysicalType::Bytes => {
                    end += bytes_of(value).ok_or_else(mismatch)?.len();
                    let end =
                        u32::try_from(end).map_err(|_| Error::limit("row longer than 4 GiB"))?;
                    out.put_u32(end);
                }
            }
        }
        variable().for_each(|bytes| out.extend_from_slice(bytes));
        Ok(out)
    }

    /// Whether a column is null.
    #[inline]
    pub fn is_null(&self, row: &[u8], column: usize) -> bool {
        row.get(VERSION_BYTES + column / 8).is_some_and(|byte| byte >> (column % 8) & 1 == 1)
    }

    /// A boolean slot; false when null.
    #[inline]
    pub fn bool(&self, row: &[u8], column: usize) -> bool {
        row.get(self.slots[column] as usize).is_some_and(|b| *b != 0)
    }

    /// An eight-byte slot; zero when null.
    #[inline]
    pub fn i64(&self, row: &[u8], column: usize) -> i64 {
        i64::from_le_bytes(self.slot(row, column))
    }

    /// A float slot; zero when null.
    #[inline]
    pub fn f64(&self, row: &[u8], column: usize) -> f64 {
        f64::from_le_bytes(self.slot(row, column))
    }

    /// A sixteen-byte slot; zero when null.
    #[inline]
    pub fn i128(&self, row: &[u8], column: usize) -> i128 {
        i128::from_le_bytes(self.slot(row, column))
    }

    fn slot<const N: usize>(&self, row: &[u8], column: usize) -> [u8; N] {
        let at = self.slots[column] as usize;
        let mut out = [0; N];
        out.copy_from_slice(&row[at..at + N]);
        out
    }

    /// The bytes of a text or binary column; empty when null.
    pub fn bytes<'a>(&self, row: &'a [u8], column: usize) -> &'a [u8] {
        let end = u32::from_le_bytes(self.slot(row, column)) as usize;
        let start = match self.bytes_columns.binary_search(&(column as u32)) {
            Ok(0) | Err(_) => 0,
            Ok(n) => {
                u32::from_le_bytes(self.slot(row, self.bytes_columns[n - 1] as usize)) as usize
            }
        };
        &row[self.fixed_end + start..self.fixed_end + end]
    }

    /// One column as a value.
    pub fn value(&self, row: &[u8], column: usize) -> Value {
        if self.is_null(row, column) {
            return Value::Null;
        }
        let data_type = self.types[column];
        match data_type.physical() {
            PhysicalType::Bool => Value::Boolean(self.bool(row, column)),
            PhysicalType::I64 => key::from_integer(data_type, self.i64(row, column) as i128),
            PhysicalType::I128 => key::from_integer(data_type, self.i128(row, column)),
            PhysicalType::F64 => Value::Float(self.f64(row, column)),
            PhysicalType::Bytes => from_bytes(data_type, self.bytes(row, column)),
        }
    }

    /// The whole row as values.
    pub fn decode(&self, row: &[u8]) -> Vec<Value> {
        (0..self.types.len()).map(|column| self.value(row, column)).collect()
    }

    /// Checks that bytes read from a log or snapshot are a row of this layout.
    pub fn validate(&self, row: &[u8]) -> Result<()> {
        let bad = |why: &str| Err(Error::corrupt(format!("row: {why}")));
        if row.len() < self.fixed_end {
            return bad("shorter than its fixed part");
        }
        if version(row) != Some(self.version) {
            return bad("written under another schema version");
        }
        let mut previous = 0;
        for &column in &self.bytes_columns {
            let end = u32::from_le_bytes(self.slot(row, column as usize)) as usize;
            if end < previous || self.fixed_end + end > row.len() {
                return bad("offset out of order");
            }
            let text = !matches!(self.types[column as usize], DataType::Binary { .. });
            if text
                && std::str::from_utf8(&row[self.fixed_end + previous..self.fixed_end + end])
                    .is_err()
            {
                return bad("text is not UTF-8");
            }
            previous = end;
        }
        if self.fixed_end + previous != row.len() { bad("trailing bytes") } else { Ok(()) }
    }
}

/// Returns the bytes of a text, binary or JSON value; empty for null, `None` for a value of another
/// type.
fn bytes_of(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Null => Some(&[]),
        Value::Text(v) | Value::Json(v) => Some(v.as_bytes()),
        Value::Binary(v) => Some(v),
        _ => None,
    }
}

/// Converts bytes to a value of a text, binary or JSON type. Invalid UTF-8, which validated rows
/// cannot contain, is replaced.
pub fn from_bytes(data_type: DataType, bytes: &[u8]) -> Value {
    match data_type {
        DataType::Binary { .. } => Value::Binary(bytes.to_vec()),
        DataType::Json => Value::Json(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_refused() {
        let types = [DataType::Boolean, DataType::Float64, DataType::Int64, DataType::TEXT];
        let values = [
            Value::Boolean(true),
            Value::Float(1.5),
            Value::Int(7),
            Value::Text("t".into()),
            Value::Null,
        ];
        for (at, data_type) in types.into_iter().enumerate() {
            let layout = RowLayout::new(vec![data_type], 1);
            for (of, value) in values.iter().enumerate() {
                let encoded = layout.encode(std::slice::from_ref(value));
                assert_eq!(encoded.is_ok(), of == at || value.is_null(), "{value} as {data_type}");
            }
        }
    }

    #[test]
    fn rows_round_trip_and_damage_is_found() {
        let types = vec![
            DataType::Int32,
            DataType::TEXT,
            DataType::Decimal { precision: 30, scale: 3 },
            DataType::BLOB,
            DataType::Boolean,
            DataType::Float64,
        ];
        let layout = RowLayout::new(types, 513);
        let rows = [
            vec![
                Value::Int(-7),
                Value::Text("héllo".into()),
                Value::Decimal { unscaled: 1 << 80, scale: 3 },
                Value::Binary(vec![0, 255]),
                Value::Boolean(true),
                Value::Float(-0.5),
            ],
            vec![Value::Null, Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
            vec![
                Value::Int(0),
                Value::Text(String::new()),
                Value::Null,
                Value::Binary(vec![]),
                Value::Boolean(false),
                Value::Null,
            ],
        ];
        for row in rows {
            let bytes = layout.encode(&row).unwrap();
            layout.validate(&bytes).unwrap();
            assert_eq!(layout.decode(&bytes), row);
            for cut in 0..bytes.len() {
                assert!(layout.validate(&bytes[..cut]).is_err());
            }
        }
    }
}
