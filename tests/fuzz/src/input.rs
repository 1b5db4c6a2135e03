//! Interprets bytes as decisions. Once they are used up, every decision is the first choice, so
//! that every input is valid and finite.

/// The rest of an input.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    /// Starts at the beginning of an input.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// One byte; zero at the end of the input.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// A number below `n`, using as few bytes as possible.
    pub fn below(&mut self, n: usize) -> usize {
        let mut value = self.byte() as usize;
        let mut limit = 256;
        while limit < n {
            value = value << 8 | self.byte() as usize;
            limit <<= 8;
        }
        value % n.max(1)
    }

    /// True in about one of `n` cases; false at the end of the input.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An integer, often a special one.
    pub fn integer(&mut self) -> i64 {
        const SPECIAL: [i64; 12] = [
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            i32::MAX as i64,
            i32::MIN as i64,
            255,
            -128,
            65_535,
            1 << 53,
            1_000_000_000,
        ];
        match self.byte() {
            kind @ 0..=31 => SPECIAL[kind as usize % SPECIAL.len()],
            32..=191 => self.byte() as i8 as i64,
            192..=223 => i64::from(i16::from_le_bytes([self.byte(), self.byte()])),
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// Takes this many bytes, or fewer at the end of the input.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}
