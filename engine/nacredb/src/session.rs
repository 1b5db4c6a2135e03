//! A session: one connection with at most one open transaction. Statements run one after another.
//!
//! Without `BEGIN` each statement is a transaction of its own with a fresh snapshot, and is run again
//! by itself when it meets a conflict. Inside a transaction a failed statement is undone, and the
//! transaction stays open.

use crate::database::Database;
use crate::result::QueryResult;
use crate::rows::Rows;
use nacre_session::{Connection, PreparedStatement};
use nacre_sql::Field;
use nacre_types::{DataType, Result, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A connection. Not shared between threads at the same time.
pub struct Session {
    db: Database,
    connection: Connection,
}

/// A statement parsed and bound once. Cheap to clone.
#[derive(Clone)]
pub struct Prepared(PreparedStatement);

impl Prepared {
    /// Columns of its result; empty when it is not a query.
    pub fn columns(&self) -> Vec<Field> {
        self.0.columns()
    }

    /// Types of its parameters, as far as they follow from the statement.
    pub fn parameters(&self) -> Vec<DataType> {
        self.0.parameters()
    }

    /// Names of its parameters: `None` for `?` and `$n`.
    pub fn parameter_names(&self) -> Vec<Option<String>> {
        self.0.parameter_names()
    }

    /// Parameters given by name (`:name`; without the colon), in its order.
    pub fn named(&self, parameters: &[(String, Value)]) -> Result<Vec<Value>> {
        self.0.named(parameters)
    }
}

impl Session {
    pub(crate) fn new(db: Database) -> Session {
        let connection = Connection::new(db.0.clone());
        Session { db, connection }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    /// How many threads may work on one statement of this session; 0 for as many as the host has.
    pub fn set_threads(&mut self, threads: usize) {
        self.connection.set_threads(threads);
    }

    /// Bytes that the operators of one statement of this session may hold together; none for the database's option.
    pub fn set_memory_limit(&mut self, bytes: Option<usize>) {
        self.connection.set_memory_limit(bytes);
    }

    /// Set this to end the running statement with `cancelled`; it is reset when the next one starts.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.connection.cancel_flag()
    }

    /// Runs one or more statements separated by `;` and answers with the last one's result. Parameters are
    /// counted through the whole text, and each statement is given all of them.
    pub async fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<QueryResult> {
        self.connection.execute(sql, parameters).await.map(QueryResult::from)
    }

    /// Like [`Session::execute`] with parameters by name (`:name`; without the colon).
    pub async fn execute_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<QueryResult> {
        self.connection.execute_named(sql, parameters).await.map(QueryResult::from)
    }

    /// Parses and binds one statement for repeated use.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.connection.prepare(sql).map(Prepared)
    }

    /// Runs a prepared statement.
    pub async fn run(&mut self, prepared: &Prepared, parameters: &[Value]) -> Result<QueryResult> {
        self.connection.run(&prepared.0, parameters).await.map(QueryResult::from)
    }

    /// The row that a prepared point read finds: `select columns from t where key = ?` over the whole primary key, or
    /// a whole unique key. The shortest way to a row: nothing waits.
    ///
    /// Errors: `unsupported` for any other statement; those take [`Session::run`].
    pub fn get(&mut self, prepared: &Prepared, parameters: &[Value]) -> Result<Option<Vec<Value>>> {
        self.connection.get(&prepared.0, parameters)
    }

    /// Whether [`Session::get`] can run it.
    pub fn is_point_read(prepared: &Prepared) -> bool {
        prepared.0.is_point_read()
    }

    /// Like [`Session::execute`], with the rows of the last statement as a stream: nothing of it is computed before
    /// it is asked for, and what was answered is not held. It outlives statements of this session, and its
    /// transaction: it shows the rows as the query found them.
    ///
    /// Statements that write are run to their end first, and so is a query that locks rows, or that runs in a
    /// transaction which has changed or locked some.
    pub async fn stream(&mut self, sql: &str, parameters: &[Value]) -> Result<Rows> {
        self.connection.stream(sql, parameters).await.map(Rows::new)
    }

    /// Like [`Session::stream`] with parameters by name (`:name`; without the colon).
    pub async fn stream_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<Rows> {
        self.connection.stream_named(sql, parameters).await.map(Rows::new)
    }

    /// Runs a prepared statement with its rows as a stream; see [`Session::stream`].
    pub async fn stream_prepared(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Rows> {
        self.connection.stream_prepared(&prepared.0, parameters).await.map(Rows::new)
    }
}
