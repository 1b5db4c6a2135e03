//! Fetching some rows of a vector by seek, compared with decoding it and picking them, per encoding:
//! the greatest share of rows for which seeking is faster.

use crate::data::{Column, pairs};
use crate::measure::{Work, interleaved};
use nacre_testing::Random;
use nacre_types::limits::{BLOCK_ROWS, VECTOR_ROWS};
use std::hint::black_box;

/// The shares of rows that are fetched: one row in each of these.
const ONE_IN: [usize; 8] = [2, 4, 8, 16, 32, 64, 128, 256];

/// Random ascending rows of a block, one in `one_in` of a vector.
fn rows(random: &mut Random, start: usize, one_in: usize) -> Vec<u32> {
    let row = |at: usize| (start + at + random.below(one_in as u64) as usize) as u32;
    (0..VECTOR_ROWS).step_by(one_in).map(row).collect()
}

/// The vectors of a column: block, start and rows to fetch.
fn vectors(column: &Column, one_in: usize) -> Vec<(usize, usize, Vec<u32>)> {
    let mut random = Random::new(5);
    let starts = (0..column.blocks.len())
        .flat_map(|block| (0..BLOCK_ROWS).step_by(VECTOR_ROWS).map(move |start| (block, start)));
    starts.map(|(block, start)| (block, start, rows(&mut random, start, one_in))).collect()
}

fn works(column: &Column, one_in: usize) -> [Work<'_>; 2] {
    let vectors = vectors(column, one_in);
    let again = vectors.clone();
    let seek = move || {
        for (block, _, rows) in &vectors {
            black_box(column.open(*block).take(rows).expect("good rows"));
        }
        vectors.len()
    };
    let decode = move || {
        for (block, start, rows) in &again {
            let vector = column.open(*block).decode(*start, VECTOR_ROWS).expect("a good block");
            let inside: Vec<u32> = rows.iter().map(|row| row - *start as u32).collect();
            black_box(vector.take(&inside));
        }
        again.len()
    };
    [("seek".into(), Box::new(seek)), ("decode".into(), Box::new(decode))]
}

pub fn run() {
    let pairs = pairs();
    let all = pairs.iter().map(|(own, _)| own);
    let works =
        all.clone().flat_map(|own| ONE_IN.into_iter().flat_map(|one_in| works(own, one_in)));
    let times = interleaved(works.collect());
    let head: Vec<String> =
        ONE_IN.iter().map(|one_in| format!("{:>7}", format!("1/{one_in}"))).collect();
    println!(
        "time of seeking over that of decoding\n{:<12} {:<12} {}",
        "encoding",
        "data",
        head.join("")
    );
    for (own, times) in all.zip(times.chunks(2 * ONE_IN.len())) {
        let ratios: Vec<f64> = times.chunks(2).map(|pair| pair[0].1 / pair[1].1).collect();
        let from = ratios.iter().rposition(|ratio| *ratio >= 1.0).map_or(0, |last| last + 1);
        let cells: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:>7.2}")).collect();
        let found = ONE_IN.get(from).map_or("never".into(), |one_in| format!("1 in {one_in}"));
        println!("{:<12} {:<12} {}   {found}", own.encoding.name(), own.name, cells.join(""));
    }
}
