//! Finding a key in a segment sorted ascending by its key columns: zone maps first, then first rows
//! of blocks, then a binary search with seeks inside one block.
//!
//! Keys order as in `nacre_types::key`: column by column, nulls first, text by bytes.

use crate::segment::{Held, Segment};
use nacre_column::encoding::{Block, Scalar};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::cmp::Ordering;

impl Segment {
    /// The row with exactly this key, if there is one; the first of several. The file must be sorted
    /// ascending by `key_columns`.
    pub fn search(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        let row = self.lower_bound(key_columns, key)?;
        if row >= self.rows() {
            return Ok(None);
        }
        let mut cursor = Cursor::new(self, key_columns, key, row / BLOCK_ROWS);
        Ok(cursor.compare(row % BLOCK_ROWS)?.is_eq().then_some(row))
    }

    /// The first row whose key is not below `key_prefix`, comparing as many columns as the prefix has;
    /// the number of rows if there is none. The file must be sorted ascending by `key_columns`.
    pub fn lower_bound(&self, key_columns: &[usize], key_prefix: &[Value]) -> Result<usize> {
        let key_columns = &key_columns[..key_prefix.len().min(key_columns.len())];
        // The first block that may reach the key, and the first that surely begins past it. Cut bounds
        // need not ascend strictly, so both searches keep only what they have tested: everything
        // before `first` is below, everything from `past` on is above.
        let blocks = self.blocks();
        let (mut first, mut undecided) = (0, blocks);
        while first < undecided {
            let middle = first.midpoint(undecided);
            match self.compare_zone(middle, key_columns, key_prefix)? {
                Some(Ordering::Less) => first = middle + 1,
                _ => undecided = middle,
            }
        }
        let (mut low, mut past) = (first, blocks);
        while low < past {
            let middle = low.midpoint(past);
            match self.compare_zone(middle, key_columns, key_prefix)? {
                Some(Ordering::Greater) => past = middle,
                _ => low = middle + 1,
            }
        }
        // Among what is left, the last block whose first row is below the key holds the answer, or
        // the answer is the first row of the block after it.
        while past - first > 1 {
            let middle = first.midpoint(past);
            match Cursor::new(self, key_columns, key_prefix, middle).compare(0)? {
                Ordering::Less => first = middle,
                _ => past = middle,
            }
        }
        if first >= past {
            return Ok((first * BLOCK_ROWS).min(self.rows()));
        }
        let mut cursor = Cursor::new(self, key_columns, key_prefix, first);
        let (mut low, mut high) = (0, self.block_rows(first));
        while low < high {
            let middle = low.midpoint(high);
            match cursor.compare(middle)? {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(first * BLOCK_ROWS + low)
    }

    /// How all rows of a block order to the key, as far as zone maps know.
    fn compare_zone(&self, block: usize, key_columns: &[usize], key: &[Value]) -> Result<Option<Ordering>> {
        for (&column, key) in key_columns.iter().zip(key) {
            let entry = &self.columns[column];
            let nulls = entry.nulls[block] as usize;
            if nulls == self.block_rows(block) {
                if key.is_null() {
                    continue;
                }
                return Ok(Some(Ordering::Less));
            }
            let order = |scalar: Scalar<'_>| scalar.compare(key).ok_or_else(|| mismatch(self, column));
            let low = order(Scalar::at(&entry.bounds.min, block))?;
            let high = order(Scalar::at(&entry.bounds.max, block))?;
            if high.is_lt() {
                return Ok(Some(Ordering::Less));
            }
            if low.is_gt() {
                return Ok((nulls == 0).then_some(Ordering::Greater));
            }
            if nulls > 0 || low.is_ne() || high.is_ne() || !entry.bounds.exact.get(block) {
                return Ok(None);
            }
        }
        Ok(Some(Ordering::Equal))
    }
}

#[cold]
fn mismatch(segment: &Segment, column: usize) -> Error {
    Error::type_error(format!("key value is not {}", segment.columns()[column].data_type))
}

/// Compares rows of one block to a key; a key column is read only once the ones before it tie.
struct Cursor<'a> {
    segment: &'a Segment,
    key_columns: &'a [usize],
    key: &'a [Value],
    block: usize,
    held: Vec<Held>,
}

impl<'a> Cursor<'a> {
    fn new(segment: &'a Segment, key_columns: &'a [usize], key: &'a [Value], block: usize) -> Cursor<'a> {
        Cursor { segment, key_columns, key, block, held: Vec::new() }
    }

    /// How a row of the block orders to the key.
    fn compare(&mut self, row: usize) -> Result<Ordering> {
        for (at, (&column, key)) in self.key_columns.iter().zip(self.key).enumerate() {
            if at == self.held.len() {
                self.held.push(self.segment.held(column, self.block)?);
            }
            let place = || self.segment.block_place(column, self.block);
            let order = self
                .segment
                .open_block(&self.held[at], column, self.block)
                .and_then(|block: Block<'_>| block.get(row))
                .map_err(|error| self.segment.locate(error, &place()))?
                .compare(key)
                .ok_or_else(|| mismatch(self.segment, column))?;
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}
