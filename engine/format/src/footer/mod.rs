//! The footer: all metadata of a segment. Written last, read first, kept in memory.

mod bounds;
mod entry;
mod format;
mod groups;
mod parts;

pub use bounds::extremes;
pub use entry::{
    ColumnEntry, DictionaryEntry, DocumentEntry, OutlineEntry, PartOf, block_count, block_rows,
};
pub use format::{
    ALIGNMENT, Footer, FooterHead, MAGIC, MAX_PARTS, TRAILER_BYTES, decode, encode, version_of,
};
pub use groups::{GROUP_BLOCKS, GroupZone, group_zones};
