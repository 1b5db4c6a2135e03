//! Difficult doubles: bit-exact in all cases, compact if they are decimals, readable at random.

use super::*;
use crate::block::Block;
use crate::block::encode as encode_block;
use crate::encoding::Encoding;
use nacre_types::DataType;
use nacre_types::hash::hash_u64;

fn round_trip(values: &[f64]) -> usize {
    let input_values = Values::F64(values.to_vec());
    let input = Input::new(&input_values, None);
    let bytes = encode_block(Encoding::Alp, input, Shared::Nothing).unwrap();
    let block = Block::open(&bytes, DataType::Float64, Encoding::Alp, values.len(), None).unwrap();
    let vector = block.decode(0, values.len()).unwrap();
    let Values::F64(back) = &*vector.flat() else { panic!() };
    for (row, (a, b)) in values.iter().zip(back).enumerate() {
        assert_eq!(a.to_bits(), b.to_bits(), "row {row}: {a} became {b}");
        let Scalar::F64(one) = block.get(row).unwrap() else { panic!() };
        assert_eq!(a.to_bits(), one.to_bits(), "get {row}");
    }
    bytes.len()
}

fn random(seed: u64, rows: usize) -> impl Iterator<Item = u64> {
    (0..rows as u64).map(move |i| hash_u64(seed << 32 | i))
}

/// Between 0 and 1, all bits random.
fn uniform(n: u64) -> f64 {
    (n >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn any_bits_come_back() {
    let odd: Vec<f64> = [
        0u64,
        1,
        1 << 63,
        (1 << 63) | 1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0xfff8_dead_beef_0001,
    ]
    .map(f64::from_bits)
    .to_vec();
    round_trip(&odd);
    // Special values among decimals, and values of every other kind.
    let mixed: Vec<f64> = (0..4096)
        .map(|i| if i % 37 == 0 { odd[i / 37 % odd.len()] } else { i as f64 / 100.0 })
        .collect();
    round_trip(&mixed);
    round_trip(&random(1, 3000).map(f64::from_bits).collect::<Vec<_>>());
    for exponent in -320..=308 {
        let decimals: Vec<f64> =
            (1..40).map(|i| format!("{i}e{exponent}").parse().unwrap()).collect();
        round_trip(&decimals);
    }
    round_trip(&[
        i64::MAX as f64,
        i64::MIN as f64,
        (1u64 << 51) as f64,
        (1u64 << 53) as f64,
        4503599627370495.5,
    ]);
}

#[test]
fn decimals_become_small() {
    let bits = |values: Vec<f64>| round_trip(&values) * 8 / values.len();
    // Prices with two digits below 100,000.00 are integers of 24 bits.
    assert!(bits(random(2, 4096).map(|n| (n % 10_000_000) as f64 / 100.0).collect()) <= 26);
    assert!(bits(random(3, 4096).map(|n| ((n % 1_000) as f64 - 500.0) / 1000.0).collect()) <= 12);
    assert!(bits(random(4, 4096).map(|n| (n % 1_000) as f64 * 1e9).collect()) <= 12);
    // One value in fifty is not a decimal.
    let some =
        random(5, 4096).map(|n| if n % 50 == 0 { uniform(n) } else { (n % 1_000) as f64 / 10.0 });
    assert!(bits(some.collect()) <= 16);
    // `FLOAT`s hold the nearest single to a decimal.
    assert!(bits(random(6, 4096).map(|n| ((n % 1_000_000) as f32 / 100.0) as f64).collect()) <= 22);
}

#[test]
fn reals_become_smaller() {
    let bits = |values: Vec<f64>| round_trip(&values) * 8 / values.len();
    assert!(bits(random(7, 4096).map(uniform).collect()) <= 56);
    assert!(bits(random(8, 4096).map(|n| uniform(n) * 40.0 + 30.0).collect()) <= 55);
    assert!(bits(random(9, 4096).map(|n| (uniform(n) * 100.0) as f32 as f64).collect()) <= 32);
}

#[test]
fn a_row_reads_no_other_vectors_exceptions() {
    let values: Vec<f64> = (0..4096)
        .map(|i| if i % 9 == 0 { uniform(hash_u64(i)) } else { i as f64 / 100.0 })
        .collect();
    let all = Values::F64(values.clone());
    let input = Input::new(&all, None);
    let mut body = Vec::new();
    assert!(encode(input, &mut body));
    // The exceptions of the last vector are cut off: reading its rows fails, reading others
    // succeeds.
    body.truncate(body.len() - 64);
    let (data_type, physical) = (DataType::Float64, PhysicalType::F64);
    let source = Source { bytes: &body, data_type, physical, rows: 4096, dictionary: None };
    let alp = Alp::open(source).unwrap();
    for (row, value) in values.iter().enumerate() {
        match alp.one(row) {
            Ok(found) => assert!(row < 3072 && found.to_bits() == value.to_bits(), "row {row}"),
            Err(_) => assert!(row >= 3072, "row {row}"),
        }
    }
}

#[test]
fn chosen_for_decimals_and_reals_but_not_for_noise() {
    use crate::block::{ColumnPlan, encode_block};
    type Make = fn(u64) -> f64;
    let cases: [(Make, Encoding); 3] = [
        (|n| (n % 10_000_000) as f64 / 100.0, Encoding::Alp),
        (uniform, Encoding::Alp),
        (f64::from_bits, Encoding::Plain),
    ];
    for (make, wanted) in cases {
        let blocks: Vec<_> =
            (0..5).map(|i| (Values::F64(random(20 + i, 4096).map(make).collect()), None)).collect();
        let plan = ColumnPlan::choose(&blocks);
        assert_eq!(encode_block(&plan, 1, &blocks[1].0, None).encoding, wanted);
    }
}
