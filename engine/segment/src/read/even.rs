//! Search for a number in a sorted column with evenly spread values, such as hashes: interpolation
//! search takes about log log *n* probes (Perl, Itai and Avni, *Interpolation Search: A Log LogN
//! Search*, CACM 1978). Other distributions only take more probes.

use super::opened::Opened;
use super::search::first_not_below;
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result};

/// Interpolated probes before the search falls back to bisection.
const GUESSES: usize = 12;

impl Opened {
    /// Finds the first row with a value in an ascending column of 64-bit integers without nulls.
    pub fn find_even(&self, column: usize, value: i64) -> Result<Option<usize>> {
        let blocks = self.blocks();
        let bounds = &self.columns[column].bounds;
        let (Values::I64(least), Values::I64(greatest)) = (&bounds.min, &bounds.max) else {
            return Err(Error::corrupt(format!(
                "segment {}: column {column} is not an integer column",
                self.name()
            )));
        };
        if blocks == 0 || value < least[blocks] || value > greatest[blocks] {
            return Ok(None);
        }
        let guess = share(value, least[blocks], greatest[blocks], blocks);
        let block = first_not_below(0, blocks, Some(guess), |block| Ok(greatest[block] < value))?;
        if block == blocks || value < least[block] {
            return Ok(None);
        }
        let found = self.look(column, block, |view| {
            let (mut low, mut high) = (0, self.block_rows(block));
            let (mut below, mut above) = (least[block], greatest[block]);
            let mut found = false;
            for look in 0.. {
                debug_assert!(low <= high, "rows {low} to {high} of a search");
                if low == high {
                    break;
                }
                let at = match look < GUESSES {
                    true => low + share(value, below, above, high - low).min(high - low - 1),
                    false => low.midpoint(high),
                };
                let Scalar::I64(seen) = view.get(at)? else {
                    return Err(Error::corrupt("hash column is not an integer column"));
                };
                if seen < value {
                    (low, below) = (at + 1, seen);
                } else {
                    (high, above) = (at, seen);
                    found = seen == value;
                }
            }
            debug_assert!(
                !found || low < self.block_rows(block),
                "found in row {low} of block {block}"
            );
            Ok(found.then_some(low))
        })?;
        Ok(found.map(|row| block * BLOCK_ROWS + row))
    }
}

/// Expected position of `value` among `count` evenly spread values from `low` to `high`.
fn share(value: i64, low: i64, high: i64, count: usize) -> usize {
    let span = high.abs_diff(low).max(1) as f64;
    ((value.abs_diff(low) as f64 / span) * count as f64) as usize
}
