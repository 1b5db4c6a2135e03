//! Segments through a memory store: round trips, damage, search against a model, the cache.

mod large;

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

/// Every type, with and without nulls, in shapes that make every encoding.
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
            let meta = &segment.columns()[column];
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
        rows.iter().for_each(|r| {
            expected.push(batch.columns.iter().map(|c| c.value(*r as usize)).collect::<Vec<_>>())
        });
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
    let encodings: Vec<&str> = segment.columns().iter().map(|c| c.encoding).collect();
    assert_eq!(encodings[2], "delta");
    assert_eq!(encodings[7], "bitpacked");
    assert_eq!(encodings[6], "constant", "two of three blocks are all null");
    assert_eq!(encodings[9], "dictionary");
    assert_eq!(encodings[10], "fsst");
    for column in 0..segment.columns().len() {
        for block in 0..segment.blocks() {
            let zone = segment.zone(column, block);
            let values = rows[block * BLOCK_ROWS..].iter().take(BLOCK_ROWS).map(|r| &r[column]);
            let encoded = |value: &Value| {
                let mut out = Vec::new();
                key::encode(&mut out, segment.columns()[column].data_type, value).unwrap();
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

/// Reads everything there is; values as text, so that they can be compared.
fn read_all(file: Arc<dyn LocalFile>) -> Result<Vec<String>> {
    let segment = open(file)?;
    let mut all = Vec::new();
    for (column, meta) in segment.columns().iter().enumerate() {
        all.push(format!("{meta:?}"));
        for block in 0..segment.blocks() {
            let rows = segment.block_rows(block);
            all.push(format!("{:?}", segment.zone(column, block)));
            let vector = segment.decode(column, block * BLOCK_ROWS, rows)?;
            all.extend((0..rows).map(|row| format!("{:?}", vector.value(row))));
        }
    }
    Ok(all)
}

fn bytes_of(file: &dyn LocalFile) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    bytes
}

fn file_of(bytes: &[u8]) -> Arc<dyn LocalFile> {
    let file = MemoryStore::new().create("s").unwrap();
    file.write(0, bytes).unwrap();
    file
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    let rows: Vec<Vec<Value>> = (0..40).map(all_row).collect();
    let file = write(&all_specs(), &rows, 1000);
    let whole = read_all(file.clone()).unwrap();
    let bytes = bytes_of(&*file);
    let mut harmless = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            match read_all(file_of(&damaged)) {
                Ok(same) => {
                    assert_eq!(same, whole, "byte {at}");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                        "{error}"
                    );
                    assert!(error.message().contains("segment 7.seg"), "{error}");
                }
            }
        }
    }
    assert!(harmless < bytes.len() / 8, "only padding is harmless: {harmless} of {}", bytes.len());
}

/// A segment with a filter of a number and a text, and the hash of each row's key.
fn with_filter(rows: i64) -> (Arc<dyn LocalFile>, Vec<u64>) {
    let spec = |id, data_type| ColumnSpec { id, data_type, nullable: false };
    let specs = [spec(1, DataType::Int64), spec(2, DataType::TEXT)];
    let rows: Vec<Vec<Value>> =
        (0..rows).map(|row| vec![Value::Int(row * 3), text(format!("t{row}"))]).collect();
    let hash = |row: &Vec<Value>| {
        let mut key = Vec::new();
        specs.iter().zip(row).for_each(|(spec, value)| {
            nacre_types::key::append(&mut key, spec.data_type, value).unwrap()
        });
        nacre_types::hash::hash_bytes(&key)
    };
    let hashes = rows.iter().map(hash).collect();
    let mut builder = SegmentBuilder::new(specs.to_vec()).with_key_filter(vec![0, 1], 9);
    batches(&specs, &rows, 1000).iter().for_each(|batch| builder.push(batch));
    assert_eq!(builder.values(&[1, 0], 0), [text("t0"), Value::Int(0)]);
    let file = MemoryStore::new().create("s").unwrap();
    builder.write(&*file).unwrap();
    (file, hashes)
}

#[test]
fn a_filter_of_keys_leaves_out_nothing_and_lets_little_through() {
    for rows in [1, 100, 4_096, 10_000] {
        let (file, hashes) = with_filter(rows);
        let segment = open(file).unwrap();
        let filter = segment.column_index(9).unwrap();
        assert_eq!(segment.columns()[filter].data_type, DataType::UInt16);
        assert!(hashes.iter().all(|hash| segment.may_have(filter, *hash).unwrap()));
        let absent = (0..2_000u64)
            .filter(|n| segment.may_have(filter, nacre_types::hash::hash_u64(*n)).unwrap());
        let passed = absent.count();
        assert!(passed < 40, "{passed} of 2000 beside {rows}");
        assert_eq!(segment.verify().len(), 0);
    }
}

#[test]
fn a_damaged_filter_leaves_out_nothing() {
    let (file, hashes) = with_filter(100);
    let bytes = bytes_of(&*file);
    let mut found = 0;
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            let Ok(segment) = open(file_of(&damaged)) else { continue };
            let filter = segment.column_index(9).unwrap();
            match segment.may_have(filter, hashes[at % 100]) {
                Ok(may_have) => assert!(may_have, "byte {at}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    assert!(error.message().contains("segment 7.seg, column 9"), "{error}");
                    found += 1;
                }
            }
        }
    }
    // Two bytes a row.
    assert!(found >= 600, "{found}");
}

#[test]
fn every_cut_is_found() {
    let rows: Vec<Vec<Value>> = (0..40).map(all_row).collect();
    let bytes = bytes_of(&*write(&all_specs(), &rows, 1000));
    for cut in 0..bytes.len() {
        assert_eq!(
            open(file_of(&bytes[..cut])).err().map(|e| e.kind()),
            Some(ErrorKind::Corrupt),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_damaged_footer_with_a_right_checksum_does_not_panic() {
    let rows: Vec<Vec<Value>> = (0..40).map(all_row).collect();
    let bytes = bytes_of(&*write(&all_specs(), &rows, 1000));
    let trailer = bytes.len() - 32;
    let offset = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
    for at in offset..trailer {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            let sum = nacre_types::checksum::checksum(&damaged[offset..trailer]);
            damaged[trailer + 16..trailer + 24].copy_from_slice(&sum.to_le_bytes());
            let _ = read_all(file_of(&damaged));
            if let Ok(segment) = open(file_of(&damaged)) {
                segment.verify();
            }
        }
    }
}

#[test]
fn errors_say_where() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS + 10).map(all_row).collect();
    let file = write(&all_specs(), &rows, 1000);
    let segment = open(file.clone()).unwrap();
    let place = segment.block_place(2, 1);
    let mut byte = [0];
    file.read(&mut [ReadRange { offset: place.offset + 20, buffer: &mut byte }]).unwrap();
    file.write(place.offset + 20, &[byte[0] ^ 4]).unwrap();
    let message = format!(
        "corrupt: segment 7.seg, column 12, block 1 at byte {}: checksum does not match",
        place.offset
    );
    assert_eq!(segment.get(2, BLOCK_ROWS + 1).unwrap_err().to_string(), message);
    assert_eq!(segment.verify().iter().map(|e| e.to_string()).collect::<Vec<_>>(), vec![message]);
    assert!(segment.get(2, 0).is_ok(), "other blocks stay readable");
}

#[test]
fn a_newer_version_is_unsupported() {
    let mut bytes = bytes_of(&*write(&all_specs(), &[], 1000));
    let last = bytes.len() - 1;
    (bytes[7], bytes[last]) = (9, 9);
    let error = open(file_of(&bytes)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("version 9"), "{error}");
}

#[test]
fn a_long_footer_takes_a_second_read() {
    let specs: Vec<ColumnSpec> = (0..3000).map(|id| spec(id, DataType::Int32, false)).collect();
    let rows: Vec<Vec<Value>> =
        (0..3).map(|row| (0..3000).map(|c| Value::Int(row * c)).collect()).collect();
    let segment = segment(&specs, &rows);
    assert!(segment.bytes() > 200_000);
    assert_eq!(segment.get(2999, 2).unwrap(), Value::Int(5998));
}

fn check_search(
    specs: &[ColumnSpec],
    mut rows: Vec<Vec<Value>>,
    keys: &[usize],
    probes: &[Vec<Value>],
) {
    let encoded = |key: &[Value]| {
        let mut out = Vec::new();
        key.iter()
            .zip(keys)
            .for_each(|(v, c)| key::encode(&mut out, specs[*c].data_type, v).unwrap());
        out
    };
    let key_of = |row: &Vec<Value>| keys.iter().map(|c| row[*c].clone()).collect::<Vec<_>>();
    rows.sort_by_cached_key(|row| encoded(&key_of(row)));
    let sorted: Vec<Vec<u8>> = rows.iter().map(|row| encoded(&key_of(row))).collect();
    let segment = segment(specs, &rows);
    let own = (0..rows.len()).step_by(37).map(|row| key_of(&rows[row]));
    for probe in own.chain(probes.iter().cloned()) {
        for columns in 0..=keys.len() {
            let prefix = encoded(&probe[..columns]);
            let expected = sorted.partition_point(|row| row[..] < prefix[..]);
            assert_eq!(
                segment.lower_bound(keys, &probe[..columns]).unwrap(),
                expected,
                "{probe:?} {columns}"
            );
            let end = expected + sorted[expected..].partition_point(|row| row.starts_with(&prefix));
            let range = segment.equal_range(keys, &probe[..columns]).unwrap();
            assert_eq!(range, (expected, end), "{probe:?} {columns}");
        }
        let expected = sorted.binary_search(&encoded(&probe)).ok().map(|row| {
            sorted[..row].iter().rposition(|k| *k < sorted[row]).map_or(0, |before| before + 1)
        });
        assert_eq!(segment.search(keys, &probe).unwrap(), expected, "{probe:?}");
    }
    assert!(segment.lower_bound(keys, &[Value::Boolean(true)]).is_err() || rows.is_empty());
}

#[test]
fn search_finds_what_a_model_finds() {
    let ints = |n: i64| Value::Int(n);
    let one = [spec(1, DataType::Int64, true)];
    let probes: Vec<Vec<Value>> =
        (-3..60).map(|n| vec![ints(n * 1000)]).chain([vec![Value::Null]]).collect();
    for count in [0, 1, BLOCK_ROWS, BLOCK_ROWS + 1, 20_000] {
        check_search(&one, (0..count).map(|n| vec![ints(n as i64 * 2)]).collect(), &[0], &probes);
    }
    // Many nulls, and runs of equal keys over several blocks.
    let value = |n: usize| if n < 9000 { Value::Null } else { ints((n / 6000) as i64 * 1000) };
    check_search(&one, (0..30_000).map(|n| vec![value(n)]).collect(), &[0], &probes);
    // Dense keys, where the guess is right, and keys that grow ever faster, where it is as wrong as can be.
    let near: Vec<Vec<Value>> =
        (19_990..20_020).chain(4_090..4_100).map(|n| vec![ints(n)]).collect();
    check_search(&one, (0..20_000).map(|n| vec![ints(n)]).collect(), &[0], &near);
    let steep = |n: usize| if n == 0 { i64::MIN } else { (n as i64).pow(4) - (1 << 56) };
    let far: Vec<Vec<Value>> = (0..14_000)
        .step_by(173)
        .flat_map(|n| [steep(n) - (n > 0) as i64, steep(n)])
        .chain([i64::MAX, 0])
        .map(|n| vec![ints(n)])
        .collect();
    check_search(&one, (0..14_000).map(|n| vec![ints(steep(n))]).collect(), &[0], &far);
    // Text after an integer, key columns not first in the file, and an order of their own.
    let three = [
        spec(1, DataType::Float64, false),
        spec(2, DataType::TEXT, true),
        spec(3, DataType::Int32, false),
    ];
    let long = "é".repeat(20);
    let row = |n: usize| {
        let r = pseudo(n);
        let name = match r % 5 {
            0 => Value::Null,
            1 => text(format!("{long}{}", r % 7)),
            2 => text("\u{10ffff}".repeat((r % 12) as usize)),
            _ => text(format!("{:x}", r % 5000)),
        };
        vec![Value::Float(n as f64), name, ints((r >> 32) as i64 % 3)]
    };
    let probes: Vec<Vec<Value>> = (0..60)
        .map(|n| {
            vec![
                ints(n % 5 - 1),
                if n % 4 == 0 { Value::Null } else { text(format!("{:x}", n * 97)) },
            ]
        })
        .chain([
            vec![ints(1), text(&long)],
            vec![ints(1), text(format!("{long}3"))],
            vec![ints(2), text("\u{10ffff}")],
        ])
        .collect();
    check_search(&three, (0..20_000).map(row).collect(), &[2, 1], &probes);
    let by_text: Vec<Vec<Value>> =
        probes.iter().map(|p| vec![p[1].clone(), p[0].clone()]).collect();
    check_search(&three, (0..20_000).map(row).collect(), &[1, 2], &by_text);
}

/// Counts calls and ranges.
struct Counting(Arc<dyn LocalFile>, AtomicUsize, AtomicUsize);

impl LocalFile for Counting {
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.2.fetch_add(ranges.len(), Ordering::Relaxed);
        self.0.read(ranges)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write(offset, bytes)
    }
    fn truncate(&self, len: u64) -> Result<()> {
        self.0.truncate(len)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

#[test]
fn reads_are_few_and_batched() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS * 4).map(all_row).collect();
    let file = Arc::new(Counting(
        write(&all_specs(), &rows, 1000),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    ));
    let cache = BlockCache::new(64 << 20);
    let segment = Segment::open(file.clone(), "s", 1, cache.clone()).unwrap();
    assert_eq!(file.1.swap(0, Ordering::Relaxed), 1, "open reads once");
    file.2.store(0, Ordering::Relaxed);
    let wanted: Vec<(usize, usize)> = (0..4).flat_map(|block| [(9, block), (2, block)]).collect();
    segment.load(&wanted).unwrap();
    assert_eq!(file.1.load(Ordering::Relaxed), 1, "load reads once");
    assert_eq!(
        file.2.load(Ordering::Relaxed),
        2,
        "neighbours are one range, the dictionary with them"
    );
    let read = cache.read_bytes();
    assert!(read > 0 && cache.memory_bytes() > 0);
    segment.load(&wanted).unwrap();
    for row in (0..rows.len()).step_by(99) {
        segment.get(9, row).unwrap();
        segment.get(2, row).unwrap();
    }
    segment.take(2, &(0..rows.len() as u32).collect::<Vec<_>>()).unwrap();
    assert_eq!(
        (file.1.load(Ordering::Relaxed), cache.read_bytes()),
        (1, read),
        "hits read nothing"
    );
    cache.forget(2);
    assert!(cache.memory_bytes() > 0);
    cache.forget(1);
    assert_eq!(cache.memory_bytes(), 0);
    segment.get(2, 0).unwrap();
    assert_eq!(file.1.load(Ordering::Relaxed), 2);
    drop(segment);
    assert_eq!(cache.memory_bytes(), 0, "a dropped segment leaves nothing");
}

#[test]
// Real threads: what is tested is that the cache may be shared by them.
#[allow(clippy::disallowed_methods)]
fn the_cache_stays_small_and_readers_get_their_blocks() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS * 6).map(all_row).collect();
    let file = write(&all_specs(), &rows, 1000);
    for limit in [0, 30_000, 200_000] {
        let cache = BlockCache::new(limit);
        let segments: Vec<Segment> =
            (0..2).map(|id| Segment::open(file.clone(), "s", id, cache.clone()).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (segments, rows, cache) = (&segments, &rows, &cache);
                scope.spawn(move || {
                    for i in 0..600 {
                        let row = pseudo(i * 4 + thread) as usize % rows.len();
                        let column = pseudo(i) as usize % rows[0].len();
                        assert_eq!(segments[i % 2].get(column, row).unwrap(), rows[row][column]);
                        // Each of the readers may have one block more in hand for a moment.
                        assert!(cache.memory_bytes() <= limit + 4 * 2 * 300_000);
                    }
                });
            }
        });
        assert!(cache.memory_bytes() <= limit);
    }
}

#[test]
fn numbers_are_found_wherever_they_are_spread() {
    let shapes: [&dyn Fn(usize) -> i64; 5] = [
        &|n| (pseudo(n) >> 24) as i64,
        &|n| (n as i64).pow(3),
        &|n| (n / 1_500) as i64 * 7,
        &|_| 5,
        &|n| {
            if n < 9_000 { i64::MIN + n as i64 } else { i64::MAX - 20_000 + n as i64 }
        },
    ];
    for (shape, value_of) in shapes.iter().enumerate() {
        for rows in [0, 1, 100, 4_096, 4_097, 10_000] {
            let mut values: Vec<i64> = (0..rows).map(value_of).collect();
            values.sort_unstable();
            let mut builder = SegmentBuilder::new(vec![spec(1, DataType::Int64, false)]);
            let column = Arc::new(Vector::new(DataType::Int64, Values::I64(values.clone()), None));
            builder.push(&Batch::new(vec![column], rows));
            let file = MemoryStore::new().create("s").unwrap();
            builder.write(&*file).unwrap();
            let segment = Segment::open(file, "s", 1, BlockCache::new(1 << 20)).unwrap();
            let known = (0..rows).step_by(37).map(|row| values[row]);
            for wanted in known.flat_map(|v| [v, v.saturating_sub(1), v.saturating_add(1)]).chain([
                0,
                -1,
                i64::MAX,
            ]) {
                let first = values.partition_point(|v| *v < wanted);
                let expected = (values.get(first) == Some(&wanted)).then_some(first);
                assert_eq!(
                    segment.find_even(0, wanted).unwrap(),
                    expected,
                    "shape {shape}, {rows} rows, {wanted}"
                );
            }
        }
    }
}
