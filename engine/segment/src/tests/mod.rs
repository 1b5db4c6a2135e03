//! Segments in a memory store. Round trips are here; damage, search against a model, the cache and
//! large segments in the neighbouring files.

mod cache;
mod damage;
mod documents;
mod large;
mod parts;
mod search;

use crate::{BlockCache, ColumnSpec, Segment, SegmentBuilder};
use nacre_column::{Batch, Form, Values, Vector};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::hash::hash_u64;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, ErrorKind, Result, Value, key};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn pseudo(seed: usize) -> u64 {
    hash_u64(seed as u64 + 1)
}

fn spec(id: u32, data_type: DataType, nullable: bool) -> ColumnSpec {
    ColumnSpec { id, data_type, nullable }
}

fn text(s: impl Into<String>) -> Value {
    Value::Text(s.into())
}

/// Every type, with and without nulls, in shapes that lead to every encoding.
fn all_specs() -> Vec<ColumnSpec> {
    use DataType::*;
    let types = [
        Boolean,
        Int8,
        Int32,
        Int64,
        UInt64,
        Float32,
        Float64,
        Decimal { precision: 12, scale: 2 },
        Decimal { precision: 38, scale: 4 },
        Text { max_chars: Some(40) },
        DataType::TEXT,
        DataType::TEXT,
        DataType::BLOB,
        Date,
        Time,
        Timestamp,
        Json,
    ];
    types.into_iter().enumerate().map(|(i, t)| spec(10 + i as u32, t, i % 2 == 0)).collect()
}

fn all_row(row: usize) -> Vec<Value> {
    let r = pseudo(row);
    let n = row as i64;
    let mut values = vec![
        Value::Boolean(r.is_multiple_of(3)),
        Value::Int((r % 256) as i64 - 128),
        Value::Int(n * 3 - 70_000),
        Value::Int(if row.is_multiple_of(97) { i64::MAX - n } else { i64::MIN + n }),
        Value::UInt(r | 1 << 63),
        Value::Float(((r % 1000) as f32 / 8.0) as f64),
        Value::Float(f64::from_bits(r)),
        Value::Decimal { unscaled: (r % 1_000_000) as i128, scale: 2 },
        Value::Decimal { unscaled: (r as i128) << 50, scale: 4 },
        text(["AIR", "RAIL", "SHIP", "TRUCK"][(r % 4) as usize]),
        text(format!(
            "Customer#{r:020} écrit quelque chose d'assez long {}",
            "très ".repeat((r % 5) as usize)
        )),
        text(format!("k{row:07}")),
        Value::Binary(r.to_le_bytes()[..(r % 9) as usize].to_vec()),
        Value::Date((row / 100) as i32),
        Value::Time((r % 86_400_000_000) as i64),
        Value::Timestamp(1_700_000_000_000_000 + n * 1_000_003),
        Value::Json(format!("{{\"a\":{}}}", r % 10)),
    ];
    if let Value::Float(v) = &mut values[6]
        && v.is_nan()
    {
        *v = 0.5;
    }
    for (column, value) in values.iter_mut().enumerate() {
        // The last block of the fourth nullable column is all null.
        if column % 2 == 0
            && (pseudo(row * 31 + column).is_multiple_of(7) || (column == 6 && row >= BLOCK_ROWS))
        {
            *value = Value::Null;
        }
    }
    values
}

fn batches(specs: &[ColumnSpec], rows: &[Vec<Value>], size: usize) -> Vec<Batch> {
    let column = |chunk: &[Vec<Value>], c: usize| {
        Arc::new(Vector::from_values(specs[c].data_type, chunk.iter().map(|row| &row[c])))
    };
    rows.chunks(size)
        .map(|chunk| Batch::new((0..specs.len()).map(|c| column(chunk, c)).collect(), chunk.len()))
        .collect()
}

fn write(specs: &[ColumnSpec], rows: &[Vec<Value>], size: usize) -> Arc<dyn LocalFile> {
    let mut builder = SegmentBuilder::new(specs.to_vec());
    batches(specs, rows, size).iter().for_each(|batch| builder.push(batch));
    assert_eq!(builder.rows(), rows.len());
    let file = MemoryStore::new().create("s").unwrap();
    let bytes = builder.write(&*file).unwrap();
    assert_eq!(bytes, file.len().unwrap());
    file
}

fn open(file: Arc<dyn LocalFile>) -> Result<Segment> {
    Segment::open(file, "7.seg", 7, BlockCache::new(64 << 20))
}

fn segment(specs: &[ColumnSpec], rows: &[Vec<Value>]) -> Segment {
    open(write(specs, rows, 1000)).unwrap()
}

#[test]
fn all_types_round_trip() {
    let specs = all_specs();
    for count in [0, 1, 5, BLOCK_ROWS, BLOCK_ROWS * 2 + 777] {
        let rows: Vec<Vec<Value>> = (0..count).map(all_row).collect();
        let segment = segment(&specs, &rows);
        assert_eq!((segment.rows(), segment.blocks()), (count, count.div_ceil(BLOCK_ROWS)));
        assert_eq!(
            segment.verify().iter().map(|e| e.to_string()).collect::<Vec<_>>(),
            Vec::<String>::new()
        );
        for (column, spec) in specs.iter().enumerate() {
            let meta = &segment.columns().unwrap()[column];
            assert_eq!(
                (meta.id, meta.data_type, meta.nullable),
                (spec.id, spec.data_type, spec.nullable)
            );
            assert_eq!(segment.column_index(spec.id), Some(column));
            assert_eq!(
                meta.null_count as usize,
                rows.iter().filter(|r| r[column].is_null()).count()
            );
            let all = segment.decode(column, 0, count).unwrap();
            (0..count).for_each(|row| {
                assert_eq!(all.value(row), rows[row][column], "{spec:?} row {row}")
            });
            for row in (0..count).step_by(101) {
                assert_eq!(
                    segment.get(column, row).unwrap(),
                    rows[row][column],
                    "{spec:?} row {row}"
                );
            }
            for step in [1, 3, 500, 5000] {
                let some: Vec<u32> = (0..count as u32).step_by(step).collect();
                let taken = segment.take(column, &some).unwrap();
                assert_eq!(taken.len(), some.len());
                for (at, row) in some.iter().enumerate() {
                    assert_eq!(taken.value(at), rows[*row as usize][column], "{spec:?} row {row}");
                }
            }
            assert!(segment.decode(column, count / 2 + 1, count).is_err());
            assert!(
                segment.get(column, count).is_err()
                    && segment.take(column, &[count as u32]).is_err()
            );
        }
        assert!(segment.column_index(1).is_none());
    }
}

#[test]
fn selections_and_all_forms_are_honoured() {
    let specs = [spec(1, DataType::TEXT, true), spec(2, DataType::Int64, false)];
    let words =
        Arc::new(Vector::from_values(DataType::TEXT, &[text("a"), text("b")]).flat().into_owned());
    let mut builder = SegmentBuilder::new(specs.to_vec());
    let mut expected = Vec::new();
    for round in 0..5 {
        let first = match round % 3 {
            0 => Vector::dictionary(
                DataType::TEXT,
                (0..2048).map(|i| i & 1).collect(),
                words.clone(),
                None,
            ),
            1 => Vector::constant(DataType::TEXT, &text("c"), 2048),
            _ => Vector::constant(DataType::TEXT, &Value::Null, 2048),
        };
        let second =
            Vector::from_values(DataType::Int64, &(0..2048).map(Value::Int).collect::<Vec<_>>());
        let mut batch = Batch::new(vec![Arc::new(first), Arc::new(second)], 2048);
        let rows: Vec<u32> = (0..2048).filter(|i| round != 1 && i % 5 != 3 || round == 3).collect();
        rows.iter().for_each(|r| expected.push(batch.row(*r as usize)));
        batch.selection = (round != 3).then_some(rows);
        builder.push(&batch);
    }
    assert!(builder.memory_bytes() > expected.len() * 8);
    let file = MemoryStore::new().create("s").unwrap();
    builder.write(&*file).unwrap();
    let segment = open(file).unwrap();
    assert_eq!(segment.rows(), expected.len());
    for column in 0..2 {
        let all = segment.decode(column, 0, expected.len()).unwrap();
        (0..expected.len()).for_each(|row| assert_eq!(all.value(row), expected[row][column]));
    }
}

#[test]
fn zones_and_forms_are_what_they_should_be() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS * 2 + 10).map(all_row).collect();
    let segment = segment(&all_specs(), &rows);
    let encodings: Vec<&str> = segment.columns().unwrap().iter().map(|c| c.encoding).collect();
    assert_eq!(encodings[2], "delta");
    assert_eq!(encodings[7], "bitpacked");
    assert_eq!(encodings[6], "constant", "two of three blocks are all null");
    assert_eq!(encodings[9], "dictionary");
    assert_eq!(encodings[10], "onpair");
    for column in 0..segment.column_ids().len() {
        for block in 0..segment.blocks() {
            let zone = segment.zone(column, block).unwrap();
            let values = rows[block * BLOCK_ROWS..].iter().take(BLOCK_ROWS).map(|r| &r[column]);
            let encoded = |value: &Value| {
                let mut out = Vec::new();
                key::encode(&mut out, segment.columns().unwrap()[column].data_type, value).unwrap();
                out
            };
            assert_eq!(zone.null_count as usize, values.clone().filter(|v| v.is_null()).count());
            let mut keys: Vec<Vec<u8>> = values.filter(|v| !v.is_null()).map(encoded).collect();
            keys.sort();
            match (keys.first(), keys.last()) {
                (Some(low), Some(high)) if zone.exact => {
                    assert_eq!(
                        (encoded(&zone.min), encoded(&zone.max)),
                        (low.clone(), high.clone())
                    );
                }
                (Some(low), Some(high)) => {
                    assert_eq!(column, 10, "only the long text is cut");
                    assert!(encoded(&zone.min) <= *low && encoded(&zone.max) >= *high);
                }
                _ => assert_eq!((zone.min, zone.max), (Value::Null, Value::Null)),
            }
        }
    }
    let coded = segment.decode(9, 0, 100).unwrap();
    assert!(matches!(coded.form(), Form::Dictionary { values, .. } if values.len() == 4));
    assert!(matches!(
        segment.decode(6, BLOCK_ROWS, 100).unwrap().form(),
        Form::Constant(Values::F64(_))
    ));
}
