//! Connections and the statements they run: binding, transactions, retries, lock waits, writes,
//! upserts, point statements, row streams, and feeds of changed rows. Public names and Arrow support
//! are in the façade (`nacredb`).
//!
//! The path of a statement: [`Connection`] parses its text, unless `statement_cache` knows it;
//! `binding` binds it and recognises point statements; `run` chooses how to run it, by exactly one
//! of `control` (transactions and options), `catalog_change` (the catalog, outside any transaction),
//! `catalog_in_transaction`, `point` (rows identified by key values, without a plan), or
//! `transactional`, which retries conflicts, waits for locks and passes the statement to `statement`.

mod admission;
mod aside;
mod binding;
mod boxed;
mod catalog;
mod catalog_change;
mod catalog_in_transaction;
mod changes;
mod connection;
mod control;
mod engine;
mod execution;
mod load_end;
mod load_rows;
mod lock_wait;
mod named_statements;
mod open_stream;
mod parameters;
mod point;
mod prepared;
mod progress;
mod references;
mod result;
mod retry;
mod rules;
mod run;
mod settings;
mod slots;
mod statement;
mod statement_cache;
mod stream;
mod table_changes;
mod text_binding;
mod time_slices;
mod timed;
mod transaction;
mod transactional;
mod upload_task;
mod wait_for;

pub use connection::Connection;
pub use engine::{ConnectionDefaults, Engine, open_store};
pub use load_end::{finish_load, write_load};
pub use load_rows::{load_rows, load_schema};
pub use prepared::PreparedStatement;
pub use progress::Progress;
pub use result::{ResultKind, StatementResult, StatementStatistics};
pub use rules::compile_rules;
pub use stream::RowStream;
pub use table_changes::TableChanges;
