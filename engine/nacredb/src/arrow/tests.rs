//! Arrow arrays of every type, and rejected ones.

#![allow(clippy::unwrap_used)]

use super::export::{batch_to_arrow, schema_of, to_ipc_stream, vector_to_arrow};
use super::import::vector_from_arrow;
use super::stream::rows_to_ipc_stream;
use super::types::type_from_arrow;
use arrow_array::ArrayRef;
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::Int8Type;
use arrow_array::{
    Date64Array, DictionaryArray, StringArray, Time32MillisecondArray, Time32SecondArray,
};
use arrow_array::{Time64NanosecondArray, TimestampSecondArray, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as ArrowType, Field as ArrowField, TimeUnit};
use nacre_column::{Batch, Vector};
use nacre_sql::Field;
use nacre_types::{DataType, ErrorKind, Interval, Value};
use std::sync::Arc;

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
        Null, Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64,
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
    let entries =
        Arc::new(StringArray::from(vec![Some("a"), Some(&*"x".repeat(1 << 20)), None, Some("a")]));
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

/// Some rows of every type, with and without nulls, flat, constant and from a dictionary.
fn samples() -> Vec<Vec<Vector>> {
    let text = |text: &str| Value::Text(text.into());
    let decimal = |precision| DataType::Decimal { precision, scale: 2 };
    let interval = Interval { months: -2, days: 3, micros: 4_000_001 };
    let of = |data_type, values: [Value; 2]| (data_type, values);
    let types = [
        of(DataType::Null, [Value::Null, Value::Null]),
        of(DataType::Boolean, [Value::Boolean(true), Value::Boolean(false)]),
        of(DataType::Int8, [-128, 127].map(Value::Int)),
        of(DataType::Int16, [-32_768, 32_767].map(Value::Int)),
        of(DataType::Int32, [-1, i32::MAX as i64].map(Value::Int)),
        of(DataType::Int64, [i64::MIN, 1].map(Value::Int)),
        of(DataType::UInt8, [0, 255].map(Value::Int)),
        of(DataType::UInt16, [0, 65_535].map(Value::Int)),
        of(DataType::UInt32, [0, u32::MAX as i64].map(Value::Int)),
        of(DataType::UInt64, [Value::UInt(u64::MAX), Value::UInt(7)]),
        of(DataType::Float32, [1.5, -0.0].map(Value::Float)),
        of(DataType::Float64, [f64::NAN, 1e300].map(Value::Float)),
        of(decimal(9), [-5, 12_345].map(|unscaled| Value::Decimal { unscaled, scale: 2 })),
        of(decimal(38), [-5, i128::MAX / 2].map(|unscaled| Value::Decimal { unscaled, scale: 2 })),
        of(DataType::TEXT, [text(""), text("mother-of-pearl")]),
        of(DataType::Json, [text("{}"), text("[1]")]),
        of(DataType::BLOB, [Value::Binary(vec![0xff]), Value::Binary(vec![])]),
        of(DataType::Date, [-1, 20_000].map(Value::Date)),
        of(DataType::Time, [0, 86_399_999_999].map(Value::Time)),
        of(DataType::Timestamp, [-1, 1_000_000].map(Value::Timestamp)),
        of(DataType::TimestampTz, [-1, 1_000_000].map(Value::TimestampTz)),
        of(DataType::Uuid, [0, u128::MAX].map(Value::Uuid)),
        of(DataType::Interval, [Value::Interval(interval), Value::Interval(Interval::default())]),
    ];
    let samples = types.into_iter().map(|(data_type, [one, other])| {
        let rows = |len: usize, null: usize| {
            let value = |row: usize| match row {
                row if row % null == null - 1 => Value::Null,
                row if row.is_multiple_of(3) => one.clone(),
                _ => other.clone(),
            };
            Vector::from_values(data_type, &(0..len).map(value).collect::<Vec<_>>())
        };
        vec![
            rows(100, 7),
            rows(100, 101),
            rows(0, 2),
            rows(70, 1),
            Vector::constant(data_type, &other, 17),
            rows(9, 4).take(&[8, 3, 3, 0]),
        ]
    });
    samples.collect()
}

#[test]
fn a_stream_of_rows_has_the_bytes_of_the_arrays() {
    let samples = samples();
    let columns: Vec<Field> = samples
        .iter()
        .map(|vectors| vectors[0].data_type())
        .map(|data_type| Field { name: data_type.to_string(), data_type, nullable: true })
        .collect();
    let batch = |at: usize| {
        let columns: Vec<_> = samples.iter().map(|all| Arc::new(all[at].clone())).collect();
        let rows = columns[0].len();
        Batch::new(columns, rows)
    };
    let batches: Vec<Batch> = (0..samples[0].len()).map(batch).collect();
    let schema = schema_of(&columns);
    for count in [0, 1, batches.len()] {
        let arrays: Vec<_> =
            batches[..count].iter().map(|b| batch_to_arrow(b, &schema).unwrap()).collect();
        let expected = to_ipc_stream(&schema, &arrays).unwrap();
        assert!(rows_to_ipc_stream(&columns, &batches[..count]).unwrap() == expected, "{count}");
    }
}

#[test]
fn an_interval_beyond_nanoseconds_is_no_stream() {
    let data_type = DataType::Interval;
    let far = Value::Interval(Interval { months: 0, days: 0, micros: i64::MAX });
    let batch = Batch::new(vec![Arc::new(Vector::from_values(data_type, &[far]))], 1);
    let columns = [Field { name: "i".into(), data_type, nullable: false }];
    assert_eq!(rows_to_ipc_stream(&columns, &[batch]).unwrap_err().sqlstate(), "22003");
}
