//! Nacre: one table for transactions and analytics. This crate is the public interface of the
//! engine: bindings and tests use only this and the host interfaces. `nacre-session` runs
//! statements; this crate adds the public names, Arrow and reports.
//!
//! ```
//! use nacre_native::{block_on, memory_host};
//! use nacredb::{Database, Options, Value};
//!
//! # block_on(async {
//! let db = Database::open(memory_host(), Options::default()).await?;
//! let mut session = db.session();
//! session.execute("create table cities (id bigint primary key, name text)", &[]).await?;
//! session.execute("insert into cities values (1, 'Lima'), (2, 'Oslo')", &[]).await?;
//!
//! let sql = "select name from cities where id = ?";
//! let result = session.execute(sql, &[Value::Int(2)]).await?;
//! assert_eq!(result.row(0), [Value::Text("Oslo".into())]);
//! # Ok::<(), nacredb::Error>(())
//! # }).unwrap();
//! ```

mod appender;
pub mod arrow;
mod blobs;
mod change_feed;
mod database;
mod followers;
mod functions;
mod prepared;
mod report;
mod result;
mod rows;
mod session;
mod uploads;
mod values;

pub use appender::Appender;
pub use blobs::Blobs;
pub use change_feed::ChangeFeed;
pub use database::{Budget, Database, Options};
pub use functions::{AggregateDefinition, ScalarDefinition};
pub use nacre_column::{Batch, Bitmap, BytesColumn, Form, Values, Vector, VectorBuilder};
pub use nacre_host as host;
pub use nacre_host::Host;
pub use nacre_session::{Progress, ResultKind, StatementStatistics};
pub use nacre_sql::{AggregateKernel, GroupStates, ScalarKernel, Volatility};
pub use nacre_sql::{Field, ends_transaction};
pub use nacre_table::{Durability, OnDuplicate};
pub use nacre_tier::{AsOf, TierOptions};
#[cfg(feature = "plant")]
pub use nacre_types::plant;
#[cfg(feature = "walk")]
pub use nacre_types::walked;
pub use nacre_types::{
    Column, ColumnRule, DataType, Error, ErrorKind, Interval, KeyColumns, MemoryPart, PhysicalType,
    Position, Reason, Result, TableId, TableSchema, Value, decimal, format_float32, hash, json,
    limits, temporal, uuid,
};
pub use prepared::Prepared;
pub use report::{ColumnReport, PathReport, SegmentColumnReport, SegmentReport, TableReport};
pub use result::QueryResult;
pub use rows::Rows;
pub use session::Session;
pub use values::{batch_from_values, vector_from_values};
