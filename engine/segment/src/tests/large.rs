//! Segments of many blocks.

use super::{open, pseudo, segment, spec, text};
use crate::{ColumnSpec, SegmentBuilder, Span};
use nacre_column::{Batch, Values, Vector, VectorBuilder};
use nacre_format::write::WRITE_BYTES;
use nacre_host::LocalStore;
use nacre_host::memory::MemoryStore;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{DataType, Value};
use std::sync::Arc;

#[test]
fn the_footer_of_a_large_segment_is_compact() {
    let specs: Vec<ColumnSpec> = (0..16).map(|id| spec(id, DataType::Int64, false)).collect();
    let mut builder = SegmentBuilder::new(specs);
    let column =
        Arc::new(Vector::new(DataType::Int64, Values::I64((0..BLOCK_ROWS as i64).collect()), None));
    for _ in 0..256 {
        builder.push(&Batch::new(vec![column.clone(); 16], BLOCK_ROWS));
    }
    let file = MemoryStore::new().create("s").unwrap();
    builder.write(&*file).unwrap();
    let segment = open(file).unwrap();
    assert_eq!(segment.rows(), 1 << 20);
    assert!(segment.memory_bytes() < 300_000, "{}", segment.memory_bytes());
}

#[test]
fn many_blocks_may_be_empty_or_null() {
    const BLOCKS: usize = 200;
    let specs: Vec<ColumnSpec> = (0..3).map(|id| spec(id, DataType::TEXT, true)).collect();
    let mut builder = SegmentBuilder::new(specs);
    let constant = |value: &Value| Arc::new(Vector::constant(DataType::TEXT, value, BLOCK_ROWS));
    let mut some = VectorBuilder::new(DataType::TEXT);
    (0..BLOCK_ROWS).for_each(|row| some.push_bytes(if row == 7 { b"x" } else { b"" }));
    let columns = vec![
        constant(&Value::Text(String::new())),
        constant(&Value::Null),
        Arc::new(some.finish()),
    ];
    for _ in 0..BLOCKS {
        builder.push(&Batch::new(columns.clone(), BLOCK_ROWS));
    }
    let file = MemoryStore::new().create("s").unwrap();
    builder.write(&*file).unwrap();
    let segment = open(file).unwrap();
    assert_eq!(segment.rows(), BLOCKS * BLOCK_ROWS);
    let last = segment.rows() - BLOCK_ROWS;
    assert_eq!(segment.get(0, last).unwrap(), Value::Text(String::new()));
    assert_eq!(segment.get(1, last).unwrap(), Value::Null);
    assert_eq!(segment.get(2, last + 7).unwrap(), Value::Text("x".into()));
}

/// The footer may lie anywhere relative to the chunks in which the file is written.
#[test]
fn a_segment_may_have_any_length() {
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = nacre_types::hash::hash_u64(state);
        state as u8
    })
    .take(WRITE_BYTES + 100)
    .collect();
    for len in (WRITE_BYTES - 600..WRITE_BYTES + 100).step_by(3) {
        let mut builder = SegmentBuilder::new(vec![spec(1, DataType::BLOB, false)]);
        let mut column = VectorBuilder::new(DataType::BLOB);
        column.push_bytes(&noise[..len]);
        builder.push(&Batch::new(vec![Arc::new(column.finish())], 1));
        let file = MemoryStore::new().create("s").unwrap();
        builder.write(&*file).unwrap();
        let segment = open(file).unwrap_or_else(|error| panic!("a value of {len} bytes: {error}"));
        assert_eq!(segment.get(0, 0).unwrap(), Value::Binary(noise[..len].to_vec()));
    }
}

/// The zone of a group, and of the segment, contains those of its blocks, and no more.
#[test]
fn zones_of_groups_contain_those_of_their_blocks() {
    let specs = vec![spec(1, DataType::Int64, true), spec(2, DataType::TEXT, true)];
    let rows = 37 * BLOCK_ROWS + 5;
    let value = |row: usize| {
        let block = row / BLOCK_ROWS;
        // Whole blocks, and a whole group, of nulls.
        if block % 5 == 2 || (16..32).contains(&block) {
            return vec![Value::Null, Value::Null];
        }
        let number = (pseudo(row) % 1_000) as i64 - block as i64 * 100;
        vec![Value::Int(number), text(format!("{number:09}{}", "long ".repeat(9)))]
    };
    let all: Vec<Vec<Value>> = (0..rows).map(value).collect();
    let segment = segment(&specs, &all);
    assert_eq!(segment.groups(), 3);
    let spans = (0..3).map(Span::Group).chain([Span::Segment]);
    for (span, column) in spans.flat_map(|span| [(span, 0), (span, 1)]) {
        let zone = segment.zone_of(column, span).unwrap();
        let parts: Vec<_> = segment
            .blocks_of(span)
            .map(|block| segment.zone_of(column, Span::Block(block)).unwrap())
            .collect();
        let valued: Vec<_> = parts.iter().filter(|part| !part.min.is_null()).collect();
        let order = |a: &&Value, b: &&Value| match (*a, *b) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            other => panic!("bounds {other:?}"),
        };
        let least = valued.iter().map(|part| &part.min).min_by(order);
        let greatest = valued.iter().map(|part| &part.max).max_by(order);
        assert_eq!(&zone.min, least.unwrap_or(&Value::Null), "{span:?}");
        assert_eq!(&zone.max, greatest.unwrap_or(&Value::Null), "{span:?}");
        assert_eq!(zone.null_count, parts.iter().map(|part| part.null_count).sum::<u32>());
        let in_blocks = segment.blocks_of(span).map(|block| segment.block_rows(block));
        assert_eq!(segment.rows_of(span), in_blocks.sum::<usize>());
    }
    assert!(segment.zone_of(0, Span::Group(1)).unwrap().min.is_null(), "a group of nulls");
}
