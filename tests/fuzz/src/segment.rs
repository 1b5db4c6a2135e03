//! Segment bytes: writes a file from the input and reads it back. Damage must never be read as
//! valid values. Damage with repaired checksums, and arbitrary bytes, must end in typed errors or
//! some values, never in a crash or a large allocation.

use crate::edit::damage;
use crate::input::Input;
use crate::subject;
use nacre_column::kernel::Predicate;
use nacre_column::{Batch, Vector};
use nacre_segment::{BlockCache, ColumnSpec, IndexOrder, Segment, SegmentBuilder};
use nacre_types::checksum::checksum;
use nacredb::host::memory::MemoryStore;
use nacredb::host::{LocalFile, LocalStore, ReadRange};
use nacredb::{DataType, Result, Value};
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "seg-0000000000000001";

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let store = MemoryStore::new();
    if input.one_in(8) {
        subject::put(&store, NAME, input.rest());
        drop(open(&store).map(|segment| read(&segment, false)));
        return;
    }
    let (specs, columns) = table(&mut input);
    let index = (!columns[0].is_empty() && input.one_in(3)).then(|| {
        let first = input.below(specs.len());
        let mut over = vec![first];
        over.extend((0..specs.len()).filter(|at| *at != first && input.one_in(2)));
        Indexed { over, alone: input.one_in(3) }
    });
    if let Some(Indexed { over, alone: true }) = &index {
        let picked = over.iter().map(|at| (specs[*at].clone(), columns[*at].clone()));
        let (specs, columns): (Vec<ColumnSpec>, Vec<Vec<Value>>) = picked.unzip();
        let all = Indexed { over: (0..over.len()).collect(), alone: true };
        return one(&store, &mut input, &specs, &columns, Some(&all));
    }
    one(&store, &mut input, &specs, &columns, index.as_ref());
}

/// An index over some columns, in the segment's own file or a separate one.
pub(crate) struct Indexed {
    over: Vec<usize>,
    alone: bool,
}

/// Tests an intact file, then damaged copies of it.
pub(crate) fn one(
    store: &MemoryStore,
    input: &mut Input<'_>,
    specs: &[ColumnSpec],
    columns: &[Vec<Value>],
    index: Option<&Indexed>,
) {
    write(store, specs, columns, index);
    let places = places(store);
    let original = subject::bytes(store, NAME);
    let segment = open(store).expect("what was written opens");
    assert_eq!(segment.verify().len(), 0, "{:?}", segment.verify());
    // A separate index file has none of the table's columns.
    let columns = if index.is_some_and(|index| index.alone) { &[] } else { columns };
    let rows = segment.rows();
    assert_eq!(same(&segment, columns, rows), Some(true), "what was written is read");
    read(&segment, true);
    assert!(rows_alone(store, columns, rows), "rows read by parts are as written");
    if let Some(index) = index {
        in_order(&segment, columns.len(), index, columns);
    }
    if input.is_empty() {
        return;
    }
    let mut bytes = original.clone();
    let mend = input.one_in(2) || input.one_in(2);
    damage(&mut bytes, input);
    if mend {
        mend_checksums(&original, &mut bytes, &places);
    }
    subject::put(store, NAME, &bytes);
    let Ok(segment) = open(store) else { return };
    if mend {
        let _ = segment.verify();
        read(&segment, false);
        let _ = rows_alone(store, columns, rows);
    } else {
        assert!(rows_alone(store, columns, rows), "damage was read as values of a row");
        assert_ne!(same(&segment, columns, rows), Some(false), "damage was read as values");
    }
}

/// Column ids of an index, distinct from those of the table.
const INDEX_IDS: u32 = 1 << 20;

/// Checks that the index contains every row once, in key order.
fn in_order(segment: &Segment, first: usize, index: &Indexed, columns: &[Vec<Value>]) {
    let rows = segment.rows();
    let number =
        |value: Value| if let Value::Int(number) = value { number as usize } else { usize::MAX };
    let place = segment.column_index(INDEX_IDS).expect("the index is there");
    assert!(place >= first, "an index stands behind the table's columns");
    let vector = segment.decode(place, 0, rows).expect("sound bytes are read");
    let numbers: Vec<usize> = (0..rows).map(|at| number(vector.value(at))).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..rows), "every row is in the index once");
    let keys: Vec<usize> = (1..=index.over.len()).map(|at| place + at).collect();
    for (key, over) in keys.iter().zip(&index.over).filter(|_| !index.alone) {
        let vector = segment.decode(*key, 0, rows).expect("sound bytes are read");
        for (at, row) in numbers.iter().enumerate() {
            assert!(
                identical(&vector.value(at), &columns[*over][*row]),
                "an index has the values of its rows"
            );
        }
    }
    for at in (0..rows).step_by(1 + rows / 5) {
        let values: Vec<Value> =
            keys.iter().map(|key| segment.get(*key, at).expect("sound bytes are read")).collect();
        if values.iter().any(|value| matches!(value, Value::Float(x) if x.is_nan())) {
            continue;
        }
        let low = segment.lower_bound(&keys, &values).expect("sound bytes are read");
        let high = segment.upper_bound(&keys, &values, low).expect("sound bytes are read");
        assert!(
            (low..high).contains(&at),
            "a value is found where it stands: {at} in {low}..{high}"
        );
    }
}

fn open(store: &MemoryStore) -> Result<Segment> {
    Segment::open(store.open(NAME)?, NAME, 1, BlockCache::new(1 << 20))
}

/// Columns of all types, with values that favour every encoding in turn.
fn table(input: &mut Input<'_>) -> (Vec<ColumnSpec>, Vec<Vec<Value>>) {
    const TYPES: [DataType; 12] = [
        DataType::Int64,
        DataType::TEXT,
        DataType::Float64,
        DataType::Boolean,
        DataType::Int8,
        DataType::UInt64,
        DataType::Decimal { precision: 12, scale: 2 },
        DataType::Decimal { precision: 30, scale: 0 },
        DataType::BLOB,
        DataType::Date,
        DataType::Timestamp,
        DataType::Float32,
    ];
    let rows = match input.byte() {
        0..=3 => 0,
        4..=199 => 1 + input.below(150),
        200..=229 => 1_000 + input.below(100),
        _ => 4_000 + input.below(5_000),
    };
    let count = 1 + input.below(3);
    let mut specs = Vec::new();
    let mut columns = Vec::new();
    for id in 0..count as u32 {
        let data_type = input.pick(&TYPES);
        let nulls = input.pick(&[0u64, 0, 3, 50, 100]);
        let (shape, salt) = (input.below(8), input.integer());
        let picked: Vec<i64> = (0..1 + input.below(6)).map(|_| input.integer()).collect();
        specs.push(ColumnSpec { id, data_type, nullable: nulls > 0 });
        let mut state = salt as u64 ^ 0x9e37_79b9_7f4a_7c15;
        let mut column = Vec::with_capacity(rows);
        for row in 0..rows as i64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let chance = (state >> 33) as i64;
            let number = match shape {
                0 => salt,
                1 => row.wrapping_mul(salt),
                2 => salt.wrapping_add(row / 17),
                3 => picked[chance as usize % picked.len()],
                4 => chance & 0xff,
                5 => state as i64,
                6 => row.wrapping_mul(100).wrapping_add(chance % 7),
                _ => {
                    if chance % 50 == 0 {
                        state as i64
                    } else {
                        chance % 1_000
                    }
                }
            };
            let null = nulls > 0 && (state >> 20) % 100 < nulls;
            column.push(if null { Value::Null } else { value(data_type, number) });
        }
        columns.push(column);
    }
    (specs, columns)
}

fn value(data_type: DataType, number: i64) -> Value {
    match data_type {
        DataType::TEXT => Value::Text(text(number)),
        DataType::BLOB => Value::Binary(number.to_le_bytes()[..(number & 7) as usize].to_vec()),
        DataType::Float64 => Value::Float(if number % 5 == 4 {
            f64::from_bits(number as u64)
        } else {
            number as f64 / 100.0
        }),
        DataType::Float32 => Value::Float(f64::from(number as i32 as f32 / 8.0)),
        DataType::Boolean => Value::Boolean(number & 1 == 1),
        DataType::Int8 => Value::Int(i64::from(number as i8)),
        DataType::UInt64 => Value::UInt(number as u64),
        DataType::Decimal { scale: 2, .. } => {
            Value::Decimal { unscaled: i128::from(number % 1_000_000_000_000), scale: 2 }
        }
        DataType::Decimal { .. } => {
            Value::Decimal { unscaled: i128::from(number) * 1_000_000_007, scale: 0 }
        }
        DataType::Date => Value::Date((number % 700_000) as i32),
        DataType::Timestamp => Value::Timestamp(number % 60_000_000_000_000_000),
        _ => Value::Int(number),
    }
}

fn text(number: i64) -> String {
    match number.rem_euclid(6) {
        0 => String::new(),
        1 => format!("{number}"),
        2 => format!("https://nacre.example/pearl/{}", number & 0xfff),
        3 => "ä€😀".repeat((number & 15) as usize),
        4 => "mother of pearl ".repeat((number & 7) as usize),
        _ => format!("{number:x}{:x}", number.wrapping_mul(0x9e37_79b9)),
    }
}

fn write(
    store: &MemoryStore,
    specs: &[ColumnSpec],
    columns: &[Vec<Value>],
    index: Option<&Indexed>,
) {
    let mut builder = SegmentBuilder::new(specs.to_vec());
    if let Some(Indexed { over, alone }) = index {
        let keys = (1..=over.len() as u32).map(|at| INDEX_IDS + at).collect();
        let order =
            IndexOrder { columns: over.clone(), rows: INDEX_IDS, keys, filter: INDEX_IDS + 31 };
        builder = builder.with_indexes(vec![order]);
        if *alone {
            builder = builder.writing(0);
        }
    }
    let rows = columns.first().map_or(0, Vec::len);
    for start in (0..rows).step_by(1_500) {
        let end = rows.min(start + 1_500);
        let part = specs.iter().zip(columns);
        let part = part.map(|(spec, values)| {
            Arc::new(Vector::from_values(spec.data_type, &values[start..end]))
        });
        builder.push(&Batch::new(part.collect(), end - start));
    }
    let file = store.create(NAME).expect("memory creates");
    builder.write(file.as_ref()).expect("a segment is written");
}

/// Whether all values are as written; `None` if some cannot be read.
fn same(segment: &Segment, columns: &[Vec<Value>], rows: usize) -> Option<bool> {
    if segment.column_ids().len() < columns.len() || segment.rows() != rows {
        return Some(false);
    }
    let mut whole = true;
    for (at, expected) in columns.iter().enumerate() {
        let Ok(vector) = segment.decode(at, 0, expected.len()) else {
            whole = false;
            continue;
        };
        for (row, value) in expected.iter().enumerate() {
            if !identical(&vector.value(row), value) {
                return Some(false);
            }
        }
    }
    whole.then_some(true)
}

/// Whether rows that are read alone and without a cache, by parts of long blocks, are as written as
/// far as they can be read.
fn rows_alone(store: &MemoryStore, columns: &[Vec<Value>], rows: usize) -> bool {
    let opened = store.open(NAME).and_then(|file| Segment::open(file, NAME, 1, BlockCache::new(0)));
    let Ok(segment) = opened else { return true };
    let ids = segment.column_ids().to_vec();
    if ids.len() < columns.len() || segment.rows() != rows {
        return false;
    }
    (0..rows).step_by(1 + rows / 9).all(|row| {
        let mut values = Vec::new();
        let read = segment.values(row, columns.len(), &|at| ids[at], &|_| Value::Null, &mut values);
        read.is_err()
            || columns.iter().zip(&values).all(|(column, value)| identical(&column[row], value))
    })
}

/// Equality in which every NaN equals itself.
fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
        }
        (a, b) => a == b,
    }
}

/// Reads values in all ways. In an intact file the results agree; after repaired damage they may
/// not, because one way uses a sorted dictionary and another compares values.
fn read(segment: &Segment, sound: bool) {
    let rows = segment.rows();
    let metas = segment.columns().expect("the footer was read").to_vec();
    for (at, meta) in metas.iter().enumerate() {
        let vector = segment.decode(at, 0, rows);
        for block in 0..segment.blocks() {
            let _ = segment.zone(at, block);
        }
        let some: Vec<u32> = (0..rows as u32).step_by(1 + rows / 7).collect();
        let taken = segment.take(at, &some);
        for (place, row) in some.iter().enumerate() {
            let value = segment.get(at, *row as usize);
            if let (true, Ok(vector), Ok(value)) = (sound, &vector, &value) {
                assert!(
                    identical(&vector.value(*row as usize), value),
                    "one value is as in the whole column"
                );
            }
            if let (true, Ok(taken), Ok(value)) = (sound, &taken, &value) {
                assert!(identical(&taken.value(place), value), "a taken value is as alone");
            }
            let Ok(value) = value else { continue };
            let physical = meta.data_type.physical();
            let Some(predicate) = Predicate::any_of(physical, std::slice::from_ref(&value)) else {
                continue;
            };
            let found = segment.filter(at, &predicate, 0, rows);
            if let (true, Ok(found), false) = (sound, found, value == Value::Null) {
                assert!(
                    found.get(*row as usize) || matches!(value, Value::Float(_)),
                    "a value is found in its place"
                );
            }
            let _ = segment.search(&[at], std::slice::from_ref(&value));
        }
    }
}

/// A file that records the ranges read.
struct Recorder {
    file: Arc<dyn LocalFile>,
    reads: Mutex<Vec<(usize, usize)>>,
}

impl LocalFile for Recorder {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.extend(ranges.iter().map(|range| (range.offset as usize, range.buffer.len())));
        self.file.read(ranges)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write(offset, bytes)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

/// Offset and length of all checksummed ranges, as read by verification.
fn places(store: &MemoryStore) -> Vec<(usize, usize)> {
    let file = store.open(NAME).expect("the file is there");
    let recorder = Arc::new(Recorder { file, reads: Mutex::default() });
    let segment = Segment::open(recorder.clone(), NAME, 1, BlockCache::new(0))
        .expect("what was written opens");
    recorder.reads.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let _ = segment.verify();
    let reads = recorder.reads.lock().unwrap_or_else(PoisonError::into_inner);
    reads.clone()
}

/// Repairs all checksums after a change: those of blocks that are still in place, and that of the
/// footer.
fn mend_checksums(original: &[u8], bytes: &mut [u8], places: &[(usize, usize)]) {
    let word = |at: usize, bytes: &[u8]| -> Option<usize> {
        let word: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let Some(footer) = word(original.len() - 32, original) else { return };
    if bytes.len() == original.len() {
        for (offset, length) in places {
            let (old, new) = (
                checksum(&original[*offset..offset + length]),
                checksum(&bytes[*offset..offset + length]),
            );
            let known = original[footer..].windows(8).position(|word| word == old.to_le_bytes());
            if let Some(at) = known.filter(|_| old != new) {
                bytes[footer + at..footer + at + 8].copy_from_slice(&new.to_le_bytes());
            }
        }
    }
    let Some(trailer) = bytes.len().checked_sub(32) else { return };
    let (Some(offset), Some(length)) = (word(trailer, bytes), word(trailer + 8, bytes)) else {
        return;
    };
    let Some(covered) = offset.checked_add(length).and_then(|end| bytes.get(offset..end)) else {
        return;
    };
    let sum = checksum(covered);
    bytes[trailer + 16..trailer + 24].copy_from_slice(&sum.to_le_bytes());
}
