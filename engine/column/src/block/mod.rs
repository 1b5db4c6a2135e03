//! One block of a column: at most [`BLOCK_ROWS`](nacre_types::limits::BLOCK_ROWS) rows, as bytes.

mod plan;
mod read;

#[cfg(test)]
mod conformance;

pub use plan::{ColumnPlan, EncodedBlock, encode_block};
pub use read::{Block, decode_values, encode, encode_values};
pub(crate) use read::{check_text, open_values};
