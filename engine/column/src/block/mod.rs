//! One block of a column: at most [`BLOCK_ROWS`](nacre_types::limits::BLOCK_ROWS) rows, as bytes.
//!
//! A block is a header of 8 bytes, a validity bitmap if some rows are null, and a body in one of
//! the encodings. [`planning`] and [`plan`] choose the encoding, [`write`] encodes and [`read`] decodes.

mod plan;
mod planning;
mod read;
mod write;

#[cfg(test)]
mod conformance;

pub use plan::{ColumnPlan, EncodedBlock, encode_block};
pub use planning::Planning;
pub use read::Block;
pub use write::encode;
