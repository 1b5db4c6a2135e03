//! Integer types that can be bit-packed: their stored reference and differences.

use nacre_types::bytes::Write;

/// An integer stored as a reference plus a difference of at most 64 bits. Arithmetic wraps: damaged
/// bytes give wrong values, not a panic.
pub(crate) trait Integer: Copy + Ord + Default {
    /// Bytes of the stored reference.
    const BYTES: usize;
    /// `self - reference`, if it fits in 64 bits.
    fn difference(self, reference: Self) -> Option<u64>;
    /// The representation in the ranges of a predicate.
    fn number(self) -> i128;
    /// `self + difference`.
    fn plus(self, difference: u64) -> Self;
    /// Reads a stored reference of [`Integer::BYTES`] bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends [`Integer::BYTES`] bytes.
    fn write(self, out: &mut Vec<u8>);
}

impl Integer for i64 {
    const BYTES: usize = 8;
    fn number(self) -> i128 {
        self as i128
    }
    fn difference(self, reference: i64) -> Option<u64> {
        debug_assert!(self >= reference, "{self} is below its reference {reference}");
        Some(self.wrapping_sub(reference) as u64)
    }
    #[inline]
    fn plus(self, difference: u64) -> i64 {
        self.wrapping_add(difference as i64)
    }
    fn read(bytes: &[u8]) -> i64 {
        debug_assert_eq!(bytes.len(), 8, "bytes of a stored 64-bit reference");
        bytes.first_chunk().map_or(0, |b| i64::from_le_bytes(*b))
    }
    fn write(self, out: &mut Vec<u8>) {
        out.put_u64(self as u64);
    }
}

/// Dictionary codes. Their references take 8 bytes, like those of 64-bit integers.
impl Integer for u32 {
    const BYTES: usize = 8;
    fn number(self) -> i128 {
        self as i128
    }
    fn difference(self, reference: u32) -> Option<u64> {
        debug_assert!(self >= reference, "{self} is below its reference {reference}");
        Some(self.wrapping_sub(reference) as u64)
    }
    #[inline]
    fn plus(self, difference: u64) -> u32 {
        self.wrapping_add(difference as u32)
    }
    fn read(bytes: &[u8]) -> u32 {
        i64::read(bytes) as u32
    }
    fn write(self, out: &mut Vec<u8>) {
        out.put_u64(self as u64);
    }
}

impl Integer for i128 {
    const BYTES: usize = 16;
    fn number(self) -> i128 {
        self
    }
    fn difference(self, reference: i128) -> Option<u64> {
        u64::try_from(self.checked_sub(reference)?).ok()
    }
    #[inline]
    fn plus(self, difference: u64) -> i128 {
        self.wrapping_add(difference as i128)
    }
    fn read(bytes: &[u8]) -> i128 {
        debug_assert_eq!(bytes.len(), 16, "bytes of a stored 128-bit reference");
        bytes.first_chunk().map_or(0, |b| i128::from_le_bytes(*b))
    }
    fn write(self, out: &mut Vec<u8>) {
        out.put_i128(self);
    }
}
