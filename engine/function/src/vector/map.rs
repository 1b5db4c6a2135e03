//! Builds vectors row by row.

use super::room::Room;
use super::rows::ActiveRows;
use super::validity::{valid, validity};
use nacre_column::{Bitmap, Values, Vector, VectorBuilder};
use nacre_types::{DataType, PhysicalType, Result, Value};

/// Computes a flat vector row by row: one value for each active row at which all of `args` are
/// valid, null at the others. `compute` may return null. Texts take at most `room`.
pub fn map_values(
    args: &[&Vector],
    data_type: DataType,
    rows: ActiveRows<'_>,
    mut room: Room,
    compute: &mut dyn FnMut(usize) -> Result<Value>,
) -> Result<Vector> {
    let validity = validity(args);
    let mut builder = VectorBuilder::new(data_type);
    for i in rows.iter() {
        pad_to(&mut builder, i);
        if valid(&validity, i) {
            let value = compute(i)?;
            room.take_value(&value)?;
            builder.push(&value);
        } else {
            builder.push_null();
        }
    }
    pad_to(&mut builder, rows.len);
    Ok(builder.finish())
}

/// Like [`map_values`] for text: `compute` appends the bytes of a row, or returns `false` for null.
pub fn map_bytes(
    args: &[&Vector],
    data_type: DataType,
    rows: ActiveRows<'_>,
    mut room: Room,
    compute: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<bool>,
) -> Result<Vector> {
    debug_assert_eq!(data_type.physical(), PhysicalType::Bytes, "only texts are made of bytes");
    let validity = validity(args);
    let mut builder = VectorBuilder::new(data_type);
    let mut buffer = Vec::new();
    for row in rows.iter() {
        pad_to(&mut builder, row);
        buffer.clear();
        if valid(&validity, row) && compute(row, &mut buffer)? {
            room.take(buffer.len())?;
            builder.push_bytes(&buffer);
        } else {
            builder.push_null();
        }
    }
    pad_to(&mut builder, rows.len);
    Ok(builder.finish())
}

fn pad_to(builder: &mut VectorBuilder, len: usize) {
    while builder.len() < len {
        builder.push_null();
    }
}

/// Computes an integer vector row by row: one integer for each valid row, zero at the others. The
/// integers must fit `data_type`.
pub fn map_integers(
    data_type: DataType,
    validity: Option<Bitmap>,
    rows: ActiveRows<'_>,
    compute: &mut dyn FnMut(usize) -> Result<i128>,
) -> Result<Vector> {
    let mut wide = Vec::new();
    let mut narrow = Vec::new();
    let is_wide = data_type.physical() == PhysicalType::I128;
    if is_wide {
        wide.resize(rows.len, 0i128)
    } else {
        narrow.resize(rows.len, 0i64)
    }
    for i in rows.iter() {
        if valid(&validity, i) {
            let v = compute(i)?;
            if is_wide { wide[i] = v } else { narrow[i] = v as i64 }
        }
    }
    let values = if is_wide { Values::I128(wide) } else { Values::I64(narrow) };
    Ok(Vector::new(data_type, values, validity))
}

/// Computes a vector of doubles row by row: one for each valid row, zero at the others.
pub fn map_doubles(
    data_type: DataType,
    validity: Option<Bitmap>,
    rows: ActiveRows<'_>,
    mut compute: impl FnMut(usize) -> Result<f64>,
) -> Result<Vector> {
    let mut out = vec![0.0; rows.len];
    for i in rows.iter().filter(|i| valid(&validity, *i)) {
        out[i] = compute(i)?;
    }
    Ok(Vector::new(data_type, Values::F64(out), validity))
}
