//! The vocabulary every other crate speaks: values, data types, schemas, errors,
//! checksums and the byte codecs of keys and rows.
//!
//! Invariants: nothing here does I/O, knows a table's storage, or reads a clock.
//! Everything that is decoded from bytes is checked and answers with
//! [`ErrorKind::Corrupt`] when it does not hold.

pub mod bytes;
pub mod checksum;
mod data_type;
pub mod decimal;
mod error;
pub mod hash;
mod index;
pub mod interval;
pub mod invariant;
pub mod json;
pub mod key;
pub mod limits;
pub mod plant;
pub mod row;
mod schema;
pub mod temporal;
pub mod type_code;
mod value;

pub use data_type::{DECIMAL_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DataType, PhysicalType};
pub use error::{Error, ErrorKind, Position, Reason, Result};
pub use index::{IndexId, IndexKind, IndexSchema, IndexTraits};
pub use schema::{Column, KeyColumns, ShardKey, TableId, TableSchema, ViewSchema};
pub use value::{Interval, Value, format_float32};

/// Logical commit time. Zero is before every commit; each commit gets the next number.
pub type Timestamp = u64;
