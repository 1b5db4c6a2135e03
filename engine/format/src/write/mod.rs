//! The writer: rows are collected in blocks, then encoded and written with a footer.

mod blocks;
mod builder;
mod derived;
mod documents;
mod filter;
mod index_order;
mod writer;

pub use builder::SegmentBuilder;
pub use index_order::IndexOrder;
pub use writer::{SegmentWriter, WRITE_BYTES};
