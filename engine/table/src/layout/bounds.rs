//! Bounds of columns as descriptions of files have them: encoded like keys, so that plans find the
//! segments that may hold a key or a value without opening any.

use crate::layout::columns::{PartColumn, column_of_part};
use nacre_segment::{BoundsOfColumns, ColumnBounds, ColumnMeta};
use nacre_types::{DataType, Result, Value, key, limits};

/// Bounds that are longer are left out. Those of most texts are cut to much less.
const MAX_BOUND_BYTES: usize = 256;

/// Adds the encoded bounds of a column, unless they are too long.
pub(crate) fn add_bounds_of(column: &ColumnMeta, bounds: &mut BoundsOfColumns) {
    let encode = |value: &Value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, column.data_type, value).ok()?;
        (bytes.len() <= MAX_BOUND_BYTES).then_some(bytes)
    };
    let encoded = encode(&column.min).zip(encode(&column.max));
    if let (Some((low, high)), Ok(nulls)) = (encoded, u32::try_from(column.null_count)) {
        debug_assert!(low <= high, "column {} has bounds {low:?} to {high:?}", column.id);
        bounds.push(ColumnBounds { column: column.id, nulls, low: &low, high: &high });
    }
}

/// Adds the bounds of a column that a description has: those of key columns of index parts, and of at
/// most `left` columns of the table, which it counts down.
pub(crate) fn add_described_bounds_of(
    column: &ColumnMeta,
    left: &mut usize,
    bounds: &mut BoundsOfColumns,
) {
    let is_described = match column_of_part(column.id) {
        Some((_, part)) => matches!(part, PartColumn::Key(_)),
        None if column.id > limits::MAX_COLUMN_ID || column.data_type == DataType::Json => false,
        None => {
            let is_one = *left > 0;
            *left = left.saturating_sub(1);
            is_one
        }
    };
    if is_described {
        add_bounds_of(column, bounds);
    }
}

/// The encoded least and greatest key of a column. Nulls sort first.
pub(crate) fn key_range(bounds: ColumnBounds<'_>) -> (Vec<u8>, Vec<u8>) {
    debug_assert!(bounds.low <= bounds.high, "bounds of column {} are crossed", bounds.column);
    match bounds.nulls {
        0 => (bounds.low.to_vec(), bounds.high.to_vec()),
        _ => (vec![0], bounds.high.to_vec()),
    }
}

/// The bounds as values of a column of this type; `None` if all its values are null.
///
/// # Errors
/// `corrupt` if they are no values of this type.
pub(crate) fn values_of(bounds: ColumnBounds<'_>, of: DataType) -> Result<Option<(Value, Value)>> {
    let value = |bytes: &[u8]| -> Result<Value> {
        Ok(key::decode(bytes, &[of])?.pop().unwrap_or(Value::Null))
    };
    let (min, max) = (value(bounds.low)?, value(bounds.high)?);
    debug_assert!(
        min.is_null() == max.is_null(),
        "column {} has bounds {min:?} and {max:?}",
        bounds.column
    );
    Ok((!min.is_null()).then_some((min, max)))
}
