//! The checksum of every stored block and record: XXH3, 64 bits.
//! It detects accidents, not attackers.

/// XXH3-64 of the bytes.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
