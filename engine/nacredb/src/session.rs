//! A session: one connection with at most one open transaction. Statements run one after another.
//!
//! Without `BEGIN`, each statement is a transaction of its own with a fresh snapshot, retried on a
//! conflict. Inside a transaction, a failed statement is rolled back and the transaction stays
//! open.

use crate::database::Database;
use crate::prepared::Prepared;
use crate::result::QueryResult;
use crate::rows::Rows;
use nacre_session::{Connection, Progress};
use nacre_types::{Result, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A connection. It runs one statement at a time, concurrently with other sessions.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options, Value};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// session.execute("create table accounts (id bigint primary key, balance int)", &[]).await?;
/// session.execute("insert into accounts values (1, 100), (2, 0)", &[]).await?;
///
/// session.execute("begin", &[]).await?;
/// session.execute("update accounts set balance = balance - 30 where id = 1", &[]).await?;
/// session.execute("update accounts set balance = balance + 30 where id = 2", &[]).await?;
/// session.execute("commit", &[]).await?;
///
/// let sql = "select balance from accounts where id = ?";
/// let result = session.execute(sql, &[Value::Int(2)]).await?;
/// assert_eq!(result.row(0), [Value::Int(30)]);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub struct Session {
    database: Database,
    connection: Connection,
}

impl Database {
    /// Opens a connection. Sessions are independent: each has its own transaction.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// let mut writer = db.session();
    /// let mut reader = db.session();
    /// writer.execute("begin", &[]).await?;
    /// assert!(writer.in_transaction() && !reader.in_transaction());
    /// reader.execute("select 1", &[]).await?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }
}

impl Session {
    pub(crate) fn new(database: Database) -> Session {
        let connection = Connection::new(database.engine().clone());
        Session { database, connection }
    }

    /// The database.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// let other = session.database().session();
    /// assert!(!other.in_transaction());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Whether a transaction is open.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// session.execute("begin", &[]).await?;
    /// assert!(session.in_transaction());
    /// session.execute("rollback", &[]).await?;
    /// assert!(!session.in_transaction());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    /// Sets the maximum number of threads per statement of this session; 0 for as many as the host
    /// has.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// session.set_threads(1);
    /// session.execute("select count(*) from items", &[]).await?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn set_threads(&mut self, threads: usize) {
        self.connection.set_threads(threads);
    }

    /// Sets the maximum bytes of memory for all operators of one statement of this session; `None`
    /// for [`crate::Options::memory_limit`].
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// session.set_memory_limit(Some(64 << 20));
    /// session.execute("select name, count(*) from items group by name", &[]).await?;
    /// session.set_memory_limit(None);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn set_memory_limit(&mut self, bytes: Option<usize>) {
        self.connection.set_memory_limit(bytes);
    }

    /// A flag that ends the running statement with `cancelled` once another thread sets it.
    /// Starting a statement resets it.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// use std::sync::atomic::Ordering;
    ///
    /// let cancel = session.cancel_flag();
    /// std::thread::spawn(move || cancel.store(true, Ordering::Relaxed)).join().ok();
    /// // Set before the statement began, so it ends nothing.
    /// session.execute("select count(*) from items", &[]).await?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.connection.cancel_flag()
    }

    /// How far the running statement is. A statement reports it when it waits for bytes of blobs, and
    /// when it gives way, on a host with time slices; elsewhere it stays at 0.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// let session = db.session();
    /// assert_eq!(session.progress().rows_and_total(), (0, 0));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn progress(&self) -> Arc<Progress> {
        self.connection.progress()
    }

    /// Runs one or more statements separated by `;` and returns the last one's result. Parameters
    /// are `?` or `$1`; their positions count through the whole text.
    ///
    /// Errors: `syntax`, `type` and `not_found` with their position in the text; `constraint`;
    /// `conflict`, `deadlock` and `lock_timeout`, after which the transaction can be retried;
    /// `limit`; `cancelled`; `io`; `corrupt`; `closed`.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, ErrorKind, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let name = Value::Text("pearl".into());
    /// let result = session.execute("select id from items where name = ?", &[name]).await?;
    /// assert_eq!(result.row(0), [Value::Int(1)]);
    ///
    /// let error = session.execute("select id from item", &[]).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<QueryResult> {
        self.connection.execute(sql, parameters).await.map(QueryResult::from)
    }

    /// Like [`Session::execute`] with named parameters (`:name`; passed without the colon).
    ///
    /// Errors: those of [`Session::execute`]; `type` if a parameter is missing.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let parameters = [("id".to_string(), Value::Int(2))];
    /// let result = session.execute_named("select name from items where id = :id", &parameters).await?;
    /// assert_eq!(result.row(0), [Value::Text("shell".into())]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn execute_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<QueryResult> {
        self.connection.execute_named(sql, parameters).await.map(QueryResult::from)
    }

    /// Parses and binds one statement for repeated use. It stays valid if tables change: it is then
    /// bound again.
    ///
    /// Errors: `syntax` unless the text is exactly one statement, and those of binding it.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let insert = session.prepare("insert into items values (?, ?)")?;
    /// for (id, name) in [(3, "coral"), (4, "amber")] {
    ///     session.run(&insert, &[Value::Int(id), Value::Text(name.into())]).await?;
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.connection.prepare(sql).map(Prepared::new)
    }

    /// Runs a prepared statement.
    ///
    /// Errors: those of [`Session::execute`]; `type` when the number of parameters differs.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rename = session.prepare("update items set name = ? where id = ?")?;
    /// let result = session.run(&rename, &[Value::Text("nacre".into()), Value::Int(1)]).await?;
    /// assert_eq!(result.rows_affected, 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn run(&mut self, prepared: &Prepared, parameters: &[Value]) -> Result<QueryResult> {
        self.connection.run(prepared.statement(), parameters).await.map(QueryResult::from)
    }

    /// Returns the row of a prepared point read: `select columns from t where key = ?` over the
    /// whole primary key, or a whole unique key. The fastest way to read a row: it never waits, but
    /// for bytes that the host has to fetch.
    ///
    /// Errors: `unsupported` for any other statement, which [`Session::run`] accepts; `io` if bytes
    /// must be fetched and the host's threads cannot wait, where [`Session::get_async`] does.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = ?")?;
    /// assert_eq!(session.get(&by_id, &[Value::Int(2)])?, Some(vec![Value::Text("shell".into())]));
    /// assert_eq!(session.get(&by_id, &[Value::Int(9)])?, None);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn get(&mut self, prepared: &Prepared, parameters: &[Value]) -> Result<Option<Vec<Value>>> {
        self.connection.get(prepared.statement(), parameters)
    }

    /// Like [`Session::get`], but awaits bytes that the host has to fetch, instead of blocking the
    /// thread.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = ?")?;
    /// let row = session.get_async(&by_id, &[Value::Int(1)]).await?;
    /// assert_eq!(row, Some(vec![Value::Text("pearl".into())]));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn get_async(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        self.connection.get_async(prepared.statement(), parameters).await
    }

    /// Whether [`Session::get`] can run a prepared statement.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Session};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let by_id = session.prepare("select name from items where id = ?")?;
    /// let all = session.prepare("select name from items")?;
    /// assert!(Session::is_point_read(&by_id) && !Session::is_point_read(&all));
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn is_point_read(prepared: &Prepared) -> bool {
        prepared.statement().is_point_read()
    }

    /// Like [`Session::execute`], with the rows of the last statement as a stream: they are
    /// computed on demand and not kept after they are returned. The stream outlives later
    /// statements of this session, and its transaction: it returns the rows as of the start of the
    /// query.
    ///
    /// Runs to completion first: a statement that writes, a query that locks rows, and a query in a
    /// transaction that has changed or locked rows.
    ///
    /// Errors: those of [`Session::execute`]; errors of the rows are returned when they are read.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let mut rows = session.stream("select id, name from items", &[]).await?;
    /// while let Some(batch) = rows.next().await? {
    ///     println!("{} rows", batch.rows);
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn stream(&mut self, sql: &str, parameters: &[Value]) -> Result<Rows> {
        self.connection.stream(sql, parameters).await.map(Rows::new)
    }

    /// Like [`Session::stream`] with named parameters (`:name`; passed without the colon).
    ///
    /// Errors: those of [`Session::stream`]; `type` if a parameter is missing.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let parameters = [("least".to_string(), Value::Int(2))];
    /// let sql = "select name from items where id >= :least";
    /// let rows = session.stream_named(sql, &parameters).await?;
    /// assert_eq!(rows.collect().await?.rows(), 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn stream_named(
        &mut self,
        sql: &str,
        parameters: &[(String, Value)],
    ) -> Result<Rows> {
        self.connection.stream_named(sql, parameters).await.map(Rows::new)
    }

    /// Runs a prepared statement and returns its rows as a stream; see [`Session::stream`].
    ///
    /// Errors: those of [`Session::stream`].
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let from = session.prepare("select name from items where id >= ?")?;
    /// let rows = session.stream_prepared(&from, &[Value::Int(1)]).await?;
    /// assert_eq!(rows.collect().await?.rows(), 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn stream_prepared(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
    ) -> Result<Rows> {
        self.connection.stream_prepared(prepared.statement(), parameters).await.map(Rows::new)
    }
}
