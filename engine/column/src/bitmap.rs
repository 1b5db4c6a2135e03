//! A bitmap with one bit per row: validity (1 = not null), or the rows that pass a filter.

use nacre_types::invariant;

/// Bits in 64-bit words, least significant first. Bits past the length are zero.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// Creates a bitmap of `len` equal bits.
    pub fn filled(len: usize, value: bool) -> Bitmap {
        let mut words = vec![if value { u64::MAX } else { 0 }; len.div_ceil(64)];
        if value
            && !len.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last = (1u64 << (len % 64)) - 1;
        }
        let out = Bitmap { words, len };
        debug_assert!(out.is_clean(), "a bit is set past the end");
        out
    }

    /// Whether there is exactly one word per 64 bits and no bit is set past the end.
    fn is_clean(&self) -> bool {
        let past = self.words.last().filter(|_| !self.len.is_multiple_of(64));
        self.words.len() == self.len.div_ceil(64)
            && past.is_none_or(|last| last >> (self.len % 64) == 0)
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`; false past the end.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Sets bit `i`, which must be below the length.
    #[inline]
    pub fn set(&mut self, i: usize, value: bool) {
        debug_assert!(i < self.len, "bit {i} of {}", self.len);
        let mask = 1u64 << (i % 64);
        if value {
            self.words[i / 64] |= mask;
        } else {
            self.words[i / 64] &= !mask;
        }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    /// Reserves capacity for `bits` more bits.
    pub fn reserve(&mut self, bits: usize) {
        self.words.reserve(bits.div_ceil(64));
    }

    /// Appends the lowest `count` bits of a word. `count` is at most 64.
    #[inline]
    pub fn extend_bits(&mut self, bits: u64, count: usize) {
        debug_assert!(count <= 64, "{count} bits of a word");
        if count == 0 {
            return;
        }
        let bits = bits & (u64::MAX >> (64 - count));
        let shift = self.len % 64;
        self.len += count;
        match self.words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= bits << shift;
                if shift + count > 64 {
                    self.words.push(bits >> (64 - shift));
                }
            }
            _ => self.words.push(bits),
        }
        debug_assert!(self.is_clean(), "a bit is set past the end");
    }

    /// Appends `count` equal bits.
    pub fn extend_run(&mut self, value: bool, count: usize) {
        let word = if value { u64::MAX } else { 0 };
        let mut left = count;
        while left > 0 {
            let n = left.min(64);
            self.extend_bits(word, n);
            left -= n;
        }
        debug_assert!(self.is_clean(), "a bit is set past the end");
    }

    /// Creates a bitmap of `len` bits, of which those at these positions are set.
    pub fn of_ones(positions: impl IntoIterator<Item = u32>, len: usize) -> Bitmap {
        let mut out = Bitmap::filled(len, false);
        positions.into_iter().for_each(|at| out.set(at as usize, true));
        out
    }

    /// The set bits whose value passes a test. Other values may be tested too, because where many bits
    /// are set all are tested without branches.
    #[inline]
    pub fn filtered<T: Copy>(&self, values: &[T], test: impl Fn(T) -> bool) -> Bitmap {
        const MANY: u32 = 16;
        debug_assert_eq!(self.len, values.len(), "a value for each bit");
        let words = self.words.iter().zip(values.chunks(64)).map(|(word, values)| {
            let (mut left, mut passed) = (*word, 0);
            if word.count_ones() >= MANY {
                for (bit, value) in values.iter().enumerate() {
                    passed |= (test(*value) as u64) << bit;
                }
                return word & passed;
            }
            while left != 0 {
                let bit = left.trailing_zeros();
                passed |= (test(values[bit as usize]) as u64) << bit;
                left &= left - 1;
            }
            passed
        });
        let out = Bitmap { words: words.collect(), len: self.len };
        debug_assert!(out.is_clean(), "a bit is set past the end");
        out
    }

    /// Positions of the set bits, ascending.
    pub fn ones(&self) -> Vec<u32> {
        debug_assert!(self.len <= u32::MAX as usize, "positions of {} bits", self.len);
        let mut out = Vec::with_capacity(self.count_ones());
        for (at, word) in self.words.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                out.push(at as u32 * 64 + word.trailing_zeros());
                word &= word - 1;
            }
        }
        out
    }

    /// Number of set bits.
    pub fn count_ones(&self) -> usize {
        debug_assert!(self.is_clean(), "a bit is set past the end");
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The underlying words, for kernels.
    pub fn words(&self) -> &[u64] {
        debug_assert!(self.is_clean(), "a bit is set past the end");
        &self.words
    }

    /// Creates a bitmap from the first `len` bits of `words`. `None` if there are too few words.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Option<Bitmap> {
        if words.len() < len.div_ceil(64) {
            return None;
        }
        words.truncate(len.div_ceil(64));
        if !len.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last &= (1u64 << (len % 64)) - 1;
        }
        let out = Bitmap { words, len };
        debug_assert!(out.is_clean(), "a bit is set past the end");
        Some(out)
    }

    /// Bitwise AND of two bitmaps of equal length.
    pub fn and(&self, other: &Bitmap) -> Bitmap {
        self.merged(other, |a, b| a & b)
    }

    /// Bitwise OR of two bitmaps of equal length.
    pub fn or(&self, other: &Bitmap) -> Bitmap {
        self.merged(other, |a, b| a | b)
    }

    /// The bits that are set here and not in another bitmap of equal length.
    pub fn and_not(&self, other: &Bitmap) -> Bitmap {
        self.merged(other, |a, b| a & !b)
    }

    /// Merges two bitmaps of equal length word by word; zeros must merge to zero.
    fn merged(&self, other: &Bitmap, merge: impl Fn(u64, u64) -> u64) -> Bitmap {
        let (bits, others) = (self.len, other.len);
        invariant!(bits == others, "a bitmap of {bits} bits meets one of {others}");
        let words = self.words.iter().zip(&other.words).map(|(a, b)| merge(*a, *b)).collect();
        let out = Bitmap { words, len: self.len };
        debug_assert!(out.is_clean(), "a bit is set past the end");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extending_is_pushing() {
        let mut expected = Bitmap::default();
        let mut found = Bitmap::default();
        for step in 0..200u64 {
            let bits = nacre_types::hash::hash_u64(step);
            let count = (bits % 65) as usize;
            if step % 5 == 0 {
                found.extend_run(bits & 64 != 0, count);
                (0..count).for_each(|_| expected.push(bits & 64 != 0));
            } else {
                found.extend_bits(bits, count);
                (0..count).for_each(|i| expected.push(bits >> i & 1 == 1));
            }
            assert_eq!(found, expected, "step {step}");
        }
        let other = Bitmap::filled(found.len(), true).and_not(&found);
        assert_eq!(other.count_ones(), found.len() - found.count_ones());
        assert_eq!(
            (found.or(&other).count_ones(), found.and(&other).count_ones()),
            (found.len(), 0)
        );
        let ones: Vec<u32> =
            (0..expected.len()).filter(|i| expected.get(*i)).map(|i| i as u32).collect();
        assert_eq!(found.ones(), ones);
        assert_eq!(Bitmap::of_ones(ones.iter().copied(), found.len()), found);
        for rows in [&found, &other, &Bitmap::filled(found.len(), true)] {
            let numbers: Vec<usize> = (0..rows.len()).collect();
            let odd = rows.filtered(&numbers, |row| row % 2 == 1);
            let expected: Vec<u32> = rows.ones().into_iter().filter(|row| row % 2 == 1).collect();
            assert_eq!((odd.ones(), odd.len()), (expected, rows.len()));
        }
    }
}
