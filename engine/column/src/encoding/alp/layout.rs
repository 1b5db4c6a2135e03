//! What both kinds of bodies share: sizes, numbers, and what an encoder hands over to be written.

use crate::encoding::bitpacked;

/// Rows that share exponents and a list of exceptions; also those of a bit-packed sub-block.
pub(super) const VECTOR: usize = bitpacked::SUB_ROWS;
// The exceptions of a vector are counted, and their rows are numbered, in 16 bits.
const _: () = assert!(VECTOR <= u16::MAX as usize);
pub(super) const HEAD_BYTES: usize = 8;
pub(super) const ENTRY_BYTES: usize = 8;
/// The kinds, as they are numbered in the head.
pub(super) const DECIMAL: u8 = 0;
pub(super) const REAL: u8 = 1;
/// Flag: every value is a `FLOAT`.
pub(super) const SINGLE: u8 = 1;
/// What an exception takes: its row and its value.
pub(super) const EXCEPTION_BITS: usize = 80;
pub(super) const ENDS_EARLY: &str = "decimals of doubles end early";

/// How a vector's doubles become integers: multiplied by 10^exponent, divided by 10^factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Exponents {
    pub exponent: u8,
    pub factor: u8,
}

/// What an encoder makes of the rows.
pub(super) struct Numbers {
    pub kind: u8,
    pub parameters: [u8; 2],
    pub packed: Vec<u8>,
    /// One entry per vector.
    pub exponents: Vec<Exponents>,
    /// The rows that it cannot hold, ascending.
    pub exceptions: Vec<usize>,
}
