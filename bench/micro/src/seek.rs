//! The cost of one random `get` and of decoding a full block, per encoding, compared with the same
//! values plain.
//!
//! Blocks are in memory and are opened for every access, as in a point read.

use crate::data::{Column, pairs};
use crate::measure::{Work, interleaved};
use nacre_testing::Random;
use nacre_types::limits::BLOCK_ROWS;
use std::hint::black_box;

const GETS: usize = 4_000;

fn gets(column: &Column) -> Work<'_> {
    let mut random = Random::new(3);
    let places: Vec<(usize, usize)> = (0..GETS)
        .map(|_| {
            (
                random.below(column.blocks.len() as u64) as usize,
                random.below(BLOCK_ROWS as u64) as usize,
            )
        })
        .collect();
    let work = move || {
        for (block, row) in &places {
            black_box(column.open(*block).get(*row).expect("a good row"));
        }
        GETS
    };
    (format!("get {}", column.name), Box::new(work))
}

fn decodes(column: &Column) -> Work<'_> {
    let work = move || {
        for block in 0..column.blocks.len() {
            black_box(column.open(block).decode(0, BLOCK_ROWS).expect("a good block"));
        }
        column.blocks.len() * BLOCK_ROWS
    };
    (format!("decode {}", column.name), Box::new(work))
}

pub fn run() {
    let pairs = pairs();
    let works = pairs
        .iter()
        .flat_map(|(own, plain)| [gets(own), gets(plain), decodes(own), decodes(plain)])
        .collect();
    let times = interleaved(works);
    println!(
        "{:<12} {:<12} {:>10} {:>10} {:>10} {:>7} {:>14} {:>14}",
        "encoding",
        "data",
        "bits a row",
        "get",
        "plain get",
        "ratio",
        "decode a row",
        "plain decode"
    );
    let mut worst: f64 = 0.0;
    let mut slowest: f64 = 0.0;
    for ((own, _), times) in pairs.iter().zip(times.chunks(4)) {
        let [get, plain_get, decode, plain_decode] = [0, 1, 2, 3].map(|at| times[at].1);
        let bits = own.bytes() * 8 / (own.blocks.len() * BLOCK_ROWS);
        println!(
            "{:<12} {:<12} {bits:>10} {get:>7.1} ns {plain_get:>7.1} ns {:>7.2} {decode:>11.3} ns {plain_decode:>11.3} ns",
            own.encoding.name(),
            own.name,
            get / plain_get
        );
        worst = worst.max(get / plain_get);
        slowest = slowest.max(decode / plain_decode);
    }
    println!("seek: worst_get_over_plain={worst:.2} worst_decode_over_plain={slowest:.2}");
}
