//! Deterministic hashing for in-memory maps and for stored hash indexes.
//!
//! Never seeded at random: a simulation must replay from its seed.

use std::hash::{BuildHasherDefault, Hasher};

/// 64-bit hash of bytes, stable across versions of the file format (XXH3).
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Mixes a 64-bit integer to a well spread 64-bit hash (the finaliser of MurmurHash3).
#[inline]
pub fn hash_u64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Combines two hashes; order matters.
#[inline]
pub fn combine(a: u64, b: u64) -> u64 {
    hash_u64(a.rotate_left(5) ^ b)
}

/// Hasher of [`Map`] and [`Set`].
#[derive(Default, Clone, Copy)]
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = combine(self.0, hash_bytes(bytes));
    }
    fn write_u8(&mut self, i: u8) {
        self.write_u64(i as u64);
    }
    fn write_u32(&mut self, i: u32) {
        self.write_u64(i as u64);
    }
    fn write_u64(&mut self, i: u64) {
        self.0 = combine(self.0, i);
    }
    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
    }
}

/// `HashMap` with a fixed hasher.
pub type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FixedHasher>>;
/// `HashSet` with a fixed hasher.
pub type Set<K> = std::collections::HashSet<K, BuildHasherDefault<FixedHasher>>;
