//! Builds the filter of a segment's keys. Omits keys with a null: lookups never search for one.

use crate::filter::bits;
use crate::footer::{block_count, block_rows};
use nacre_column::{BlockValues, Values};
use nacre_types::hash::hash_bytes;
use nacre_types::limits::BLOCK_ROWS;

/// Builds the filter of keys, in blocks.
pub(super) struct FilterBuild {
    rows: usize,
    /// The next row whose key is added.
    next: usize,
    blocks: Vec<Vec<i64>>,
    /// The last key: one equal to its neighbour is not hashed again.
    last: Vec<u8>,
}

impl FilterBuild {
    /// Starts the filter of a segment's keys.
    pub fn new(rows: usize) -> FilterBuild {
        let blocks = (0..block_count(rows)).map(|block| vec![0; block_rows(rows, block)]).collect();
        FilterBuild { rows, next: 0, blocks, last: Vec::new() }
    }

    /// Adds the keys of a block, given the columns of the keys. Returns whether there are more.
    pub fn step(&mut self, columns: &[&[BlockValues]]) -> bool {
        debug_assert!(
            columns.iter().all(|column| column.len() == block_count(self.rows)),
            "a key column has not the blocks of {} rows",
            self.rows
        );
        debug_assert!(
            self.next < self.rows || self.rows == 0,
            "a filter of {} keys takes more",
            self.rows
        );
        let end = self.rows.min(self.next + BLOCK_ROWS);
        let mut key = Vec::new();
        for row in self.next..end {
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
            if has_null || key == self.last {
                continue;
            }
            let (block, bits) = bits(self.rows, hash_bytes(&key));
            bits.for_each(|(row, bit)| self.blocks[block][row] |= 1 << bit);
            std::mem::swap(&mut key, &mut self.last);
        }
        self.next = end;
        end < self.rows
    }

    /// The blocks of the filter.
    pub fn finish(self) -> Vec<BlockValues> {
        debug_assert!(self.next == self.rows, "a filter lacks {} keys", self.rows - self.next);
        let words: usize = self.blocks.iter().map(Vec::len).sum();
        debug_assert_eq!(words, self.rows, "words of a filter");
        self.blocks.into_iter().map(|words| (Values::I64(words), None)).collect()
    }
}
