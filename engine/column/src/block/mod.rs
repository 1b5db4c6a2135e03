//! One block of a column: at most [`BLOCK_ROWS`](nacre_types::limits::BLOCK_ROWS) rows, as bytes.
//!
//! A block is a header of 8 bytes, a validity bitmap when some rows are null, and the body of one of
//! the encodings. [`plan`] chooses the encoding, [`write`] and [`read`] are the two directions.

mod plan;
mod read;
mod write;

#[cfg(test)]
mod conformance;

pub use plan::{ColumnPlan, EncodedBlock, encode_block};
pub use read::Block;
pub use write::encode;
