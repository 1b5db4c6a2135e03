//! Seeded randomness: SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
//! Generators*, OOPSLA 2014). The same seed gives the same numbers on every machine.

/// A generator of test decisions. Every seed is good, zero too.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Starts at a seed; generators with different purposes are independent.
    pub fn with_purpose(seed: u64, purpose: &str) -> Random {
        let start = seed ^ 0x5851_f42d_4c95_7f2d;
        Random(purpose.bytes().fold(start, |hash, byte| mix(hash ^ u64::from(byte))))
    }

    /// 64 well mixed bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as u64) as i64
    }

    /// `true` in this many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Words to make texts of, as comments have them.
pub const WORDS: [&str; 10] = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "among",
    "the",
    "ironic",
    "requests",
    "furiously",
];
