//! Shared by both kinds of bodies: sizes, constants, and the result of an encoder.

use crate::encoding::bitpacked;

/// Rows that share exponents and a list of exceptions; equals a bit-packed sub-block.
pub(super) const VECTOR: usize = bitpacked::SUB_ROWS;
// The count of exceptions in a vector, and their rows, are 16 bits.
const _: () = assert!(VECTOR <= u16::MAX as usize);
pub(super) const HEAD_BYTES: usize = 8;
pub(super) const ENTRY_BYTES: usize = 8;
/// The kinds, by their number in the head.
pub(super) const DECIMAL: u8 = 0;
pub(super) const REAL: u8 = 1;
/// Flag: every value is a `FLOAT`.
pub(super) const SINGLE: u8 = 1;
/// Size of an exception in bits: its row and its value.
pub(super) const EXCEPTION_BITS: usize = 80;
pub(super) const ENDS_EARLY: &str = "decimals of doubles end early";

/// How the doubles of a vector become integers: multiplied by 10^exponent, divided by 10^factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Exponents {
    pub exponent: u8,
    pub factor: u8,
}

/// The encoded form of the rows.
pub(super) struct Numbers {
    pub kind: u8,
    pub parameters: [u8; 2],
    pub packed: Vec<u8>,
    /// One entry per vector.
    pub exponents: Vec<Exponents>,
    /// Rows that it cannot represent, ascending.
    pub exceptions: Vec<usize>,
}
