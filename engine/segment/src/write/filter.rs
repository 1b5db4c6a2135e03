//! Builds the filter of a segment's keys. Omits keys with a null: lookups never search for one.

use super::blocks::BlockValues;
use crate::filter::bits;
use crate::footer::{block_count, block_rows};
use nacre_column::Values;
use nacre_types::hash::hash_bytes;
use nacre_types::limits::BLOCK_ROWS;

/// Builds the filter of the keys in `columns`, in blocks. A key equal to its neighbour is not
/// hashed again.
pub(crate) fn build(columns: &[&[BlockValues]], rows: usize) -> Vec<BlockValues> {
    debug_assert!(
        columns.iter().all(|column| column.len() == block_count(rows)),
        "a key column has not the blocks of {rows} rows"
    );
    let mut blocks: Vec<Vec<i64>> =
        (0..block_count(rows)).map(|block| vec![0; block_rows(rows, block)]).collect();
    let (mut key, mut last) = (Vec::new(), Vec::new());
    for row in 0..rows {
        key.clear();
        let has_null = columns.iter().any(|blocks| {
            let (values, validity) = &blocks[row / BLOCK_ROWS];
            let at = row % BLOCK_ROWS;
            let is_null = validity.as_ref().is_some_and(|v| !v.get(at));
            if !is_null {
                values.put_key(at, &mut key);
            }
            is_null
        });
        if has_null || key == last {
            continue;
        }
        let (block, bits) = bits(rows, hash_bytes(&key));
        bits.for_each(|(row, bit)| blocks[block][row] |= 1 << bit);
        std::mem::swap(&mut key, &mut last);
    }
    debug_assert_eq!(blocks.iter().map(Vec::len).sum::<usize>(), rows, "words of a filter");
    blocks.into_iter().map(|words| (Values::I64(words), None)).collect()
}
