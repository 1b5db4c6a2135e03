//! Limits on collecting rows in memory and on copying them.

/// The position that stands for a row of nulls.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// Maximum bytes of text in a column: offsets are 32-bit.
pub(crate) const MOST_TEXT_BYTES: usize = if cfg!(test) { 64 << 20 } else { u32::MAX as usize };

/// The most bytes of text to copy at a time. A single row may exceed it.
pub(crate) const BATCH_BYTES: usize = if cfg!(test) { 256 << 10 } else { 16 << 20 };
