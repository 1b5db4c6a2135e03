//! In-memory columns: vectors, selections, batches, the seekable encodings (one folder each) and
//! the kernels that filter and aggregate. Independent of I/O and transactions.

mod batch;
mod bitmap;
pub mod block;
pub mod codec;
mod concat;
pub mod encoding;
pub mod kernel;
mod pack;
mod rows;
mod scalar;
mod values;
mod vector;

pub use batch::{Batch, Selection};
pub use bitmap::Bitmap;
pub use rows::{RowSorter, gather, write_cost};
pub use scalar::Scalar;
pub use values::{BytesColumn, Values};
pub use vector::{Form, Vector, VectorBuilder};

/// The values of one block of a column before it is encoded, and which of them are not null.
pub type BlockValues = (Values, Option<Bitmap>);
