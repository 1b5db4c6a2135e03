//! Filters on encoded values, each compared with decoding the values first: comparisons with a
//! constant for every encoding, patterns and beginnings of text for those of text.

use crate::data::{Column, pairs};
use nacre_column::kernel::{Comparison, Pattern, Predicate, filter};
use nacre_column::{Bitmap, Values, Vector};
use nacre_function::kernel::like::like;
use nacre_function::vector::rows::ActiveRows;
use nacre_types::limits::{BLOCK_ROWS, VECTOR_ROWS};
use nacre_types::{DataType, Value};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 31;

/// A filter.
enum Test {
    Set(Predicate),
    /// A word somewhere in a text: the automaton, and what `LIKE` takes.
    Word(Pattern, Vector),
}

impl Test {
    /// The filters of a column with names; each passes some rows and not others.
    fn all(column: &Column) -> Vec<(&'static str, Test)> {
        let at = BLOCK_ROWS / 3;
        let value = match &column.values[0] {
            Values::I64(v) => Value::Int(v[at]),
            Values::F64(v) => Value::Float(v[at]),
            Values::Bytes(v) => Value::Text(String::from_utf8_lossy(v.get(at)).into_owned()),
            _ => Value::Null,
        };
        let compare = |op| {
            let set = Predicate::compare(column.data_type.physical(), op, &value);
            Test::Set(set.expect("a constant of the column's type"))
        };
        let mut all = vec![("<", compare(Comparison::Less)), ("=", compare(Comparison::Equal))];
        if let Value::Text(text) = &value {
            // The last letters of a word and the first ones of the next.
            let word: String = text.chars().skip(text.len() / 2).take(6).collect();
            let pattern = Value::Text(format!("%{word}%"));
            all.push(("beginning", Test::Set(Predicate::starts_with(&text.as_bytes()[..5]))));
            all.push((
                "like %x%",
                Test::Word(
                    Pattern::new(&[b"", word.as_bytes(), b""], false).expect("a short word"),
                    Vector::constant(DataType::TEXT, &pattern, VECTOR_ROWS),
                ),
            ));
        }
        all
    }

    /// The rows of a vector in a block that pass, on encoded values; `None` if the encoding decodes
    /// them for this filter.
    fn encoded(&self, column: &Column, block: usize, start: usize) -> Option<Bitmap> {
        let block = column.open(block);
        match self {
            Test::Set(set) => Some(block.filter(set, start, VECTOR_ROWS).expect("a good block")),
            Test::Word(pattern, _) => {
                let all = Bitmap::filled(VECTOR_ROWS, true);
                block.matches(pattern, start, &all).expect("a good block")
            }
        }
    }

    /// The same on decoded values.
    fn decoded(&self, column: &Column, block: usize, start: usize) -> Bitmap {
        let vector = column.open(block).decode(start, VECTOR_ROWS).expect("a good block");
        match self {
            Test::Set(set) => filter(&vector, set),
            Test::Word(_, pattern) => {
                let rows = ActiveRows::all(VECTOR_ROWS);
                let passed = like(&vector, pattern, None, false, false, rows).expect("a pattern");
                let mut bits = Bitmap::default();
                (0..VECTOR_ROWS)
                    .for_each(|row| bits.push(passed.value(row) == Value::Boolean(true)));
                bits
            }
        }
    }
}

/// The starts of the vectors of a block.
fn starts() -> impl Iterator<Item = usize> {
    (0..BLOCK_ROWS).step_by(VECTOR_ROWS)
}

/// The nanoseconds a row of the two ways, on encoded and on decoded values: of each block the least
/// time of rounds in which the ways take turns. A block takes so little that other work of the
/// machine interrupts few of them.
fn measure(column: &Column, test: &Test) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for block in 0..column.blocks.len() {
        let ways: [&dyn Fn(usize) -> Option<Bitmap>; 2] =
            [&|start| test.encoded(column, block, start), &|start| {
                Some(test.decoded(column, block, start))
            }];
        for start in starts() {
            assert_eq!(ways[0](start), ways[1](start), "block {block} of {}", column.name);
        }
        let mut least = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            for (least, way) in least.iter_mut().zip(ways) {
                let started = Instant::now();
                starts().for_each(|start| drop(black_box(way(start))));
                *least = least.min(started.elapsed().as_nanos() as f64);
            }
        }
        sums.iter_mut().zip(least).for_each(|(sum, least)| *sum += least);
    }
    sums.map(|sum| sum / (column.blocks.len() * BLOCK_ROWS) as f64)
}

pub fn run() {
    println!(
        "{:<12} {:<12} {:<10} {:>14} {:>16} {:>7}",
        "encoding", "data", "filter", "encoded a row", "decoded a row", "ratio"
    );
    let (mut worst, mut filters) = (f64::INFINITY, 0);
    for (column, _) in &pairs() {
        for (name, test) in Test::all(column) {
            if test.encoded(column, 0, 0).is_none() {
                continue;
            }
            let [encoded, decoded] = measure(column, &test);
            println!(
                "{:<12} {:<12} {name:<10} {encoded:>11.3} ns {decoded:>13.3} ns {:>7.2}",
                column.encoding.name(),
                column.name,
                decoded / encoded
            );
            worst = worst.min(decoded / encoded);
            filters += 1;
        }
    }
    println!("encoded: least_speedup={worst:.2} filters={filters}");
}
