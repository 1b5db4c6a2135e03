//! Finding a key in a segment sorted ascending by its key columns: zone maps first, then first rows
//! of blocks, then binary searches with seeks inside one block.
//!
//! Keys order as in `nacre_types::key`: column by column, nulls first, text by bytes.

use crate::segment::Segment;
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_column::block::Block;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::borrow::Borrow;
use std::cmp::Ordering;

impl Segment {
    /// The row with exactly this key, if there is one; the first of several. The file must be sorted
    /// ascending by `key_columns`.
    pub fn search(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        let (row, end) = self.find(key_columns, key, false, false)?;
        Ok((row < end).then_some(row))
    }

    /// The same for who will read the row: its other columns are on their way from memory meanwhile.
    pub fn search_to_read(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        let (row, end) = self.find(key_columns, key, false, true)?;
        Ok((row < end).then_some(row))
    }

    /// The first row whose key is not below `key_prefix`, comparing as many columns as the prefix has;
    /// the number of rows if there is none. The file must be sorted ascending by `key_columns`.
    pub fn lower_bound(&self, key_columns: &[usize], key_prefix: &[Value]) -> Result<usize> {
        Ok(self.find(key_columns, key_prefix, false, false)?.0)
    }

    /// All rows with this key, or that begin with this prefix of one: the first, and the one after the last. The file
    /// must be sorted ascending by `key_columns`.
    pub fn equal_range(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
    ) -> Result<(usize, usize)> {
        self.find(key_columns, key_prefix, true, false)
    }

    /// The lower bound, and where the rows with that key end: of several equal ones surely only with `all`.
    fn find(
        &self,
        key_columns: &[usize],
        key: &[Value],
        all: bool,
        to_read: bool,
    ) -> Result<(usize, usize)> {
        let key_columns = &key_columns[..key.len().min(key_columns.len())];
        // The first block that may reach the key, and the first that surely begins past it. Cut bounds
        // need not ascend strictly, so both searches keep only what they have tested: everything
        // before `first` is below, everything from `past` on is above.
        let blocks = self.blocks();
        let guess = self.guess(blocks, blocks, key_columns, key);
        let below = |block| Ok(self.compare_zone(block, key_columns, key)? == Some(Ordering::Less));
        let mut first = first_not_below(0, blocks, guess, below)?;
        // Most keys lie in one block, so look near before looking far.
        let (mut low, mut past, mut step) = (first, blocks, 1);
        while low < past {
            let middle = if step > 0 { (low + step - 1).min(past - 1) } else { low.midpoint(past) };
            match self.compare_zone(middle, key_columns, key)? {
                Some(Ordering::Greater) => (past, step) = (middle, 0),
                _ => (low, step) = (middle + 1, step * 2),
            }
        }
        // Among what is left, the last block whose first row is below the key holds the answer, or
        // the answer is the first row of the block after it.
        while past - first > 1 {
            let middle = first.midpoint(past);
            match self.compare_row(middle * BLOCK_ROWS, key_columns, key)? {
                Ordering::Less => first = middle,
                _ => past = middle,
            }
        }
        if first >= past {
            let row = (first * BLOCK_ROWS).min(self.rows());
            return Ok((row, row));
        }
        if to_read {
            self.touch(first);
        }
        let (start, end) = self.find_in_block(first, key_columns, key, all)?;
        let (row, mut end) = (first * BLOCK_ROWS + start, first * BLOCK_ROWS + end);
        // Past the end of its block: the answer is the next one's first row. And rows that reach the end may go on.
        let at_end = end == first * BLOCK_ROWS + self.block_rows(first) && end < self.rows();
        if at_end && (all || row == end) && self.compare_row(end, key_columns, key)?.is_eq() {
            end = if all { self.upper_bound(key_columns, key, end + 1)? } else { end + 1 };
        }
        Ok((row, end))
    }

    /// The lower bound inside a block, and where the rows with the key end: column after column, each narrows
    /// the rows to those that tie so far, and is read only if there are any.
    fn find_in_block(
        &self,
        block: usize,
        key_columns: &[usize],
        key: &[Value],
        all: bool,
    ) -> Result<(usize, usize)> {
        let (mut start, mut end) = (0, self.block_rows(block));
        for (position, (&column, key)) in key_columns.iter().zip(key).enumerate() {
            (start, end) = self.look(column, block, |view| {
                let order = |row| view.compare(row, key)?.ok_or_else(|| mismatch(self, column));
                let guess =
                    if position == 0 { self.guess(block, end, key_columns, &[key]) } else { None };
                let first = first_not_below(start, end, guess, |row| Ok(order(row)?.is_lt()))?;
                let mut low = first;
                if position + 1 == key_columns.len() && !all {
                    // Nothing to narrow for: one look tells whether the key is there.
                    return Ok((
                        first,
                        if first < end && order(first)?.is_eq() { first + 1 } else { first },
                    ));
                }
                // Ties are often few: gallop from the first.
                let (mut high, mut step) = (end, 1);
                while low < high {
                    let middle =
                        if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
                    if order(middle)?.is_gt() {
                        (high, step) = (middle, 0)
                    } else {
                        (low, step) = (middle + 1, step * 2)
                    }
                }
                Ok((first, low))
            })?;
            if start == end {
                break;
            }
        }
        Ok((start, end))
    }

    /// Where among `len` rows or blocks in order the first key column would reach the key if it grew evenly between
    /// its bounds, which are those of a block, or, in the place after the last block, of the whole column. `None` for
    /// columns that are not 64-bit integers.
    fn guess<V: Borrow<Value>>(
        &self,
        bounds: usize,
        len: usize,
        key_columns: &[usize],
        key: &[V],
    ) -> Option<usize> {
        let entry = &self.columns[*key_columns.first()?];
        let key = nacre_types::key::integer(key.first()?.borrow())?;
        let (Values::I64(min), Values::I64(max)) = (&entry.bounds.min, &entry.bounds.max) else {
            return None;
        };
        let (min, max) = (i128::from(*min.get(bounds)?), i128::from(*max.get(bounds)?));
        let share = (key - min) as f64 / (max - min + 1) as f64;
        // A share outside of 0 to 1 is cut off by the cast and by who uses the guess.
        Some((share * len as f64) as usize)
    }

    /// Whether a row has this key, comparing as many columns as it has. A row that does not exist has none.
    pub fn is_key(&self, row: usize, key_columns: &[usize], key: &[Value]) -> Result<bool> {
        Ok(row < self.rows() && self.compare_row(row, key_columns, key)?.is_eq())
    }

    /// How a row orders to the key.
    pub(crate) fn compare_row(
        &self,
        row: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<Ordering> {
        for (&column, key) in key_columns.iter().zip(key) {
            let compare = |block: &Block<'_>| block.compare(row % BLOCK_ROWS, key);
            let order = self.look(column, row / BLOCK_ROWS, compare)?;
            match order.ok_or_else(|| mismatch(self, column))? {
                Ordering::Equal => {}
                other => return Ok(other),
            }
        }
        Ok(Ordering::Equal)
    }

    /// How all rows of a block order to the key, as far as zone maps know.
    fn compare_zone(
        &self,
        block: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<Option<Ordering>> {
        for (&column, key) in key_columns.iter().zip(key) {
            let entry = &self.columns[column];
            let nulls = entry.nulls[block] as usize;
            if nulls == self.block_rows(block) {
                if key.is_null() {
                    continue;
                }
                return Ok(Some(Ordering::Less));
            }
            let order =
                |scalar: Scalar<'_>| scalar.compare(key).ok_or_else(|| mismatch(self, column));
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

/// The first in `low..high` that is not below, where those that are below come first. Looks around the guess in steps
/// that grow eightfold, then halves what is left: with a good guess two looks, with a bad one few more than without.
pub(crate) fn first_not_below(
    mut low: usize,
    mut high: usize,
    guess: Option<usize>,
    below: impl Fn(usize) -> Result<bool>,
) -> Result<usize> {
    if let Some(guess) = guess
        && low < high
    {
        let guess = guess.clamp(low, high - 1);
        let mut step = 1;
        if below(guess)? {
            low = guess + 1;
            while step <= high - low {
                if !below(low + step - 1)? {
                    high = low + step - 1;
                    break;
                }
                (low, step) = (low + step, step * 8);
            }
        } else {
            high = guess;
            while step <= high - low {
                if below(high - step)? {
                    low = high - step + 1;
                    break;
                }
                (high, step) = (high - step, step * 8);
            }
        }
    }
    while low < high {
        let middle = low.midpoint(high);
        if below(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cold]
fn mismatch(segment: &Segment, column: usize) -> Error {
    Error::type_error(format!("key value is not {}", segment.columns()[column].data_type))
}

#[cfg(test)]
mod tests {
    use super::first_not_below;
    use std::cell::Cell;

    /// The answer and how often `below` was asked.
    fn find(rows: usize, answer: usize, guess: Option<usize>) -> (usize, usize) {
        let looks = Cell::new(0);
        let below = |row| {
            looks.set(looks.get() + 1);
            Ok(row < answer)
        };
        (first_not_below(0, rows, guess, below).unwrap_or(usize::MAX), looks.get())
    }

    #[test]
    fn a_good_guess_saves_looks_and_a_bad_one_costs_few() {
        for answer in [0, 1, 17, 2_000, 4_000, 4_095, 4_096] {
            assert!(find(4_096, answer, None).1 <= 13);
            for guess in [0, 1, 16, 18, 2_000, 2_100, 4_095, 9_999] {
                let (found, looks) = find(4_096, answer, Some(guess));
                assert_eq!(found, answer, "from {guess}");
                assert!(looks <= 18, "{looks} looks for {answer} from {guess}");
            }
            assert!(find(4_096, answer, Some(answer)).1 <= 2);
        }
        assert_eq!(find(0, 0, Some(3)), (0, 0));
    }
}
