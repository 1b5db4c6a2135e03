//! The vocabulary of every other crate: values, data types, schemas, errors, checksums, and the byte
//! codecs of keys and rows.
//!
//! Invariants: nothing here does I/O, knows how a table is stored, or reads a clock. Everything that is
//! decoded from bytes is checked; damage is an error of kind [`ErrorKind::Corrupt`].

mod codec;
mod error;
pub mod invariant;
pub mod letters;
pub mod limits;
mod memory;
pub mod plant;
mod schema;
pub mod sorted;
mod value;
pub mod walked;

pub use codec::{bytes, checksum, hash, key, row, type_code};
pub use error::{Error, ErrorKind, Missing, Position, Reason, Result};
pub use memory::{CachePart, MemoryPart};
pub use schema::{
    CheckConstraint, Column, ColumnRule, FIRST_TEMPORARY_TABLE, ForeignKey, IndexId, IndexKind,
    IndexSchema, IndexTraits, KeyColumns, ReferentialAction, ShardKey, TableId, TableSchema,
    ViewSchema, reference_type,
};
pub use value::{
    DECIMAL_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DataType, Interval, PhysicalType, Value,
    decimal, format_float, format_float32, interval, json, parse_float, temporal, uuid,
};

/// Logical commit time. Zero is before every commit; each commit gets the next number.
pub type Timestamp = u64;
