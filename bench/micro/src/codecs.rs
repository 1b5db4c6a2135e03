//! Compares the integer codecs: size and speed on typical keys and postings.

use crate::measure::{Work, interleaved};
use nacre_column::codec::postings::{Postings, encode};
use nacre_column::codec::{BlockChange, CODECS, Codec};
use nacre_testing::Random;
use std::hint::black_box;

const VALUES: usize = 1 << 16;

/// Returns ascending numbers; the greatest is about `VALUES * spread`.
fn ascending(spread: u64, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut value = 0u64;
    (0..VALUES)
        .map(|_| {
            value += 1 + random.below(2 * spread - 1);
            value.min(u32::MAX as u64) as u32
        })
        .collect()
}

fn random_sorted() -> Vec<u32> {
    let mut random = Random::new(5);
    let mut out: Vec<u32> = (0..VALUES).map(|_| random.bits() as u32).collect();
    out.sort_unstable();
    out
}

fn blocks(codec: &dyn Codec, values: &[u32]) -> Vec<Vec<u8>> {
    values.chunks(codec.capacity()).map(|chunk| codec.compress(chunk)).collect()
}

fn works<'a>(codec: &'a dyn Codec, values: &'a [u32], blocks: &'a [Vec<u8>]) -> Vec<Work<'a>> {
    let mut out = Vec::new();
    let mut work =
        |name: &str, run: Box<dyn FnMut() -> usize + 'a>| out.push((name.to_string(), run));
    work(
        "compress",
        Box::new(move || {
            values
                .chunks(codec.capacity())
                .for_each(|chunk| drop(black_box(codec.compress(chunk))));
            values.len()
        }),
    );
    work(
        "uncompress",
        Box::new(move || {
            let mut out = Vec::with_capacity(512);
            for block in blocks {
                out.clear();
                codec.uncompress(block, &mut out).expect("a good block");
                black_box(&out);
            }
            values.len()
        }),
    );
    work(
        "sum",
        Box::new(move || {
            blocks.iter().for_each(|block| {
                black_box(codec.sum(block).expect("a good block"));
            });
            values.len()
        }),
    );
    let mut random = Random::new(11);
    let places: Vec<usize> =
        (0..2_000).map(|_| random.below(values.len() as u64) as usize).collect();
    let searched = places.clone();
    work(
        "search",
        Box::new(move || {
            for at in &searched {
                let block = &blocks[at / codec.capacity()];
                black_box(codec.lower_bound(block, values[*at]).expect("a good block"));
            }
            searched.len()
        }),
    );
    let got = places.clone();
    work(
        "get",
        Box::new(move || {
            for at in &got {
                let block = &blocks[at / codec.capacity()];
                black_box(codec.get(block, at % codec.capacity()).expect("a good block"));
            }
            got.len()
        }),
    );
    work(
        "append",
        Box::new(move || {
            for chunk in values.chunks(codec.capacity()).take(64) {
                let mut block = codec.compress(&[]);
                for value in chunk {
                    assert_eq!(
                        codec.append(&mut block, *value, usize::MAX).expect("a good block"),
                        BlockChange::Done
                    );
                }
                black_box(block);
            }
            codec.capacity() * 64
        }),
    );
    work(
        "insert",
        Box::new(move || {
            for chunk in values.chunks(codec.capacity()).take(16) {
                let mut block = codec.compress(&[]);
                for at in 0..chunk.len() {
                    // Append every other value first, then insert those between.
                    let at = if at * 2 < chunk.len() { at * 2 } else { (at * 2 - chunk.len()) | 1 };
                    codec.insert(&mut block, chunk[at], usize::MAX).expect("a good block");
                }
                black_box(block);
            }
            codec.capacity() * 16
        }),
    );
    out
}

pub fn run() {
    let data = [
        ("in a row", (0..VALUES as u32).collect::<Vec<_>>()),
        ("dense, 1 in 4", ascending(4, 1)),
        ("sparse, 1 in 1,000", ascending(1_000, 2)),
        ("random", random_sorted()),
    ];
    for (name, values) in &data {
        println!("\n{name}");
        print!("{:<26} {:>11}", "codec, ns a value", "bits");
        let all: Vec<Vec<Vec<u8>>> = CODECS.iter().map(|codec| blocks(*codec, values)).collect();
        let works: Vec<Work<'_>> = CODECS
            .iter()
            .zip(&all)
            .flat_map(|(codec, blocks)| works(*codec, values, blocks))
            .collect();
        let times = interleaved(works);
        let kinds = times.len() / CODECS.len();
        times[..kinds].iter().for_each(|(kind, _)| print!(" {kind:>10}"));
        println!();
        for ((codec, blocks), times) in CODECS.iter().zip(&all).zip(times.chunks(kinds)) {
            let bytes: usize = blocks.iter().map(Vec::len).sum();
            print!("{:<26} {:>11.2}", codec.name(), bytes as f64 * 8.0 / values.len() as f64);
            times.iter().for_each(|(_, time)| print!(" {time:>10.2}"));
            println!();
        }
        postings(values);
    }
    println!("\ncodecs: codecs={} datasets={}", CODECS.len(), data.len());
}

/// Measures the values as a posting list: bytes, walking it, and skipping to every 1,000th row.
fn postings(values: &[u32]) {
    let mut rows = values.to_vec();
    rows.dedup();
    let rows = &rows[..];
    let mut bytes = Vec::new();
    encode(rows, &mut bytes);
    let bytes = &bytes[..];
    let walk = move || {
        let mut out = Vec::with_capacity(rows.len());
        Postings::open(bytes).and_then(|mut list| list.rest(&mut out)).expect("a good list");
        black_box(out.len())
    };
    let skip = move || {
        let mut list = Postings::open(bytes).expect("a good list");
        let steps: Vec<u32> = rows.iter().copied().step_by(1_000).collect();
        steps.iter().for_each(|row| {
            black_box(list.advance_to(*row).expect("a good list"));
        });
        steps.len()
    };
    let times = interleaved(vec![("walk".into(), Box::new(walk)), ("skip".into(), Box::new(skip))]);
    println!(
        "{:<26} {:>11.2}   walk {:.2} ns a row, advance by 1,000 rows {:.0} ns",
        "postings",
        bytes.len() as f64 * 8.0 / rows.len() as f64,
        times[0].1,
        times[1].1
    );
}
