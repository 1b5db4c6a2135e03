//! Filtering an encoded block, compared with decoding it and filtering the values.

use crate::data::{Column, pairs};
use crate::measure::{Work, interleaved};
use nacre_column::Values;
use nacre_column::kernel::{Comparison, Predicate, filter};
use nacre_types::Value;
use nacre_types::limits::{BLOCK_ROWS, VECTOR_ROWS};
use std::hint::black_box;

/// Returns a filter `< value`, with a value of the column that some rows pass and others do not.
fn predicate(column: &Column) -> Predicate {
    let value = match &column.values[0] {
        Values::I64(v) => Value::Int(v[v.len() / 3]),
        Values::F64(v) => Value::Float(v[v.len() / 3]),
        Values::Bytes(v) => Value::Text(String::from_utf8_lossy(v.get(v.len() / 3)).into_owned()),
        _ => Value::Null,
    };
    Predicate::compare(column.data_type.physical(), Comparison::Less, &value)
        .expect("a constant of the column's type")
}

fn vectors(column: &Column) -> impl Iterator<Item = (usize, usize)> {
    (0..column.blocks.len())
        .flat_map(|block| (0..BLOCK_ROWS).step_by(VECTOR_ROWS).map(move |start| (block, start)))
}

pub fn run() {
    let pairs = pairs();
    let mut works: Vec<Work<'_>> = Vec::new();
    for (column, _) in &pairs {
        let (encoded, decoded) = (predicate(column), predicate(column));
        let rows = column.blocks.len() * BLOCK_ROWS;
        works.push((
            "encoded".into(),
            Box::new(move || {
                for (block, start) in vectors(column) {
                    black_box(
                        column
                            .open(block)
                            .filter(&encoded, start, VECTOR_ROWS)
                            .expect("a good block"),
                    );
                }
                rows
            }),
        ));
        works.push((
            "decoded".into(),
            Box::new(move || {
                for (block, start) in vectors(column) {
                    let vector =
                        column.open(block).decode(start, VECTOR_ROWS).expect("a good block");
                    black_box(filter(&vector, &decoded));
                }
                rows
            }),
        ));
    }
    let times = interleaved(works);
    println!(
        "{:<12} {:<12} {:>14} {:>16} {:>7}",
        "encoding", "data", "encoded a row", "decoded a row", "ratio"
    );
    let mut least = f64::INFINITY;
    for ((column, _), times) in pairs.iter().zip(times.chunks(2)) {
        let (encoded, decoded) = (times[0].1, times[1].1);
        println!(
            "{:<12} {:<12} {encoded:>11.3} ns {decoded:>13.3} ns {:>7.2}",
            column.encoding.name(),
            column.name,
            decoded / encoded
        );
        least = least.min(decoded / encoded);
    }
    println!("filter: least_speedup={least:.2}");
}
