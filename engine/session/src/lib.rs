//! Connections and the statements they run: binding, transactions, retries, lock waits, writes, upserts, point
//! statements, and streams of rows. The public names and Arrow are the façade's (`nacredb`).

mod catalog;
mod engine;
mod point;
mod profile;
mod result;
mod session;
mod statement;
mod stream;
mod upsert;
mod wait;
mod write;

pub use engine::{ConnectionDefaults, Engine};
pub use result::{ResultKind, StatementResult, StatementStatistics};
pub use session::{Connection, PreparedStatement};
pub use stream::RowStream;
