//! Rows are read by parts: `parts` passes all that `get` reads.

use super::{Encoded, Encoding, same};
use crate::Vector;
use crate::block::Block;
use nacre_testing::Random;
use nacre_types::DataType;
use std::ops::Range;

/// Rounds of reading that a row may take.
const ROUNDS: usize = 3;
/// Encodings that are read as a whole.
const WHOLE: [Encoding; 2] = [Encoding::Constant, Encoding::RunLength];

/// The ranges of `all` that the slices passed to `see` occupy.
fn ranges_of<'a>(all: &'a [u8], pass: impl FnOnce(&mut dyn FnMut(&'a [u8]))) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    pass(&mut |slice| {
        if slice.is_empty() {
            return;
        }
        let start = slice.as_ptr() as usize - all.as_ptr() as usize;
        assert!(start + slice.len() <= all.len(), "a slice outside the block");
        ranges.push(start..start + slice.len());
    });
    ranges
}

pub(super) fn check(
    block: &Encoded,
    data_type: DataType,
    expected: &Vector,
    random: &mut Random,
    what: &str,
) {
    let (bytes, rows) = (&block.bytes[..], expected.len());
    let mut by_parts = false;
    let head = ranges_of(bytes, |see| {
        by_parts = Block::head(bytes, data_type, block.encoding, rows, see).unwrap();
    });
    assert!(head.is_sorted_by(|a, b| a.end <= b.start), "{what}: the head is {head:?}");
    if !by_parts {
        assert!(WHOLE.contains(&block.encoding), "{what} is not read by parts");
        return;
    }
    for _ in 0..4 {
        let row = random.below(rows as u64) as usize;
        let mut read = head.clone();
        let mut rounds = 0;
        loop {
            let sparse = block.with_bytes(only(bytes, &read, 0));
            let mut wanted = sparse
                .read(data_type, rows, |block| {
                    ranges_of(&sparse.bytes, |see| block.parts(row, see))
                })
                .unwrap();
            wanted.retain(|range| !read.contains(range));
            if wanted.is_empty() {
                break;
            }
            rounds += 1;
            read.extend(wanted);
        }
        assert!(rounds <= ROUNDS, "{what}: {rounds} rounds for row {row}");
        // Whatever else the block holds makes no difference.
        for rest in [0, 0x55, 0xff] {
            let sparse = block.with_bytes(only(bytes, &read, rest));
            let value = sparse
                .read(data_type, rows, |block| block.get(row).unwrap().to_value(data_type))
                .unwrap();
            assert!(same(&value, &expected.value(row)), "{what}: row {row} from parts: {value:?}");
        }
    }
}

/// The bytes of these ranges; all others are `rest`.
fn only(bytes: &[u8], ranges: &[Range<usize>], rest: u8) -> Vec<u8> {
    let mut sparse = vec![rest; bytes.len()];
    ranges.iter().for_each(|range| sparse[range.clone()].copy_from_slice(&bytes[range.clone()]));
    sparse
}
