//! Streams in pieces, of every type, cut and damaged.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::ArrowStreamReader;
use crate::arrow::{batch_from_arrow, to_ipc_stream};
use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array,
    DictionaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray,
    Time32SecondArray, Time64NanosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::NullBuffer;
use nacre_column::Batch;
use nacre_types::{Column, ColumnRule, DataType, ErrorKind, Result, TableSchema, Value};
use std::sync::Arc;

fn table(columns: &[(&str, DataType)]) -> Arc<TableSchema> {
    let column = |(at, (name, data_type)): (usize, &(&str, DataType))| Column {
        id: at as u32,
        name: name.to_string(),
        data_type: *data_type,
        nullable: true,
        default: Value::Null,
        rule: ColumnRule::Constant,
    };
    let columns = columns.iter().enumerate().map(column).collect();
    Arc::new(TableSchema { name: "t".into(), columns, ..TableSchema::default() })
}

/// Arrays of every type that is taken, with the type of their column.
fn arrays() -> Vec<(DataType, ArrayRef)> {
    let decimal = |precision| DataType::Decimal { precision, scale: 2 };
    let wide = |precision: u8, values: Vec<Option<i128>>| -> ArrayRef {
        let array = Decimal128Array::from(values).with_precision_and_scale(precision, 2);
        Arc::new(array.unwrap())
    };
    let garbage = NullBuffer::from(vec![true, false, true]);
    let mut fixed = FixedSizeBinaryBuilder::new(2);
    fixed.append_value([1, 2]).unwrap();
    fixed.append_null();
    fixed.append_value([0, 255]).unwrap();
    let words: DictionaryArray<Int8Type> = vec![Some("b"), None, Some("b")].into_iter().collect();
    let numbers = DictionaryArray::<UInt16Type>::new(
        UInt16Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(Int32Array::from(vec![7, -7])),
    );
    let binary = vec![Some(&b"\xff"[..]), None, Some(b"")];
    vec![
        (DataType::Int32, Arc::new(NullArray::new(3))),
        (DataType::Boolean, Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        (DataType::Int8, Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)]))),
        (DataType::Int64, Arc::new(Int16Array::from(vec![-1, 0, 1]))),
        (DataType::Int32, Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(2)]))),
        (DataType::Int64, Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(2)]))),
        (DataType::Int16, Arc::new(UInt8Array::from(vec![0, 1, 255]))),
        (DataType::UInt16, Arc::new(UInt16Array::from(vec![0, 1, 65_535]))),
        (DataType::Int64, Arc::new(UInt32Array::from(vec![0, 1, u32::MAX]))),
        (DataType::UInt64, Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(1)]))),
        (DataType::Float64, Arc::new(Float32Array::from(vec![1.5, -0.0, f32::NAN]))),
        (DataType::Float64, Arc::new(Float64Array::from(vec![Some(1e300), None, Some(-0.0)]))),
        (decimal(9), wide(9, vec![Some(-5), None, Some(12_345)])),
        (decimal(38), wide(38, vec![Some(i128::MAX / 2), None, Some(-1)])),
        (DataType::Date, Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)]))),
        (DataType::Date, Arc::new(Date64Array::from(vec![-1, 0, 86_400_000]))),
        (DataType::Time, Arc::new(Time32SecondArray::from(vec![0, 1, 86_399]))),
        (DataType::Time, Arc::new(Time64NanosecondArray::from(vec![0, 61_999, 1]))),
        (DataType::Timestamp, Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1]))),
        (DataType::Timestamp, Arc::new(TimestampNanosecondArray::from(vec![-1, 0, 1_001]))),
        (
            DataType::Timestamp,
            Arc::new(TimestampSecondArray::new(vec![1, i64::MAX, 3].into(), Some(garbage))),
        ),
        (
            DataType::TimestampTz,
            Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1]).with_timezone("+02:00")),
        ),
        (
            DataType::Uuid,
            Arc::new(StringArray::from(vec![
                Some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
                None,
                Some("{FFFFFFFF-0000-0000-0000-000000000001}"),
            ])),
        ),
        (DataType::TEXT, Arc::new(StringArray::from(vec![Some("ä"), None, Some("")]))),
        (DataType::Json, Arc::new(LargeStringArray::from(vec![Some("[1]"), None, Some("{}")]))),
        (DataType::BLOB, Arc::new(BinaryArray::from(binary.clone()))),
        (DataType::BLOB, Arc::new(LargeBinaryArray::from(binary))),
        (DataType::BLOB, Arc::new(fixed.finish())),
        (DataType::TEXT, Arc::new(words)),
        (DataType::Int32, Arc::new(numbers)),
    ]
}

/// All of them as one batch, its table, and its stream with two batches.
fn sample() -> (Arc<TableSchema>, RecordBatch, Vec<u8>) {
    let arrays = arrays();
    let names: Vec<String> = (0..arrays.len()).map(|at| format!("c{at}")).collect();
    let columns: Vec<(&str, DataType)> =
        names.iter().zip(&arrays).map(|(name, (data_type, _))| (&**name, *data_type)).collect();
    let batch = RecordBatch::try_from_iter_with_nullable(
        names.iter().zip(&arrays).map(|(name, (_, array))| (name, array.clone(), true)),
    )
    .unwrap();
    let stream = to_ipc_stream(&batch.schema(), &[batch.clone(), batch.slice(1, 2)]).unwrap();
    (table(&columns), batch, stream)
}

fn rows(batches: &[Batch]) -> Vec<String> {
    let row = |batch: &Batch, row: usize| format!("{:?}", batch.row(row));
    batches.iter().flat_map(|b| (0..b.rows).map(move |at| row(b, at))).collect()
}

fn read(table: &Arc<TableSchema>, pieces: impl Iterator<Item = Vec<u8>>) -> Result<Vec<Batch>> {
    let mut reader = ArrowStreamReader::new(table.clone());
    let mut batches = Vec::new();
    for piece in pieces {
        batches.extend(reader.push(&piece)?);
    }
    reader.end()?;
    Ok(batches)
}

#[test]
fn every_type_is_read_as_from_arrays_whatever_the_pieces() {
    let (table, batch, stream) = sample();
    let expected: Vec<Batch> = [batch.clone(), batch.slice(1, 2)]
        .iter()
        .map(|batch| batch_from_arrow(batch, &table).unwrap())
        .collect();
    for length in [1, 7, 64, 1_000, stream.len()] {
        let found = read(&table, stream.chunks(length).map(<[u8]>::to_vec)).unwrap();
        assert_eq!(rows(&found), rows(&expected), "pieces of {length}");
    }
    // One stream after another, in one piece.
    let twice = [stream.clone(), stream].concat();
    assert_eq!(rows(&read(&table, std::iter::once(twice)).unwrap()).len(), 10);
}

#[test]
fn columns_are_matched_by_name_and_have_defaults() {
    let batch = RecordBatch::try_from_iter([
        ("B", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
        ("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
    ])
    .unwrap();
    let stream = to_ipc_stream(&batch.schema(), &[batch]).unwrap();
    let read = |columns: &[(&str, DataType)]| {
        let mut table = (*table(columns)).clone();
        table.columns[0].default = Value::Int(7);
        read(&Arc::new(table), std::iter::once(stream.clone()))
    };
    let (int, text) = (DataType::Int32, DataType::TEXT);
    let found = read(&[("n", int), ("a", int), ("b", text), ("c", text)]).unwrap();
    let x = Value::Text("x".into());
    assert_eq!(found[0].row(0), [Value::Int(7), Value::Int(1), x, Value::Null]);
    for (types, kind) in [([int, int], ErrorKind::NotFound), ([text, text], ErrorKind::Type)] {
        let names = if kind == ErrorKind::Type { ["a", "b"] } else { ["n", "a"] };
        let columns = [(names[0], types[0]), (names[1], types[1])];
        assert_eq!(read(&columns).unwrap_err().kind(), kind);
    }
}

#[test]
fn what_is_not_taken_says_so() {
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a view"]));
    let batch = RecordBatch::try_from_iter([("a", views)]).unwrap();
    let stream = to_ipc_stream(&batch.schema(), &[batch]).unwrap();
    let table = table(&[("a", DataType::TEXT)]);
    let error = read(&table, std::iter::once(stream)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("Utf8View"), "{error}");
    for bytes in
        [&b""[..], b"ARROW1\0\0 is the beginning of a file", b"id,name\n1,pearl\n", &[0; 100]]
    {
        assert!(read(&table, std::iter::once(bytes.to_vec())).is_err());
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_refused_or_ends_with_a_message() {
    let (table, _, stream) = sample();
    let mut whole = 0;
    for cut in 0..stream.len() {
        match read(&table, std::iter::once(stream[..cut].to_vec())) {
            Ok(_) => whole += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{cut}: {error}"),
        }
    }
    // After the schema, each of two dictionaries, and each batch.
    assert!((3..10).contains(&whole), "{whole}");
}

#[test]
fn damage_is_refused_or_read_and_never_ends_the_process() {
    let (table, _, stream) = sample();
    for at in 0..stream.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = stream.clone();
            damaged[at] ^= flip;
            if let Ok(batches) = read(&table, std::iter::once(damaged)) {
                rows(&batches);
            }
        }
    }
}
