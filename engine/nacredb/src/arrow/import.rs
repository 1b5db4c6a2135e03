//! Conversion of Arrow arrays and record batches to vectors and rows of a table.

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use nacre_column::{Batch, Bitmap, BytesColumn, Values, Vector, VectorBuilder};
use nacre_types::hash::Map;
use nacre_types::{DataType, Error, PhysicalType, Result, TableSchema, Value, uuid};
use std::sync::Arc;

/// Converts a record batch to rows of a table. Columns are matched by position, not by name, and
/// must have the table's types, or a narrower integer type or another text or binary layout of
/// them.
///
/// Errors: `type` otherwise, with the column's name.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use nacre_native::{block_on, memory_host};
/// use nacredb::arrow::batch_from_arrow;
/// use nacredb::{Database, OnDuplicate, Options};
/// use std::sync::Arc;
///
/// # block_on(async {
/// let db = Database::open(memory_host(), Options::default()).await?;
/// let mut session = db.session();
/// session.execute("create table events (id bigint primary key)", &[]).await?;
///
/// let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
/// let record_batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
///
/// let mut appender = session.appender("events", OnDuplicate::Error).await?;
/// let rows = batch_from_arrow(&record_batch, appender.schema())?;
/// appender.append(&rows)?;
/// assert_eq!(appender.finish().await?, 3);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub fn batch_from_arrow(batch: &RecordBatch, table: &TableSchema) -> Result<Batch> {
    if batch.num_columns() != table.columns.len() {
        return Err(Error::type_error(format!(
            "table {} has {} columns, the Arrow batch has {}",
            table.name,
            table.columns.len(),
            batch.num_columns()
        )));
    }
    let columns = table
        .columns
        .iter()
        .zip(batch.columns())
        .map(|(column, array)| {
            vector_from_arrow(array, column.data_type)
                .map(Arc::new)
                .map_err(|e| e.context(format!("column {}", column.name)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Batch::new(columns, batch.num_rows()))
}

/// Converts an Arrow array to a vector of a data type. Whether values are in range of the type is
/// checked on write.
///
/// Errors: `type` if the array's type does not fit, text is not valid JSON for a `JSON` type, or a
/// value does not fit the vector's representation; `limit` if texts exceed 4 GiB.
///
/// ```
/// use arrow_array::{ArrayRef, StringArray};
/// use nacredb::arrow::vector_from_arrow;
/// use nacredb::{DataType, Value};
/// use std::sync::Arc;
///
/// let names: ArrayRef = Arc::new(StringArray::from(vec![Some("nacre"), None]));
/// let vector = vector_from_arrow(&names, DataType::TEXT)?;
/// assert_eq!(vector.value(0), Value::Text("nacre".into()));
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn vector_from_arrow(array: &ArrayRef, data_type: DataType) -> Result<Vector> {
    use arrow_array::cast::AsArray;
    if *array.data_type() == ArrowType::Null {
        return Ok(Vector::constant(data_type, &Value::Null, array.len()));
    }
    let validity = array.logical_nulls().map(|nulls| {
        let mut bitmap = Bitmap::filled(nulls.len(), true);
        (0..nulls.len()).filter(|row| nulls.is_null(*row)).for_each(|row| bitmap.set(row, false));
        bitmap
    });
    let mismatch =
        || Error::type_error(format!("Arrow type {} is not {data_type}", array.data_type()));
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        if dictionary.values().is_empty() {
            return Ok(Vector::constant(data_type, &Value::Null, array.len()));
        }
        let entries = vector_from_arrow(dictionary.values(), data_type)?;
        let keys = dictionary.normalized_keys();
        if data_type.physical() == PhysicalType::Bytes {
            return Ok(coded_texts(&entries, &keys, validity));
        }
        let mut builder = VectorBuilder::new(data_type);
        for (row, key) in keys.into_iter().enumerate() {
            match array.is_null(row) || entries.is_null(key) {
                true => builder.push_null(),
                false => builder.push(&entries.value(key)),
            }
        }
        return Ok(builder.finish());
    }
    macro_rules! native {
        ($arrow:ty) => {
            natives::<$arrow>(array).ok_or_else(mismatch)?.into_iter()
        };
    }
    let integers = |array: &ArrayRef| -> Result<Vec<i64>> {
        Ok(match array.data_type() {
            ArrowType::Int8 => native!(Int8Type).map(|v| v as i64).collect(),
            ArrowType::Int16 => native!(Int16Type).map(|v| v as i64).collect(),
            ArrowType::Int32 => native!(Int32Type).map(|v| v as i64).collect(),
            ArrowType::Int64 => native!(Int64Type).collect(),
            ArrowType::UInt8 => native!(UInt8Type).map(|v| v as i64).collect(),
            ArrowType::UInt16 => native!(UInt16Type).map(|v| v as i64).collect(),
            ArrowType::UInt32 => native!(UInt32Type).map(|v| v as i64).collect(),
            _ => return Err(mismatch()),
        })
    };
    let values = match (data_type, array.data_type()) {
        (DataType::Boolean, ArrowType::Boolean) => {
            Values::Bool(array.as_boolean().values().iter().collect())
        }
        (DataType::UInt64, ArrowType::UInt64) => {
            Values::I128(native!(UInt64Type).map(|v| v as i128).collect())
        }
        (t, _) if t.is_integer() && t != DataType::UInt64 => Values::I64(integers(array)?),
        (DataType::Float32 | DataType::Float64, ArrowType::Float32) => {
            Values::F64(native!(Float32Type).map(|v| v as f64).collect())
        }
        (DataType::Float64, ArrowType::Float64) => Values::F64(native!(Float64Type).collect()),
        (DataType::Decimal { scale, .. }, ArrowType::Decimal128(_, s)) if *s == scale as i8 => {
            let wide = native!(Decimal128Type);
            match data_type.physical() {
                nacre_types::PhysicalType::I64 => {
                    let narrow = wide.map(|v| i64::try_from(v).ok()).collect::<Option<Vec<_>>>();
                    Values::I64(narrow.ok_or_else(|| {
                        Error::out_of_range(format!("value does not fit {data_type}"))
                    })?)
                }
                _ => Values::I128(wide.collect()),
            }
        }
        (DataType::Date, ArrowType::Date32) => {
            Values::I64(native!(Date32Type).map(|v| v as i64).collect())
        }
        (DataType::Date, ArrowType::Date64) => {
            Values::I64(native!(Date64Type).map(|ms| ms.div_euclid(86_400_000)).collect())
        }
        (DataType::Time, ArrowType::Time32(TimeUnit::Second)) => {
            Values::I64(native!(Time32SecondType).map(|s| s as i64 * 1_000_000).collect())
        }
        (DataType::Time, ArrowType::Time32(TimeUnit::Millisecond)) => {
            Values::I64(native!(Time32MillisecondType).map(|ms| ms as i64 * 1_000).collect())
        }
        (DataType::Time, ArrowType::Time64(TimeUnit::Microsecond)) => {
            Values::I64(native!(Time64MicrosecondType).collect())
        }
        (DataType::Time, ArrowType::Time64(TimeUnit::Nanosecond)) => {
            Values::I64(native!(Time64NanosecondType).map(|ns| ns.div_euclid(1_000)).collect())
        }
        (DataType::Timestamp | DataType::TimestampTz, ArrowType::Timestamp(unit, _)) => {
            let values = match unit {
                TimeUnit::Second => scaled(native!(TimestampSecondType), 1_000_000),
                TimeUnit::Millisecond => scaled(native!(TimestampMillisecondType), 1_000),
                TimeUnit::Microsecond => Some(native!(TimestampMicrosecondType).collect()),
                TimeUnit::Nanosecond => {
                    Some(native!(TimestampNanosecondType).map(|ns| ns.div_euclid(1_000)).collect())
                }
            };
            Values::I64(
                values.ok_or_else(|| Error::out_of_range("timestamp does not fit microseconds"))?,
            )
        }
        (DataType::Text { .. } | DataType::Json | DataType::Uuid, ArrowType::Utf8) => {
            return texts(data_type, array.as_string::<i32>().iter());
        }
        (DataType::Text { .. } | DataType::Json | DataType::Uuid, ArrowType::LargeUtf8) => {
            return texts(data_type, array.as_string::<i64>().iter());
        }
        (DataType::Text { .. } | DataType::Json | DataType::Uuid, ArrowType::Utf8View) => {
            return texts(data_type, array.as_string_view().iter());
        }
        (DataType::Binary { .. }, ArrowType::Binary) => {
            return bytes(data_type, array.as_binary::<i32>().iter());
        }
        (DataType::Binary { .. }, ArrowType::LargeBinary) => {
            return bytes(data_type, array.as_binary::<i64>().iter());
        }
        (DataType::Binary { .. }, ArrowType::FixedSizeBinary(_)) => {
            return bytes(data_type, array.as_fixed_size_binary().iter());
        }
        (DataType::Binary { .. }, ArrowType::BinaryView) => {
            return bytes(data_type, array.as_binary_view().iter());
        }
        _ => return Err(mismatch()),
    };
    Ok(Vector::new(data_type, values, validity))
}

/// Decodes dictionary texts, whose entries may repeat. Each text is stored once: many rows may
/// refer to a long one.
pub(super) fn coded_texts(entries: &Vector, keys: &[usize], validity: Option<Bitmap>) -> Vector {
    let mut codes_of: Map<&[u8], u32> = Map::default();
    let mut distinct = BytesColumn::default();
    let mut code_of = |entry: usize| {
        // A null entry: rows that refer to it are null, so its text is never read.
        let text = entries.bytes(entry).unwrap_or_default();
        *codes_of.entry(text).or_insert_with(|| {
            distinct.push(text);
            distinct.len() as u32 - 1
        })
    };
    let entry_codes: Vec<u32> = (0..entries.len()).map(&mut code_of).collect();
    let codes = keys.iter().map(|key| entry_codes[*key]).collect();
    Vector::dictionary(entries.data_type(), codes, Arc::new(Values::Bytes(distinct)), validity)
}

pub(super) fn bytes<'a>(
    data_type: DataType,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<Vector> {
    let (mut builder, mut room) = (VectorBuilder::new(data_type), u32::MAX as usize);
    for value in values {
        let Some(value) = value else {
            builder.push_null();
            continue;
        };
        room = room
            .checked_sub(value.len())
            .ok_or_else(|| Error::limit("an array of more than 4 GiB of texts"))?;
        builder.push_bytes(value);
    }
    Ok(builder.finish())
}

pub(super) fn texts<'a>(
    data_type: DataType,
    values: impl Iterator<Item = Option<&'a str>> + Clone,
) -> Result<Vector> {
    if data_type == DataType::Uuid {
        let mut uuids = VectorBuilder::new(data_type);
        for value in values {
            let not = |text| {
                Error::type_error(format!("'{text}' is not a valid UUID")).with_sqlstate("22P02")
            };
            match value.map(|text| uuid::parse(text).ok_or_else(|| not(text))).transpose()? {
                Some(uuid) => uuids.push_i128(uuid::pack(uuid)),
                None => uuids.push_null(),
            }
        }
        return Ok(uuids.finish());
    }
    if data_type == DataType::Json {
        let normal = |value: Option<&'a str>| value.map(nacre_types::json::normal).transpose();
        let normal = values.map(normal).collect::<Result<Vec<_>>>()?;
        return bytes(data_type, normal.iter().map(|v| v.as_ref().map(|text| text.as_bytes())));
    }
    bytes(data_type, values.map(|value| value.map(str::as_bytes)))
}

/// The values of an array of this type, with zeroes at null rows, where an array may contain
/// anything.
fn natives<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<Vec<T::Native>> {
    use arrow_array::cast::AsArray;
    let array = array.as_primitive_opt::<T>()?;
    Some(match array.null_count() {
        0 => array.values().to_vec(),
        _ => array.iter().map(Option::unwrap_or_default).collect(),
    })
}

pub(super) fn scaled(values: impl Iterator<Item = i64>, by: i64) -> Option<Vec<i64>> {
    values.map(|value| value.checked_mul(by)).collect()
}
