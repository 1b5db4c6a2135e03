//! Conversion of vectors and batches to Arrow arrays, record batches and IPC streams.

use super::types::field_to_arrow;
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, NullArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow_buffer::{BooleanBuffer, Buffer, IntervalMonthDayNano, NullBuffer, ScalarBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use nacre_column::{Batch, Values, Vector, VectorBuilder};
use nacre_sql::Field;
use nacre_types::{DataType, Error, Interval, PhysicalType, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

fn arrow_error(error: ArrowError) -> Error {
    Error::type_error(format!("Arrow: {error}"))
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

/// Converts a vector to an Arrow array.
///
/// Errors: `limit` if its texts exceed the 2 GiB of an Arrow array; `type` if an interval is out of
/// range of Arrow's nanoseconds.
///
/// ```
/// use nacredb::arrow::vector_to_arrow;
/// use nacredb::{DataType, Value, Vector};
///
/// let vector = Vector::from_values(DataType::Int64, &[Value::Int(7), Value::Null]);
/// let array = vector_to_arrow(&vector)?;
/// assert_eq!((array.len(), array.null_count()), (2, 1));
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn vector_to_arrow(vector: &Vector) -> Result<ArrayRef> {
    if vector.data_type().physical() == PhysicalType::Bytes {
        return texts_to_arrow(vector);
    }
    if vector.data_type() == DataType::Uuid {
        return texts_to_arrow(&texts_of(vector));
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
        (DataType::TimestampTz, _) => {
            let Values::I64(micros) = &*values else {
                return Err(Error::unsupported("TIMESTAMPTZ in Arrow"));
            };
            let array = PrimitiveArray::<TimestampMicrosecondType>::new(
                ScalarBuffer::from(micros.clone()),
                nulls(vector),
            );
            Arc::new(array.with_timezone("UTC"))
        }
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

/// The texts of values that have a form as text only.
pub(super) fn texts_of(vector: &Vector) -> Vector {
    let mut texts = VectorBuilder::new(DataType::TEXT);
    for row in 0..vector.len() {
        match vector.value(row) {
            Value::Null => texts.push_null(),
            value => texts.push_bytes(value.to_string().as_bytes()),
        }
    }
    texts.finish()
}

/// Checks that the texts of a vector fit in one Arrow array.
pub(super) fn within_array(vector: &Vector) -> Result<()> {
    let (rows, bytes) = (vector.len(), vector.flat_bytes());
    if bytes > i32::MAX as usize {
        return Err(Error::limit(format!(
            "{rows} texts of {bytes} bytes: an Arrow array has 2 GiB at most"
        )));
    }
    Ok(())
}

/// A text, with what is not UTF-8 replaced.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn texts_to_arrow(vector: &Vector) -> Result<ArrayRef> {
    within_array(vector)?;
    let (rows, bytes) = (vector.len(), vector.flat_bytes());
    if let DataType::Binary { .. } = vector.data_type() {
        let mut builder = BinaryBuilder::with_capacity(rows, bytes);
        (0..rows).for_each(|row| builder.append_option(vector.bytes(row)));
        return Ok(Arc::new(builder.finish()));
    }
    let mut builder = StringBuilder::with_capacity(rows, bytes);
    (0..rows).for_each(|row| builder.append_option(vector.bytes(row).map(lossy)));
    Ok(Arc::new(builder.finish()))
}

/// The Arrow schema of result columns.
///
/// ```
/// use nacredb::arrow::schema_of;
/// use nacredb::{DataType, Field};
///
/// let columns = [Field { name: "id".into(), data_type: DataType::Int64, nullable: false }];
/// assert_eq!(schema_of(&columns).field(0).name(), "id");
/// ```
pub fn schema_of(columns: &[Field]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(field_to_arrow).collect::<Vec<_>>()))
}

/// Converts rows without a selection to a record batch of the schema.
///
/// Errors: those of [`vector_to_arrow`]; `type` if the columns do not match the schema.
///
/// ```
/// use nacredb::arrow::{batch_to_arrow, schema_of};
/// use nacredb::{Batch, DataType, Field, Value, Vector};
/// use std::sync::Arc;
///
/// let columns = [Field { name: "id".into(), data_type: DataType::Int64, nullable: false }];
/// let ids = Vector::from_values(DataType::Int64, &[Value::Int(1), Value::Int(2)]);
/// let batch = Batch::new(vec![Arc::new(ids)], 2);
/// assert_eq!(batch_to_arrow(&batch, &schema_of(&columns))?.num_rows(), 2);
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn batch_to_arrow(batch: &Batch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns.iter().map(|c| vector_to_arrow(c)).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(arrow_error)
}

/// Encodes record batches as an Arrow IPC stream. Without batches it contains only the schema.
///
/// ```
/// use nacredb::arrow::{schema_of, to_ipc_stream};
/// use nacredb::{DataType, Field};
///
/// let columns = [Field { name: "id".into(), data_type: DataType::Int64, nullable: false }];
/// let bytes = to_ipc_stream(&schema_of(&columns), &[])?;
/// assert!(!bytes.is_empty());
/// # Ok::<(), nacredb::Error>(())
/// ```
pub fn to_ipc_stream(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema).map_err(arrow_error)?;
    for batch in batches {
        writer.write(batch).map_err(arrow_error)?;
    }
    writer.finish().map_err(arrow_error)?;
    writer.into_inner().map_err(arrow_error)
}
