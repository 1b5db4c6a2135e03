//! Search for a key in a segment sorted ascending by its key columns: zone maps, then the first
//! rows of blocks, then binary searches with seeks inside one block.
//!
//! Keys order as in `nacre_types::key`: column by column, nulls first, text by bytes.

use super::opened::Opened;
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_column::block::Block;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::borrow::Borrow;
use std::cmp::Ordering;

impl Opened {
    /// Finds the row with exactly this key; the first one of several. The file must be sorted
    /// ascending by `key_columns`.
    pub fn search(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert_eq!(key.len(), key_columns.len(), "values of a whole key");
        let (row, end) = self.find(key_columns, key, false, false)?;
        Ok((row < end).then_some(row))
    }

    /// Like [`Opened::search`], for callers that read the row next: also prefetches its other
    /// columns.
    pub fn search_to_read(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert_eq!(key.len(), key_columns.len(), "values of a whole key");
        let (row, end) = self.find(key_columns, key, false, true)?;
        Ok((row < end).then_some(row))
    }

    /// Finds the first row whose key is not below `key_prefix`, comparing only the columns of the
    /// prefix; the number of rows if there is none. The file must be sorted ascending by
    /// `key_columns`.
    pub fn lower_bound(&self, key_columns: &[usize], key_prefix: &[Value]) -> Result<usize> {
        Ok(self.find(key_columns, key_prefix, false, false)?.0)
    }

    /// Finds the rows whose key starts with `key_prefix`: the first, and the one after the last.
    /// The file must be sorted ascending by `key_columns`.
    pub fn equal_range(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
    ) -> Result<(usize, usize)> {
        self.find(key_columns, key_prefix, true, false)
    }

    /// Finds the lower bound of a key, and the end of the rows with that key. Without `all`, the
    /// end may be that of the first of several equal rows.
    fn find(
        &self,
        key_columns: &[usize],
        key: &[Value],
        all: bool,
        to_read: bool,
    ) -> Result<(usize, usize)> {
        let key_columns = &key_columns[..key.len().min(key_columns.len())];
        let blocks = self.blocks();
        let (mut first, mut past) = self.blocks_of(key_columns, key)?;
        // Among the remaining blocks, the answer is in the last one whose first row is below the
        // key, or it is the first row of the next block.
        while past - first > 1 {
            let middle = first.midpoint(past);
            match self.compare_row(middle * BLOCK_ROWS, key_columns, key)? {
                Ordering::Less => first = middle,
                _ => past = middle,
            }
        }
        debug_assert!(first <= blocks && past <= blocks, "blocks {first} to {past} of {blocks}");
        if first >= past {
            let row = (first * BLOCK_ROWS).min(self.rows());
            return Ok((row, row));
        }
        if to_read {
            self.touch(first);
        }
        let (start, end) = self.find_in_block(first, key_columns, key, all)?;
        let (row, mut end) = (first * BLOCK_ROWS + start, first * BLOCK_ROWS + end);
        // At the end of its block, the answer may be the first row of the next one, and equal rows
        // may continue there.
        let at_end = end == first * BLOCK_ROWS + self.block_rows(first) && end < self.rows();
        if at_end && (all || row == end) && self.compare_row(end, key_columns, key)?.is_eq() {
            end = if all { self.upper_bound(key_columns, key, end + 1)? } else { end + 1 };
        }
        debug_assert!(row <= end && end <= self.rows(), "rows {row} to {end} of {}", self.rows());
        Ok((row, end))
    }

    /// The only block that may have a key, as far as the zone maps tell; `None` if there are several.
    pub fn block_of(&self, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        debug_assert_eq!(key.len(), key_columns.len(), "values of a whole key");
        let (first, past) = self.blocks_of(key_columns, key)?;
        Ok((first + 1 == past).then_some(first))
    }

    /// The first block that may reach a key, and the first that certainly begins past it.
    fn blocks_of(&self, key_columns: &[usize], key: &[Value]) -> Result<(usize, usize)> {
        // `first` is the first block that may reach the key, `past` the first that certainly begins
        // past it. Truncated bounds need not ascend strictly, so both searches rely only on what
        // they have tested: everything before `first` is below the key, everything from `past` on
        // is above.
        let blocks = self.blocks();
        let guess = self.guess(blocks, blocks, key_columns, key);
        let below = |block| Ok(self.compare_zone(block, key_columns, key)? == Some(Ordering::Less));
        let first = first_not_below(0, blocks, guess, below)?;
        // Most keys lie in one block: gallop from there.
        let (mut low, mut past, mut step) = (first, blocks, 1);
        while low < past {
            let middle = if step > 0 { (low + step - 1).min(past - 1) } else { low.midpoint(past) };
            match self.compare_zone(middle, key_columns, key)? {
                Some(Ordering::Greater) => (past, step) = (middle, 0),
                _ => (low, step) = (middle + 1, step * 2),
            }
        }
        Ok((first, past))
    }

    /// Does the same inside a block: each column in turn narrows the rows that are still equal, and
    /// is read only if there are any.
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
                    // No column is left: one comparison tells whether the key is present.
                    return Ok((
                        first,
                        if first < end && order(first)?.is_eq() { first + 1 } else { first },
                    ));
                }
                // Usually few rows are equal: gallop from the first.
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
            debug_assert!(
                start <= end && end <= self.block_rows(block),
                "rows {start} to {end} of block {block} tie"
            );
            if start == end {
                break;
            }
        }
        Ok((start, end))
    }

    /// Estimates where among `len` sorted rows or blocks the first key column reaches the key,
    /// assuming that it grows evenly between its bounds. `bounds` is the block to take the bounds
    /// from, or the number of blocks for those of the whole column. `None` for columns other than
    /// 64-bit integers.
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
        // The cast and the caller clamp a share outside 0 to 1.
        Some((share * len as f64) as usize)
    }

    /// Whether a row has this key, comparing only the columns of the key. `false` past the last
    /// row.
    pub fn is_key(&self, row: usize, key_columns: &[usize], key: &[Value]) -> Result<bool> {
        Ok(row < self.rows() && self.compare_row(row, key_columns, key)?.is_eq())
    }

    /// Finds the first row, from `from` on, whose key is above all keys with this prefix, comparing
    /// only the columns of the prefix; the number of rows if there is none. No key before `from`
    /// may be above the prefix, and the file must be sorted ascending by `key_columns`. Gallops
    /// from `from`.
    pub fn upper_bound(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
        from: usize,
    ) -> Result<usize> {
        let key_columns = &key_columns[..key_prefix.len().min(key_columns.len())];
        let (mut low, mut high, mut step) = (from, self.rows(), 1);
        debug_assert!(from <= high, "a search from row {from} of {high}");
        if key_columns.is_empty() {
            return Ok(high);
        }
        while low < high {
            let middle = if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
            if self.compare_row(middle, key_columns, key_prefix)?.is_gt() {
                (high, step) = (middle, 0);
            } else {
                (low, step) = (middle + 1, step * 2);
            }
        }
        Ok(low)
    }

    /// Compares a row with the key.
    pub(crate) fn compare_row(
        &self,
        row: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<Ordering> {
        debug_assert!(row < self.rows(), "row {row} of {} is compared", self.rows());
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

    /// Compares all rows of a block with the key, as far as its zone map allows.
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

/// Finds the first index in `low..high` that is not below, given that those below come first.
/// Probes around the guess in steps that grow eightfold, then bisects: a good guess takes two
/// probes, a bad one few more than none.
pub(crate) fn first_not_below(
    mut low: usize,
    mut high: usize,
    guess: Option<usize>,
    below: impl Fn(usize) -> Result<bool>,
) -> Result<usize> {
    debug_assert!(low <= high, "a search in {low} to {high}");
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
    debug_assert_eq!(low, high, "ends of a finished bisection");
    Ok(low)
}

#[cold]
fn mismatch(segment: &Opened, column: usize) -> Error {
    Error::type_error(format!(
        "key value is not of the column's type {}",
        segment.columns()[column].data_type
    ))
}

#[cfg(test)]
mod tests {
    use super::first_not_below;
    use std::cell::Cell;

    /// The answer, and the number of calls of `below`.
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
