//! Arrow import and export. Each data type maps to one Arrow type in both directions: `DECIMAL` to
//! `Decimal128`, `TIMESTAMP` to microseconds without a zone, `JSON` to `Utf8` marked as the
//! `arrow.json` extension.

mod export;
mod import;
mod read;
mod stream;
#[cfg(test)]
mod tests;
mod types;

pub use export::{batch_to_arrow, schema_of, to_ipc_stream, vector_to_arrow};
pub use import::{batch_from_arrow, vector_from_arrow};
pub use read::ArrowStreamReader;
pub(crate) use stream::rows_to_ipc_stream;
pub use types::{field_to_arrow, type_from_arrow, type_to_arrow};
