//! A set of integers whose test is fast and may have false positives: a bitmap over the range of
//! the values where that is narrow, otherwise a blocked Bloom filter in which each value touches
//! one word (Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007).

use nacre_column::Bitmap;
use nacre_types::hash::hash_u64;

/// A range of at most this many integers is always kept as a bitmap.
const NARROW: u64 = 1 << 19;
/// A wider range is kept as a bitmap up to this many bits per value, as a Bloom filter would take.
const BITS_A_VALUE: u64 = 64;
/// Up to this many values are also kept sorted, to be compared with the bounds of blocks.
const FEW: usize = 1 << 12;

/// A set of integers with a fast, approximate membership test.
pub(super) struct KeySet {
    low: i64,
    high: i64,
    members: Members,
    /// All values, ascending, when they are few.
    few: Option<Vec<i64>>,
}

enum Members {
    Nothing,
    /// Bit `v - low`.
    Bits(Vec<u64>),
    /// A power of two of words.
    Bloom(Vec<u64>),
}

/// The word of a Bloom filter for a value, and the bits in it.
#[inline]
fn bloom_position(value: i64, words: usize) -> (usize, u64) {
    let hash = hash_u64(value as u64);
    let bits = 1u64 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
    ((hash >> 20) as usize & (words - 1), bits)
}

/// Whether a value is in a Bloom filter.
#[inline]
fn is_in_bloom(words: &[u64], value: i64) -> bool {
    let (at, bits) = bloom_position(value, words.len());
    words[at] & bits == bits
}

/// Whether bit `value - low` is set; false past the end.
#[inline]
fn is_set(bits: &[u64], value: i64, low: i64) -> bool {
    let at = value.wrapping_sub(low) as u64;
    bits.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

impl KeySet {
    pub fn of(values: impl ExactSizeIterator<Item = i64> + Clone) -> KeySet {
        let count = values.len();
        let range = values.clone().fold(None, |range: Option<(i64, i64)>, v| {
            Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let Some((low, high)) = range else {
            return KeySet { low: 0, high: -1, members: Members::Nothing, few: None };
        };
        let few = (count <= FEW).then(|| {
            let mut all: Vec<i64> = values.clone().collect();
            all.sort_unstable();
            all
        });
        let span = high.wrapping_sub(low) as u64;
        let members = if span < NARROW.max((count as u64).saturating_mul(BITS_A_VALUE)) {
            let mut bits = vec![0u64; (span / 64 + 1) as usize];
            for v in values {
                let at = v.wrapping_sub(low) as u64;
                bits[(at / 64) as usize] |= 1 << (at % 64);
            }
            Members::Bits(bits)
        } else {
            // About 16 bits per value, three of them set: some 2 % false positives.
            let mut words = vec![0u64; (count / 4).next_power_of_two().max(64)];
            for v in values {
                let (at, bits) = bloom_position(v, words.len());
                words[at] |= bits;
            }
            Members::Bloom(words)
        };
        KeySet { low, high, members, few }
    }

    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        match &self.members {
            Members::Nothing => false,
            Members::Bits(bits) => is_set(bits, value, self.low),
            Members::Bloom(words) => is_in_bloom(words, value),
        }
    }

    /// Those of the rows whose value may be in the set.
    pub fn passing(&self, values: &[i64], rows: &Bitmap) -> Bitmap {
        match &self.members {
            Members::Nothing => Bitmap::filled(rows.len(), false),
            Members::Bits(bits) => rows.filtered(values, |value| is_set(bits, value, self.low)),
            Members::Bloom(words) => rows.filtered(values, |value| is_in_bloom(words, value)),
        }
    }

    /// Whether any value may be in `min..=max`.
    pub fn any_between(&self, min: i128, max: i128) -> bool {
        let (low, high) = (min.max(self.low as i128), max.min(self.high as i128));
        if low > high {
            return false;
        }
        match (&self.few, &self.members) {
            (Some(few), _) => {
                let at = few.partition_point(|v| (*v as i128) < low);
                few.get(at).is_some_and(|v| (*v as i128) <= high)
            }
            (None, Members::Bits(bits)) => {
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
