//! Plans and what they lead to are bit for bit the same, whatever the steps that they are made in:
//! these checksums are those of plans that were made at once.

use super::{SHAPES, TYPES, validity, values};
use crate::block::{ColumnPlan, encode_block};
use crate::{Bitmap, BytesColumn, Values};
use nacre_testing::{Random, WORDS};
use nacre_types::hash::{combine, hash_bytes};
use nacre_types::limits::BLOCK_ROWS;

type Blocks = Vec<(Values, Option<Bitmap>)>;

/// Checksum of the dictionary and of one in `every` blocks of a column.
fn checksum(plan: &ColumnPlan, blocks: &Blocks, every: usize) -> u64 {
    let dictionary = plan.dictionary().map_or(0, |(bytes, count)| {
        assert!(count > 0, "a dictionary of nothing");
        combine(hash_bytes(&bytes), count as u64)
    });
    let sampled = blocks.iter().enumerate().step_by(every);
    sampled.fold(dictionary, |sum, (at, (values, validity))| {
        let block = encode_block(plan, at, values, validity.as_ref());
        combine(combine(sum, block.encoding as u64), hash_bytes(&block.bytes))
    })
}

fn assert_plans(name: &str, blocks: &Blocks, every: usize, expected: [u64; 2]) {
    let plans = [ColumnPlan::choose(blocks), ColumnPlan::choose_for_search(blocks)];
    let found = plans.map(|plan| checksum(&plan, blocks, every));
    assert_eq!(found, expected, "{name}: {found:#x?}");
}

/// A column of texts by row number.
fn texts(rows: usize, text: impl Fn(usize, &mut Random) -> String) -> Blocks {
    let mut random = Random::new(9);
    let mut block = |rows: std::ops::Range<usize>| {
        let mut column = BytesColumn::default();
        rows.for_each(|row| column.push(text(row, &mut random).as_bytes()));
        (Values::Bytes(column), None)
    };
    (0..rows).step_by(BLOCK_ROWS).map(|at| block(at..rows.min(at + BLOCK_ROWS))).collect()
}

#[test]
fn columns_of_each_type_and_shape() {
    let expected = [
        [0x62f8_0359_1098_0481, 0x62f8_0359_1098_0481],
        [0x6202_caef_a112_d686, 0x6202_caef_a112_d686],
        [0x6202_caef_a112_d686, 0x6202_caef_a112_d686],
        [0xd184_4c0a_857a_dd01, 0xd184_4c0a_857a_dd01],
        [0x4b76_0ab3_89af_a18e, 0x4b76_0ab3_89af_a18e],
        [0xac24_d20f_ad78_b4ab, 0x85ec_6446_36fa_e308],
        [0xac24_d20f_ad78_b4ab, 0x85ec_6446_36fa_e308],
    ];
    for (data_type, expected) in TYPES.into_iter().zip(expected) {
        let mut random = Random::new(20);
        let mut sums = [0, 0];
        for (shape, nulls) in SHAPES.into_iter().flat_map(|shape| [(shape, 0), (shape, 3)]) {
            let mut block = |rows| {
                let values = values(data_type, shape, rows, &mut random);
                (values, validity(nulls, rows, &mut random))
            };
            let blocks = [[BLOCK_ROWS; 6].as_slice(), &[777]].concat();
            let blocks: Blocks = blocks.into_iter().map(&mut block).collect();
            let plans = [ColumnPlan::choose(&blocks), ColumnPlan::choose_for_search(&blocks)];
            for (sum, plan) in sums.iter_mut().zip(plans) {
                *sum = combine(*sum, checksum(&plan, &blocks, 3));
            }
        }
        assert_eq!(sums, expected, "{data_type:?}: {sums:#x?}");
    }
}

#[test]
fn columns_with_many_distinct_values() {
    // Each value several times in its block.
    let nth = |row: usize, distinct: usize| (row / BLOCK_ROWS * 1024 + row % 1024) % distinct;
    let number = |row: usize| (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
    let rows = 70 * BLOCK_ROWS - 5;
    // As many as a dictionary holds, and one more.
    let expected = [
        (
            1 << 16,
            [
                [0xe76d_3781_3251_213e, 0xe76d_3781_3251_213e],
                [0x84b8_cf84_ff41_2369, 0x84b8_cf84_ff41_2369],
            ],
        ),
        (
            (1 << 16) + 1,
            [
                [0xd114_5cbe_1730_7760, 0xd114_5cbe_1730_7760],
                [0x83c7_8af8_b6d5_ea0d, 0x4281_cb8e_6420_bc80],
            ],
        ),
    ];
    for (distinct, [numbers, names]) in expected {
        let block = |at: usize| {
            let rows = at..rows.min(at + BLOCK_ROWS);
            (Values::I64(rows.map(|row| number(nth(row, distinct))).collect()), None)
        };
        let blocks: Blocks = (0..rows).step_by(BLOCK_ROWS).map(block).collect();
        assert_plans(&format!("{distinct} numbers"), &blocks, 9, numbers);
        let name = |row, _: &mut Random| format!("a longer name {:x}", number(nth(row, distinct)));
        assert_plans(&format!("{distinct} names"), &texts(rows, name), 9, names);
    }
}

#[test]
fn columns_that_are_compressed() {
    let words = |count: usize, random: &mut Random| -> String {
        (0..count).map(|_| *random.pick(&WORDS)).collect::<Vec<&str>>().join(" ")
    };
    let sentences = texts(20_000, |row, random| format!("{} {row}", words(5, random)));
    assert_plans("sentences", &sentences, 2, [0x1275_dccf_13d3_9b5b, 0xbf18_34e2_f93b_7316]);
    let long = texts(5_000, |row, random| format!("{row} {}", words(700, random)));
    assert_plans("long texts", &long, 1, [0xe1a0_67f9_5ad1_f86b, 0x50fe_8111_f4ec_5a31]);
    let same = "The same long beginning. ".repeat(20);
    let pages = texts(9_000, |row, random| format!("{same}{} {row}", words(3, random)));
    assert_plans("pages", &pages, 1, [0xc32c_5500_43f4_a2a0, 0xd8a1_0ed7_6866_613e]);
    let random = |_, random: &mut Random| format!("{:x}{:x}", random.bits(), random.bits());
    assert_plans(
        "random digits",
        &texts(9_000, random),
        1,
        [0x3bd5_8eff_129f_d6cc, 0x3bd5_8eff_129f_d6cc],
    );
}
