//! A set of integers that answers fast and may answer yes too often: bits over the range of the values where that
//! is narrow, else a Bloom filter of which each value touches one word (Putze, Sanders, Singler, "Cache-, hash- and
//! space-efficient Bloom filters", 2007).

use crate::expr::ActiveRows;
use nacre_types::hash::hash_u64;

/// Ranges of so many values are always kept as bits,
const NARROW: u64 = 1 << 19;
/// and wider ones when there is at least one value in so many, which is what the Bloom filter would take.
const BITS_A_VALUE: u64 = 64;
/// So few values are looked for one by one in the bounds of a block.
const FEW: usize = 1 << 12;

/// See the module.
pub(super) struct Keys {
    low: i64,
    high: i64,
    set: Set,
    /// Ascending, when they are few.
    few: Option<Vec<i64>>,
}

enum Set {
    Nothing,
    /// Bit `v - low`.
    Bits(Vec<u64>),
    /// A power of two of words.
    Bloom(Vec<u64>),
}

/// The word of a Bloom filter and the bits in it.
#[inline]
fn place(value: i64, words: usize) -> (usize, u64) {
    let hash = hash_u64(value as u64);
    let bits = 1u64 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
    ((hash >> 20) as usize & (words - 1), bits)
}

impl Keys {
    pub fn of(values: impl ExactSizeIterator<Item = i64> + Clone) -> Keys {
        let count = values.len();
        let range = values.clone().fold(None, |range: Option<(i64, i64)>, v| {
            Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let Some((low, high)) = range else {
            return Keys { low: 0, high: -1, set: Set::Nothing, few: None };
        };
        let few = (count <= FEW).then(|| {
            let mut all: Vec<i64> = values.clone().collect();
            all.sort_unstable();
            all
        });
        let span = high.wrapping_sub(low) as u64;
        let set = if span < NARROW.max((count as u64).saturating_mul(BITS_A_VALUE)) {
            let mut bits = vec![0u64; (span / 64 + 1) as usize];
            for v in values {
                let at = v.wrapping_sub(low) as u64;
                bits[(at / 64) as usize] |= 1 << (at % 64);
            }
            Set::Bits(bits)
        } else {
            // About 16 bits a value: three of 64 in each word, one wrong answer in some fifty.
            let mut words = vec![0u64; (count / 4).next_power_of_two().max(64)];
            for v in values {
                let (at, bits) = place(v, words.len());
                words[at] |= bits;
            }
            Set::Bloom(words)
        };
        Keys { low, high, set, few }
    }

    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        match &self.set {
            Set::Nothing => false,
            Set::Bits(bits) => {
                let at = value.wrapping_sub(self.low) as u64;
                bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
            }
            Set::Bloom(words) => {
                let (at, bits) = place(value, words.len());
                words[at] & bits == bits
            }
        }
    }

    /// Appends those of `rows` whose value may be there.
    pub fn select(&self, values: &[i64], rows: ActiveRows<'_>, out: &mut Vec<u32>) {
        // Without branches: which rows pass cannot be foretold.
        let mut at = 0;
        out.resize(rows.count() + 1, 0);
        let mut put = |row: u32, passes: bool| {
            out[at] = row;
            at += usize::from(passes);
        };
        match rows.selection {
            None => {
                values.iter().enumerate().for_each(|(row, v)| put(row as u32, self.contains(*v)))
            }
            Some(rows) => {
                rows.iter().for_each(|row| put(*row, self.contains(values[*row as usize])))
            }
        }
        out.truncate(at);
    }

    /// Whether any value may be in a range, both ends included.
    pub fn any_between(&self, min: i128, max: i128) -> bool {
        let (low, high) = (min.max(self.low as i128), max.min(self.high as i128));
        if low > high {
            return false;
        }
        match (&self.few, &self.set) {
            (Some(few), _) => {
                let at = few.partition_point(|v| (*v as i128) < low);
                few.get(at).is_some_and(|v| (*v as i128) <= high)
            }
            (None, Set::Bits(bits)) => {
                let (from, to) =
                    ((low - self.low as i128) as usize, (high - self.low as i128) as usize);
                let ends = |word: usize| {
                    let above = if word == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
                    let below = if word == to / 64 { u64::MAX >> (63 - to % 64) } else { u64::MAX };
                    above & below
                };
                (from / 64..=to / 64).any(|word| bits[word] & ends(word) != 0)
            }
            _ => true,
        }
    }
}
