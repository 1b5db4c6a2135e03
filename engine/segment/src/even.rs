//! Finding a number in a sorted column whose values are spread evenly, as those of hashes are: by interpolation, which
//! takes about as many looks as the logarithm of the logarithm of the rows. Any other sorted numbers are found too, with
//! more looks.

use crate::search::first_not_below;
use crate::segment::Segment;
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result};

/// Looks at places that even values suggest, before halving what is left.
const GUESSES: usize = 12;

impl Segment {
    /// The first row with a value in a column that ascends, is a 64-bit integer, and has no nulls.
    pub fn find_even(&self, column: usize, value: i64) -> Result<Option<usize>> {
        let blocks = self.blocks();
        let bounds = &self.columns[column].bounds;
        let (Values::I64(least), Values::I64(greatest)) = (&bounds.min, &bounds.max) else {
            return Err(Error::corrupt(format!(
                "segment {}: column {column} is no numbers",
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
                if low == high {
                    break;
                }
                let at = match look < GUESSES {
                    true => low + share(value, below, above, high - low).min(high - low - 1),
                    false => low.midpoint(high),
                };
                let Scalar::I64(seen) = view.get(at)? else {
                    return Err(Error::corrupt("a hash is no number"));
                };
                if seen < value {
                    (low, below) = (at + 1, seen);
                } else {
                    (high, above) = (at, seen);
                    found = seen == value;
                }
            }
            Ok(found.then_some(low))
        })?;
        Ok(found.map(|row| block * BLOCK_ROWS + row))
    }
}

/// Where among `count` a value between two others is to be expected.
fn share(value: i64, low: i64, high: i64, count: usize) -> usize {
    let span = high.abs_diff(low).max(1) as f64;
    ((value.abs_diff(low) as f64 / span) * count as f64) as usize
}
