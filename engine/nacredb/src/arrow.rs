//! Arrow in and out. Each data type maps to one Arrow type both ways; `DECIMAL` to `Decimal128`,
//! `TIMESTAMP` to microseconds without a zone, `JSON` to `Utf8` marked as the `arrow.json` extension.

use crate::result::QueryResult;
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, NullArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano, NullBuffer, ScalarBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{
    ArrowError, DataType as ArrowType, Field as ArrowField, Schema, SchemaRef, TimeUnit,
};
use nacre_column::{Batch, Bitmap, BytesColumn, Values, Vector, VectorBuilder};
use nacre_sql::Field;
use nacre_types::hash::Map;
use nacre_types::{DataType, Error, Interval, PhysicalType, Result, TableSchema, Value};
use std::sync::Arc;

const EXTENSION_NAME: &str = "ARROW:extension:name";
const JSON_EXTENSION: &str = "arrow.json";

fn arrow_error(error: ArrowError) -> Error {
    Error::type_error(format!("Arrow: {error}"))
}

/// The Arrow type of a data type.
pub fn type_to_arrow(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Null => ArrowType::Null,
        DataType::Boolean => ArrowType::Boolean,
        DataType::Int8 => ArrowType::Int8,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 => ArrowType::Int64,
        DataType::UInt8 => ArrowType::UInt8,
        DataType::UInt16 => ArrowType::UInt16,
        DataType::UInt32 => ArrowType::UInt32,
        DataType::UInt64 => ArrowType::UInt64,
        DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
        DataType::Text { .. } | DataType::Json => ArrowType::Utf8,
        DataType::Binary { .. } => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Interval => ArrowType::Interval(arrow_schema::IntervalUnit::MonthDayNano),
    }
}

/// The data type of an Arrow field; `unsupported` for nested and exotic ones.
pub fn type_from_arrow(field: &ArrowField) -> Result<DataType> {
    Ok(match field.data_type() {
        ArrowType::Null => DataType::TEXT,
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::Int8,
        ArrowType::Int16 => DataType::Int16,
        ArrowType::Int32 => DataType::Int32,
        ArrowType::Int64 => DataType::Int64,
        ArrowType::UInt8 => DataType::UInt8,
        ArrowType::UInt16 => DataType::UInt16,
        ArrowType::UInt32 => DataType::UInt32,
        ArrowType::UInt64 => DataType::UInt64,
        ArrowType::Float32 => DataType::Float32,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Decimal128(precision, scale) if *scale >= 0 => {
            DataType::Decimal { precision: *precision, scale: *scale as u8 }
        }
        ArrowType::Utf8
            if field.metadata().get(EXTENSION_NAME).is_some_and(|n| n == JSON_EXTENSION) =>
        {
            DataType::Json
        }
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::TEXT,
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => DataType::BLOB,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, _) => DataType::Timestamp,
        ArrowType::Dictionary(_, value) => {
            return type_from_arrow(&field.clone().with_data_type((**value).clone()));
        }
        other => {
            return Err(Error::unsupported(format!(
                "Arrow type {other} of column {}",
                field.name()
            )));
        }
    })
}

/// The Arrow field of a result column.
pub fn field_to_arrow(field: &Field) -> ArrowField {
    let arrow = ArrowField::new(&field.name, type_to_arrow(field.data_type), field.nullable);
    if field.data_type == DataType::Json {
        return arrow.with_metadata([(EXTENSION_NAME, JSON_EXTENSION)]);
    }
    arrow
}

fn nulls(vector: &Vector) -> Option<NullBuffer> {
    vector.validity().map(|validity| {
        let bytes: Vec<u8> = validity.words().iter().flat_map(|w| w.to_le_bytes()).collect();
        NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bytes), 0, validity.len()))
    })
}

fn primitive<T: ArrowPrimitiveType>(vector: &Vector, values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls(vector)))
}

/// A vector as an Arrow array. `limit` when its texts are more than Arrow's 2 GiB.
pub fn vector_to_arrow(vector: &Vector) -> Result<ArrayRef> {
    if vector.data_type().physical() == PhysicalType::Bytes {
        return texts_to_arrow(vector);
    }
    let values = vector.flat();
    let narrow = |what: &Values| match what {
        Values::I64(v) => v.clone(),
        _ => Vec::new(),
    };
    macro_rules! ints {
        ($arrow:ty, $native:ty) => {
            primitive::<$arrow>(vector, narrow(&values).into_iter().map(|v| v as $native).collect())
        };
    }
    Ok(match (vector.data_type(), &*values) {
        (DataType::Null, _) => Arc::new(NullArray::new(vector.len())),
        (DataType::Boolean, Values::Bool(v)) => {
            Arc::new(BooleanArray::new(BooleanBuffer::from(v.as_slice()), nulls(vector)))
        }
        (DataType::Int8, _) => ints!(Int8Type, i8),
        (DataType::Int16, _) => ints!(Int16Type, i16),
        (DataType::Int32, _) => ints!(Int32Type, i32),
        (DataType::Int64, _) => ints!(Int64Type, i64),
        (DataType::UInt8, _) => ints!(UInt8Type, u8),
        (DataType::UInt16, _) => ints!(UInt16Type, u16),
        (DataType::UInt32, _) => ints!(UInt32Type, u32),
        (DataType::Date, _) => ints!(Date32Type, i32),
        (DataType::Time, _) => ints!(Time64MicrosecondType, i64),
        (DataType::Timestamp, _) => ints!(TimestampMicrosecondType, i64),
        (DataType::UInt64, Values::I128(v)) => {
            primitive::<UInt64Type>(vector, v.iter().map(|v| *v as u64).collect())
        }
        (DataType::Float32, Values::F64(v)) => {
            primitive::<Float32Type>(vector, v.iter().map(|v| *v as f32).collect())
        }
        (DataType::Float64, Values::F64(v)) => primitive::<Float64Type>(vector, v.clone()),
        (DataType::Decimal { precision, scale }, values) => {
            let wide: Vec<i128> = match values {
                Values::I64(v) => v.iter().map(|v| *v as i128).collect(),
                Values::I128(v) => v.clone(),
                _ => Vec::new(),
            };
            let array =
                PrimitiveArray::<Decimal128Type>::new(ScalarBuffer::from(wide), nulls(vector));
            Arc::new(array.with_precision_and_scale(precision, scale as i8).map_err(arrow_error)?)
        }
        (DataType::Interval, Values::I128(v)) => {
            let convert = |packed: &i128| {
                let i = Interval::unpack(*packed);
                let nanos = i.micros.checked_mul(1_000);
                nanos.map(|n| IntervalMonthDayNano::new(i.months, i.days, n))
            };
            let converted: Option<Vec<_>> = v.iter().map(convert).collect();
            let converted = converted
                .ok_or_else(|| Error::out_of_range("interval does not fit Arrow's nanoseconds"))?;
            primitive::<IntervalMonthDayNanoType>(vector, converted)
        }
        (data_type, _) => return Err(Error::unsupported(format!("{data_type} in Arrow"))),
    })
}

fn texts_to_arrow(vector: &Vector) -> Result<ArrayRef> {
    let (rows, bytes) = (vector.len(), vector.flat_bytes());
    if bytes > i32::MAX as usize {
        return Err(Error::limit(format!(
            "{rows} texts of {bytes} bytes: an Arrow array has 2 GiB at most"
        )));
    }
    if let DataType::Binary { .. } = vector.data_type() {
        let mut builder = BinaryBuilder::with_capacity(rows, bytes);
        (0..rows).for_each(|row| builder.append_option(vector.bytes(row)));
        return Ok(Arc::new(builder.finish()));
    }
    let mut builder = StringBuilder::with_capacity(rows, bytes);
    (0..rows).for_each(|row| builder.append_option(vector.bytes(row).map(String::from_utf8_lossy)));
    Ok(Arc::new(builder.finish()))
}

/// The Arrow schema of result columns.
pub fn schema_of(columns: &[Field]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(field_to_arrow).collect::<Vec<_>>()))
}

/// Rows without a selection as a record batch of their schema.
pub fn batch_to_arrow(batch: &Batch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns.iter().map(|c| vector_to_arrow(c)).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}

/// Record batches as an Arrow IPC stream.
pub fn to_ipc_stream(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema).map_err(arrow_error)?;
    for batch in batches {
        writer.write(batch).map_err(arrow_error)?;
    }
    writer.finish().map_err(arrow_error)?;
    writer.into_inner().map_err(arrow_error)
}

impl QueryResult {
    /// The Arrow schema of the rows.
    pub fn arrow_schema(&self) -> SchemaRef {
        schema_of(&self.columns)
    }

    /// The rows as Arrow record batches.
    pub fn to_record_batches(&self) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        self.batches.iter().map(|batch| batch_to_arrow(batch, &schema)).collect()
    }

    /// The rows as an Arrow IPC stream.
    pub fn to_arrow_ipc(&self) -> Result<Vec<u8>> {
        to_ipc_stream(&self.arrow_schema(), &self.to_record_batches()?)
    }
}

/// A record batch as rows of a table. Columns are taken in order and must be of the tables' types, or of a
/// narrower integer, text or binary layout of them; `type` otherwise.
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

/// An Arrow array as a vector of a data type. Text that is no JSON is refused as `JSON`; whether values are in the range
/// of a type is looked at when they are written.
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
        (DataType::Timestamp, ArrowType::Timestamp(unit, _)) => {
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
        (DataType::Text { .. } | DataType::Json, ArrowType::Utf8) => {
            return texts(data_type, array.as_string::<i32>().iter());
        }
        (DataType::Text { .. } | DataType::Json, ArrowType::LargeUtf8) => {
            return texts(data_type, array.as_string::<i64>().iter());
        }
        (DataType::Text { .. } | DataType::Json, ArrowType::Utf8View) => {
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

/// Texts of a dictionary, which may repeat entries; they stay there once, for long ones may be named by many rows.
fn coded_texts(entries: &Vector, keys: &[usize], validity: Option<Bitmap>) -> Vector {
    let mut codes_of: Map<&[u8], u32> = Map::default();
    let mut distinct = BytesColumn::default();
    let mut code_of = |entry: usize| {
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

fn bytes<'a>(
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

fn texts<'a>(
    data_type: DataType,
    values: impl Iterator<Item = Option<&'a str>> + Clone,
) -> Result<Vector> {
    if data_type == DataType::Json {
        values.clone().flatten().try_for_each(nacre_types::json::check)?;
    }
    bytes(data_type, values.map(|value| value.map(str::as_bytes)))
}

/// The values of an array of this type, with zeroes for what is null: an array may have anything there.
fn natives<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<Vec<T::Native>> {
    use arrow_array::cast::AsArray;
    let array = array.as_primitive_opt::<T>()?;
    Some(match array.null_count() {
        0 => array.values().to_vec(),
        _ => array.iter().map(Option::unwrap_or_default).collect(),
    })
}

fn scaled(values: impl Iterator<Item = i64>, by: i64) -> Option<Vec<i64>> {
    values.map(|value| value.checked_mul(by)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use arrow_array::builder::FixedSizeBinaryBuilder;
    use arrow_array::{
        Date64Array, DictionaryArray, StringArray, Time32MillisecondArray, Time32SecondArray,
    };
    use arrow_array::{Time64NanosecondArray, TimestampSecondArray, new_null_array};
    use nacre_types::ErrorKind;

    fn values(array: ArrayRef) -> Vec<Value> {
        let data_type =
            type_from_arrow(&ArrowField::new("a", array.data_type().clone(), true)).unwrap();
        let vector = vector_from_arrow(&array, data_type).unwrap();
        (0..vector.len()).map(|row| vector.value(row)).collect()
    }

    #[test]
    fn every_type_that_is_taken_is_read() {
        use ArrowType::*;
        let unit =
            [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
        let mut types = vec![
            Null, Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32,
            Float64,
        ];
        types.extend([
            Decimal128(5, 2),
            Decimal128(38, 10),
            Utf8,
            LargeUtf8,
            Utf8View,
            Binary,
            LargeBinary,
            BinaryView,
        ]);
        types.extend([FixedSizeBinary(16), Date32, Date64, Time32(unit[0]), Time32(unit[1])]);
        types.extend([Time64(unit[2]), Time64(unit[3])]);
        types.extend(unit.map(|unit| Timestamp(unit, Some("UTC".into()))));
        types.extend([Utf8, Int32].map(|entry| Dictionary(Box::new(Int8), Box::new(entry))));
        for arrow in types {
            assert_eq!(values(new_null_array(&arrow, 2)), [Value::Null, Value::Null], "{arrow}");
        }
        for nested in [Float16, Decimal256(40, 2), new_list()] {
            let error = type_from_arrow(&ArrowField::new("a", nested, true)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }

    fn new_list() -> ArrowType {
        ArrowType::List(Arc::new(ArrowField::new("item", ArrowType::Int32, true)))
    }

    #[test]
    fn units_are_those_of_the_type() {
        assert_eq!(
            values(Arc::new(Date64Array::from(vec![-1, 86_400_000]))),
            [Value::Date(-1), Value::Date(1)]
        );
        assert_eq!(values(Arc::new(Time32SecondArray::from(vec![61]))), [Value::Time(61_000_000)]);
        assert_eq!(values(Arc::new(Time32MillisecondArray::from(vec![61]))), [Value::Time(61_000)]);
        assert_eq!(values(Arc::new(Time64NanosecondArray::from(vec![61_999]))), [Value::Time(61)]);
        let mut uuids = FixedSizeBinaryBuilder::new(2);
        uuids.append_value([1, 2]).unwrap();
        uuids.append_null();
        assert_eq!(values(Arc::new(uuids.finish())), [Value::Binary(vec![1, 2]), Value::Null]);
        let words: DictionaryArray<Int8Type> =
            vec![Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(values(Arc::new(words)), [text("b"), Value::Null, text("a"), text("b")]);
    }

    #[test]
    fn a_text_that_many_rows_name_is_not_copied() {
        let entries = Arc::new(StringArray::from(vec![
            Some("a"),
            Some(&*"x".repeat(1 << 20)),
            None,
            Some("a"),
        ]));
        let long = DictionaryArray::<Int8Type>::new(vec![1; 5_000].into(), entries.clone());
        let vector = vector_from_arrow(&(Arc::new(long) as ArrayRef), DataType::TEXT).unwrap();
        assert_eq!(
            (vector.flat_bytes(), vector.bytes(4_999).map(<[u8]>::len)),
            (5_000 << 20, Some(1 << 20))
        );
        assert_eq!(vector_to_arrow(&vector).unwrap_err().kind(), ErrorKind::Limit);
        let all = DictionaryArray::<Int8Type>::new(vec![3, 2, 0].into(), entries);
        let text = Value::Text("a".into());
        assert_eq!(values(Arc::new(all)), [text.clone(), Value::Null, text]);
    }

    #[test]
    fn what_lies_under_a_null_does_not_matter() {
        let nulls = NullBuffer::from(vec![false, true]);
        let array = TimestampSecondArray::new(vec![i64::MAX, 1].into(), Some(nulls));
        assert_eq!(values(Arc::new(array)), [Value::Null, Value::Timestamp(1_000_000)]);
        let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        assert_eq!(vector_from_arrow(&far, DataType::Timestamp).unwrap_err().sqlstate(), "22003");
    }

    #[test]
    fn text_is_json_or_refused() {
        let array: ArrayRef = Arc::new(StringArray::from(vec![Some("{\"a\": [1]}"), None]));
        assert_eq!(vector_from_arrow(&array, DataType::Json).unwrap().len(), 2);
        let array: ArrayRef = Arc::new(StringArray::from(vec!["{\"a\": [1}"]));
        assert_eq!(vector_from_arrow(&array, DataType::Json).unwrap_err().sqlstate(), "22032");
    }
}
