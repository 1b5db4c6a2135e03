//! Nacre: one table for transactions and analytics. This crate is the engine's public face; everything
//! outside `engine/` sees only this and the host seams.
//!
//! ```text
//! let db = Database::open(host, Options::default()).await?;
//! let mut session = db.session();
//! session.execute("create table t (id bigint primary key, name text)", &[]).await?;
//! ```

mod appender;
pub mod arrow;
mod database;
mod report;
mod result;
mod rows;
mod session;

pub use appender::Appender;
pub use database::{Budget, Database, Options};
pub use nacre_column::{Batch, Bitmap, BytesColumn, Form, Values, Vector, VectorBuilder};
pub use nacre_host as host;
pub use nacre_host::Host;
pub use nacre_session::{ResultKind, StatementStatistics};
pub use nacre_sql::{Field, ends_transaction};
pub use nacre_table::{Durability, OnDuplicate};
#[cfg(feature = "plant")]
pub use nacre_types::plant;
pub use nacre_types::{
    Column, DataType, Error, ErrorKind, Interval, KeyColumns, PhysicalType, Position, Result,
    TableSchema, Value, decimal, format_float32, hash, limits, temporal,
};
pub use report::{ColumnReport, SegmentColumnReport, SegmentReport, TableReport};
pub use result::QueryResult;
pub use rows::Rows;
pub use session::{Prepared, Session};
