//! Limits on collecting rows in memory and on copying them.

/// The position that stands for a row of nulls.
pub const NO_ROW: u32 = u32::MAX;

/// The most rows that an operator or an aggregate collects: each has a number of 32 bits.
pub const MAX_ROWS: usize = if cfg!(test) { 1 << 22 } else { NO_ROW as usize - 1 };

/// The most groups, or distinct values of one key column: the numbers of two have a meaning.
pub const MAX_GROUPS: usize = MAX_ROWS - 1;

/// Maximum bytes of text in a column: offsets are 32-bit.
pub const MOST_TEXT_BYTES: usize = if cfg!(test) { 64 << 20 } else { u32::MAX as usize };

/// The most bytes of text to copy at a time. A single row may exceed it.
pub const BATCH_BYTES: usize = if cfg!(test) { 256 << 10 } else { 16 << 20 };
