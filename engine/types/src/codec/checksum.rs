//! The checksum of every stored block and record: XXH3, 64 bits.
//! It detects accidents, not attackers.

/// The checksum of bytes that come piece by piece.
#[derive(Default)]
pub struct Checksum(xxhash_rust::xxh3::Xxh3);

impl Checksum {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    pub fn value(&self) -> u64 {
        self.0.digest()
    }
}

/// XXH3-64 of the bytes.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
