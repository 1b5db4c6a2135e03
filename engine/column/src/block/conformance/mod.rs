//! One suite for all encodings: values read by row, range and position list equal the encoded ones.
//! Damaged bytes cause errors or other values, never a panic or a huge allocation.

use super::write::encode;
use super::{Block, ColumnPlan, encode_block};
use crate::encoding::{Dictionary, Encoding, Input, Shared, TokenSet, dictionary, encode_values};
use crate::{Bitmap, BytesColumn, Form, Values, Vector};
use nacre_testing::{Random, WORDS};
use nacre_types::{DataType, Value};
use std::sync::{Arc, OnceLock};

mod filter;
mod parts;
mod plans;

const WIDE: DataType = DataType::Decimal { precision: 38, scale: 3 };
const TYPES: [DataType; 7] = [
    DataType::Boolean,
    DataType::Int64,
    DataType::Timestamp,
    WIDE,
    DataType::Float64,
    DataType::TEXT,
    DataType::Binary { max_bytes: None },
];
const ROWS: [usize; 14] = [1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2048, 4095, 4096];

/// Shapes of test data, each defined for every type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    One,
    Few,
    Narrow,
    Ascending,
    Random,
    Extreme,
    Runs,
}
const SHAPES: [Shape; 7] = [
    Shape::One,
    Shape::Few,
    Shape::Narrow,
    Shape::Ascending,
    Shape::Random,
    Shape::Extreme,
    Shape::Runs,
];

fn integer(shape: Shape, row: usize, random: &mut Random) -> i128 {
    match shape {
        Shape::One => -42,
        Shape::Few => [7, -1_000_000_007, 1 << 40, 3][random.below(4) as usize],
        Shape::Narrow => 1_000 + random.below(37) as i128,
        Shape::Ascending => row as i128 * 3 - 100,
        Shape::Random => random.bits() as i64 as i128,
        // Far apart, each repeated 50 times.
        Shape::Runs => ((row / 50) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 as i128,
        Shape::Extreme => [i64::MIN, i64::MAX, 0, -1][random.below(4) as usize] as i128,
    }
}

fn values(data_type: DataType, shape: Shape, rows: usize, random: &mut Random) -> Values {
    let mut out = Values::empty(data_type.physical());
    for row in 0..rows {
        let n = integer(shape, row, random);
        match &mut out {
            Values::Bool(v) => v.push(n & 1 == 1),
            Values::I64(v) => v.push(n as i64),
            Values::I128(v) => v.push(match shape {
                Shape::Extreme => [i128::MIN, i128::MAX, 0, -1][random.below(4) as usize],
                Shape::Random => (n << 60) ^ random.bits() as i128,
                Shape::Narrow => i128::MIN + n,
                _ => n,
            }),
            Values::F64(v) => v.push(match shape {
                Shape::Extreme => {
                    [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::MIN][random.below(5) as usize]
                }
                _ => n as f64 / 8.0,
            }),
            Values::Bytes(v) => match shape {
                Shape::Extreme => {
                    v.push(&vec![b'x'; [0, 1, 300, 20_000][random.below(64).min(3) as usize] / 30])
                }
                Shape::Random => {
                    let text: String = (0..random.below(30))
                        .map(|_| ['a', 'é', '中', ' '][random.below(4) as usize])
                        .collect();
                    v.push(text.as_bytes());
                }
                Shape::Narrow => v.push(format!("{n:08}").as_bytes()),
                _ => v.push(format!("value number {n} of many").as_bytes()),
            },
        }
    }
    out
}

fn validity(kind: usize, rows: usize, random: &mut Random) -> Option<Bitmap> {
    match kind {
        0 => None,
        1 => Some(Bitmap::filled(rows, true)),
        2 => Some(Bitmap::filled(rows, false)),
        n => {
            let mut bits = Bitmap::default();
            (0..rows).for_each(|_| bits.push(random.below(n as u64) == 0));
            Some(bits)
        }
    }
}

/// Equality, with floats compared by bits.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn assert_rows(vector: &Vector, rows: &[u32], expected: &Vector, what: &str) {
    assert_eq!(vector.len(), rows.len(), "{what}");
    for (at, row) in rows.iter().enumerate() {
        let (a, b) = (vector.value(at), expected.value(*row as usize));
        assert!(same(&a, &b), "{what}: row {row}: {a:?} instead of {b:?}");
    }
    if let Form::Dictionary { codes, values } = vector.form() {
        assert!(
            codes.iter().all(|code| (*code as usize) < values.len()),
            "{what}: code out of range"
        );
    }
}

/// A block and the inputs needed to open it.
struct Encoded {
    encoding: Encoding,
    bytes: Vec<u8>,
    dictionary: Option<(Vec<u8>, usize)>,
}

fn encoded(encoding: Encoding, values: &Values, validity: &Option<Bitmap>) -> Option<Encoded> {
    let input = Input::new(values, validity.as_ref());
    let column = [(values.clone(), validity.clone())];
    let with = |shared: Shared<'_>, dictionary: Option<&Values>| {
        let dictionary = dictionary.map(|values| (encode_values(values), values.len()));
        Some(Encoded { encoding, bytes: encode(encoding, input, shared)?, dictionary })
    };
    match encoding {
        Encoding::Dictionary => {
            let built = dictionary::build(&column, 1 << 16)?;
            with(Shared::Codes(&built.codes[0]), Some(&built.values))
        }
        Encoding::OnPair => {
            let tokens = TokenSet::train(&column)?;
            with(Shared::Tokens(&tokens), Some(&tokens.values()))
        }
        _ => with(Shared::Nothing, None),
    }
}

impl Encoded {
    /// The same block with other bytes.
    fn with_bytes(&self, bytes: Vec<u8>) -> Encoded {
        Encoded { encoding: self.encoding, bytes, dictionary: self.dictionary.clone() }
    }

    fn read<T>(
        &self,
        data_type: DataType,
        rows: usize,
        read: impl Fn(&Block<'_>) -> T,
    ) -> nacre_types::Result<T> {
        let decoded = OnceLock::new();
        let dictionary = self.dictionary.as_ref().map(|(bytes, count)| Dictionary {
            bytes,
            count: *count,
            decoded: &decoded,
        });
        Ok(read(&Block::open(&self.bytes, data_type, self.encoding, rows, dictionary)?))
    }
}

fn check(
    data_type: DataType,
    values: &Values,
    validity: &Option<Bitmap>,
    random: &mut Random,
    what: &str,
) -> usize {
    let rows = values.len();
    let expected = Vector::new(data_type, values.clone(), validity.clone());
    let mut accepted = 0;
    for &encoding in Encoding::ALL {
        let what = format!("{} {what}", encoding.name());
        let Some(block) = encoded(encoding, values, validity) else { continue };
        accepted += 1;
        let ranges: Vec<(usize, usize)> = (0..4)
            .map(|_| {
                let start = random.below(rows as u64 + 1) as usize;
                (start, random.below((rows - start) as u64 + 1) as usize)
            })
            .chain([(0, rows), (0, rows.min(2048)), (rows, 0), (rows / 2, rows - rows / 2)])
            .collect();
        for (start, len) in ranges {
            let all: Vec<u32> = (start as u32..(start + len) as u32).collect();
            let vector = block.read(data_type, rows, |b| b.decode(start, len)).unwrap().unwrap();
            assert_rows(&vector, &all, &expected, &format!("{what} decode {start}+{len}"));
        }
        for keep in [1, 2, 40, 2000] {
            let some: Vec<u32> = (0..rows as u32).filter(|_| random.below(keep) == 0).collect();
            let vector = block.read(data_type, rows, |b| b.take(&some)).unwrap().unwrap();
            assert_rows(&vector, &some, &expected, &format!("{what} take"));
        }
        let often = [[rows as u32 / 2; 300], [rows as u32 - 1; 300]].concat();
        let vector = block.read(data_type, rows, |b| b.take(&often)).unwrap().unwrap();
        assert_rows(&vector, &often, &expected, &format!("{what} repeated"));
        for _ in 0..64 {
            let row = random.below(rows as u64) as usize;
            let (value, order) = block
                .read(data_type, rows, |b| {
                    let scalar = b.get(row).unwrap();
                    (scalar.to_value(data_type), scalar.compare(&expected.value(row)))
                })
                .unwrap();
            assert!(same(&value, &expected.value(row)), "{what} get {row}: {value:?}");
            assert_eq!(order, Some(std::cmp::Ordering::Equal), "{what} compare {row}");
            let other = expected.value(random.below(rows as u64) as usize);
            let orders = block.read(data_type, rows, |b| {
                (b.compare(row, &other).unwrap(), b.get(row).unwrap().compare(&other))
            });
            let (quick, plain) = orders.unwrap();
            assert_eq!(quick, plain, "{what} compare {row} to {other:?}");
        }
        filter::check(&block, data_type, &expected, random, &what);
        parts::check(&block, data_type, &expected, random, &what);
        for (start, len) in [(0, rows + 1), (rows + 1, 0), (usize::MAX, 2)] {
            assert!(block.read(data_type, rows, |b| b.decode(start, len)).unwrap().is_err());
        }
        assert!(block.read(data_type, rows, |b| b.get(rows).is_err()).unwrap());
        assert!(block.read(data_type, rows, |b| b.take(&[rows as u32]).is_err()).unwrap());
        assert!(
            block.read(data_type, rows + 1, |_| ()).is_err(),
            "{what}: the row count is checked"
        );
    }
    accepted
}

#[test]
fn every_encoding_gives_back_what_it_accepts() {
    let mut random = Random::new(1);
    for data_type in TYPES {
        for shape in SHAPES {
            for rows in ROWS {
                for nulls in [0, 1, 2, 3, 9] {
                    let values = values(data_type, shape, rows, &mut random);
                    let validity = validity(nulls, rows, &mut random);
                    let what = format!("{data_type} {shape:?} {rows} rows nulls {nulls}");
                    let accepted = check(data_type, &values, &validity, &mut random, &what);
                    assert!(accepted > 0, "{what}: nothing accepts it");
                }
            }
        }
    }
}

/// The data sets of the suite that an encoding can hold.
fn held_by(encoding: Encoding, rows: usize, random: &mut Random) -> Vec<(DataType, Shape)> {
    let mut held = Vec::new();
    for data_type in TYPES {
        for shape in SHAPES {
            let values = values(data_type, shape, rows, random);
            if encoded(encoding, &values, &None).is_some() {
                held.push((data_type, shape));
            }
        }
    }
    held
}

#[test]
fn every_encoding_is_listed_once_and_documented() {
    let format = include_str!("../../../../../docs/FORMAT.md");
    for &encoding in Encoding::ALL {
        let (number, name) = (encoding as u8, encoding.name());
        assert_eq!(Encoding::from_byte(number), Some(encoding));
        let same = |other: &&Encoding| other.name() == name || **other as u8 == number;
        assert_eq!(Encoding::ALL.iter().filter(same).count(), 1, "{name}");
        assert!(
            format.contains(&format!("| {number} | `{name}` |")),
            "docs/FORMAT.md lacks {name}"
        );
    }
    assert_eq!(Encoding::from_byte(0), None);
    assert_eq!(Encoding::from_byte(u8::MAX), None);
}

#[test]
fn every_encoding_accepts_some_data() {
    for &encoding in Encoding::ALL {
        let held = held_by(encoding, 4096, &mut Random::new(2));
        assert!(!held.is_empty(), "{} holds none of the suite's data", encoding.name());
    }
}

#[test]
fn every_encoding_accepts_what_it_is_for() {
    let mut random = Random::new(2);
    let mut accepts = |encoding, data_type, shape| {
        let values = values(data_type, shape, 4096, &mut random);
        encoded(encoding, &values, &None).is_some()
    };
    for data_type in TYPES {
        assert!(accepts(Encoding::Plain, data_type, Shape::Extreme));
        assert!(accepts(Encoding::Constant, data_type, Shape::One));
        assert!(
            data_type == DataType::Boolean || accepts(Encoding::Dictionary, data_type, Shape::Few)
        );
    }
    assert!(accepts(Encoding::BitPacked, DataType::Int64, Shape::Extreme));
    assert!(accepts(Encoding::BitPacked, WIDE, Shape::Narrow));
    assert!(!accepts(Encoding::BitPacked, WIDE, Shape::Extreme));
    assert!(accepts(Encoding::Lz4, DataType::TEXT, Shape::Extreme));
    assert!(accepts(Encoding::Fsst, DataType::TEXT, Shape::Extreme));
    assert!(accepts(Encoding::OnPair, DataType::TEXT, Shape::Extreme));
    assert!(accepts(Encoding::Delta, DataType::Int64, Shape::Extreme));
    assert!(accepts(Encoding::Alp, DataType::Float64, Shape::Extreme));
    for data_type in TYPES {
        assert!(accepts(Encoding::RunLength, data_type, Shape::Runs));
        assert!(
            data_type == DataType::Boolean
                || !accepts(Encoding::RunLength, data_type, Shape::Random)
        );
    }
}

#[test]
fn every_width_packs() {
    let mut random = Random::new(3);
    for width in 0..=64u32 {
        for rows in [1, 16, 40, 1024, 1500] {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let v: Vec<i64> =
                (0..rows).map(|_| i64::MIN.wrapping_add((random.bits() & mask) as i64)).collect();
            check(DataType::Int64, &Values::I64(v), &None, &mut random, &format!("width {width}"));
        }
    }
}

#[test]
fn long_values_need_long_offsets() {
    let mut random = Random::new(4);
    let mut column = BytesColumn::default();
    (0..100).for_each(|i| column.push(&vec![b'a' + (i % 26) as u8; 1000 * (i % 7)]));
    check(
        DataType::TEXT,
        &Values::Bytes(column),
        &validity(3, 100, &mut random),
        &mut random,
        "long",
    );
}

#[test]
fn plans_choose_well_and_many_blocks_share_a_dictionary() {
    let mut random = Random::new(5);
    for data_type in TYPES {
        for shape in SHAPES {
            let blocks: Vec<(Values, Option<Bitmap>)> = [4096, 4096, 4096, 4096, 777]
                .into_iter()
                .enumerate()
                .map(|(i, rows)| {
                    (
                        values(data_type, shape, rows, &mut random),
                        validity(i % 4, rows, &mut random),
                    )
                })
                .collect();
            let plan = ColumnPlan::choose(&blocks);
            let dictionary = plan.dictionary();
            let decoded = OnceLock::new();
            for (index, (values, validity)) in blocks.iter().enumerate() {
                let block = encode_block(&plan, index, values, validity.as_ref());
                let open = dictionary.as_ref().map(|(bytes, count)| Dictionary {
                    bytes,
                    count: *count,
                    decoded: &decoded,
                });
                let view = Block::open(&block.bytes, data_type, block.encoding, values.len(), open)
                    .unwrap();
                let all: Vec<u32> = (0..values.len() as u32).collect();
                let expected = Vector::new(data_type, values.clone(), validity.clone());
                let vector = view.decode(0, all.len()).unwrap();
                assert_rows(
                    &vector,
                    &all,
                    &expected,
                    &format!("{data_type} {shape:?} block {index}"),
                );
                let nulls_only = validity.as_ref().is_some_and(|v| v.count_ones() == 0);
                let wanted = match (shape, data_type) {
                    _ if nulls_only => Some(Encoding::Constant),
                    (Shape::One, _) => Some(Encoding::Constant),
                    (Shape::Few, DataType::Boolean) => None,
                    (Shape::Few, _) => Some(Encoding::Dictionary),
                    (Shape::Narrow, DataType::Int64 | DataType::Timestamp) => {
                        Some(Encoding::BitPacked)
                    }
                    (Shape::Narrow, DataType::TEXT) => Some(Encoding::Dictionary),
                    (Shape::Runs, DataType::Int64) if validity.is_none() => {
                        Some(Encoding::RunLength)
                    }
                    (Shape::Ascending, DataType::Int64)
                        if validity.is_none() && values.len() == 4096 =>
                    {
                        Some(Encoding::Delta)
                    }
                    _ => None,
                };
                assert!(
                    wanted.is_none_or(|w| w == block.encoding),
                    "{data_type} {shape:?}: {:?}",
                    block.encoding
                );
            }
        }
    }
}

/// Reads a damaged block in every way. Results are ignored; only panics fail.
fn survive(block: &Encoded, data_type: DataType, rows: usize) {
    let _ = block.read(data_type, rows, |b| {
        let _ = b.decode(0, rows).map(|v| (0..rows).for_each(|row| drop(v.value(row))));
        let _ = b.decode(rows / 3, rows / 3);
        filter::survive(b, data_type, rows);
        let _ = b.take(&[0, rows as u32 / 2, rows as u32 - 1]);
        let _ = b.take(&(0..rows as u32).collect::<Vec<_>>());
        for row in [0, rows / 2, rows - 1] {
            let _ = b.get(row).map(|scalar| scalar.to_value(data_type));
            let _ = b.compare(row, &Value::Text("value number 7".into()));
        }
    });
}

#[test]
fn damaged_bytes_never_panic() {
    let mut random = Random::new(6);
    for data_type in TYPES {
        for shape in SHAPES {
            for (rows, nulls) in [(1, 0), (40, 3), (1100, 0)] {
                let values = values(data_type, shape, rows, &mut random);
                let validity = validity(nulls, rows, &mut random);
                for &encoding in Encoding::ALL {
                    let Some(mut block) = encoded(encoding, &values, &validity) else { continue };
                    let whole = block.bytes.clone();
                    let cuts: Vec<usize> = if whole.len() < 500 {
                        (0..whole.len()).collect()
                    } else {
                        (0..60).map(|i| i * 7).collect()
                    };
                    for cut in cuts {
                        block.bytes.truncate(cut);
                        survive(&block, data_type, rows);
                        block.bytes.clone_from(&whole);
                    }
                    for round in 0..400 {
                        // The first bytes are the most critical, so half of the flips go there.
                        let room = if round % 2 == 0 { whole.len().min(64) } else { whole.len() };
                        for _ in 0..1 + random.below(3) {
                            let at = random.below(room as u64) as usize;
                            block.bytes[at] = match random.below(3) {
                                0 => block.bytes[at] ^ (1 << random.below(8)),
                                1 => 0xff,
                                _ => random.bits() as u8,
                            };
                        }
                        survive(&block, data_type, rows);
                        block.bytes.clone_from(&whole);
                    }
                    let Some((dictionary, count)) = block.dictionary.clone() else { continue };
                    for _ in 0..400 {
                        let mut bytes = dictionary.clone();
                        let at = random.below(bytes.len() as u64) as usize;
                        bytes[at] = random.bits() as u8;
                        bytes.truncate(bytes.len() - random.below(3) as usize);
                        block.dictionary = Some((bytes, count));
                        survive(&block, data_type, rows);
                    }
                }
            }
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_damage() {
    let mut column = BytesColumn::default();
    column.push(b"ok");
    column.push(&[0xc3, 0x28, 0xff]);
    let values = Values::Bytes(column);
    let encodings =
        [Encoding::Plain, Encoding::Dictionary, Encoding::Lz4, Encoding::Fsst, Encoding::OnPair];
    for encoding in encodings {
        let block = encoded(encoding, &values, &None).unwrap();
        let decode = |data_type| block.read(data_type, 2, |b| b.decode(0, 2)).unwrap();
        assert!(decode(DataType::TEXT).is_err(), "{encoding:?}");
        assert!(decode(DataType::BLOB).is_ok(), "{encoding:?}");
    }
}

#[test]
fn a_dictionary_is_decoded_once() {
    let mut random = Random::new(7);
    let values = values(DataType::TEXT, Shape::Few, 4096, &mut random);
    let block = encoded(Encoding::Dictionary, &values, &None).unwrap();
    let (bytes, count) = block.dictionary.as_ref().unwrap();
    let decoded = OnceLock::new();
    let shared: Vec<Arc<Values>> = (0..2)
        .map(|_| {
            let dictionary = Dictionary { bytes, count: *count, decoded: &decoded };
            let view = Block::open(
                &block.bytes,
                DataType::TEXT,
                Encoding::Dictionary,
                4096,
                Some(dictionary),
            )
            .unwrap();
            match view.decode(0, 100).unwrap().form() {
                Form::Dictionary { values, .. } => values.clone(),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert!(Arc::ptr_eq(&shared[0], &shared[1]));
}

#[test]
fn short_text_gets_tokens_and_long_repetitive_text_chunks() {
    let mut random = Random::new(8);
    let mut block = |long: bool| {
        let mut column = BytesColumn::default();
        for row in 0..1024 {
            let text: Vec<&str> = (0..4).map(|_| *random.pick(&WORDS)).collect();
            let text = format!("{} {row}", text.join(" "));
            let beginning =
                if long { "The same long beginning. ".repeat(100) } else { String::new() };
            column.push(format!("{beginning}{text}").as_bytes());
        }
        vec![(Values::Bytes(column), None)]
    };
    for (long, wanted) in [(false, Encoding::OnPair), (true, Encoding::Lz4)] {
        let blocks = block(long);
        let plan = ColumnPlan::choose(&blocks);
        assert_eq!(encode_block(&plan, 0, &blocks[0].0, None).encoding, wanted);
    }
    // Chunks would save a third of the space here, which does not pay for decompressing a chunk to
    // read a row of a few bytes.
    let mut column = BytesColumn::default();
    (0..4096).for_each(|row| {
        column.push(format!("a row of the usual length, number {row}, from the load").as_bytes())
    });
    let blocks = vec![(Values::Bytes(column), None)];
    let input = Input::new(&blocks[0].0, None);
    let size = |encoding| encode(encoding, input, Shared::Nothing).unwrap().len();
    assert!(size(Encoding::Lz4) * 5 < size(Encoding::Fsst) * 4);
    assert_eq!(
        encode_block(&ColumnPlan::choose(&blocks), 0, &blocks[0].0, None).encoding,
        Encoding::OnPair
    );
    assert_eq!(
        encode_block(&ColumnPlan::choose_for_search(&blocks), 0, &blocks[0].0, None).encoding,
        Encoding::Fsst
    );
}
