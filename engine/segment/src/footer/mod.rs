//! The footer: everything about a segment but its values. Written last, read first, kept in memory.

mod bounds;
mod entry;
mod format;

pub(crate) use bounds::extremes;
pub(crate) use entry::{ColumnEntry, DictionaryEntry, block_count, block_rows};
pub(crate) use format::{ALIGNMENT, MAGIC, TRAILER_BYTES, decode, encode};
