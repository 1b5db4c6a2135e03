//! The rows of a running query, as batches of vectors or as Arrow.

use crate::arrow::{batch_to_arrow, rows_to_ipc_stream, schema_of};
use crate::result::QueryResult;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use nacre_column::{Batch, Vector};
use nacre_session::{ResultKind, RowStream, StatementStatistics};
use nacre_sql::Field;
use nacre_types::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The rows of a running query, from [`crate::Session::stream`]. Each batch is computed on demand.
/// Dropping this ends the query. An error ends it, too.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Database, Options};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
/// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
/// let mut rows = session.stream("select name from items order by id", &[]).await?;
/// let mut names = Vec::new();
/// while let Some(batch) = rows.next().await? {
///     names.extend((0..batch.rows).map(|row| batch.columns[0].value(row).to_string()));
/// }
/// assert_eq!(names, ["pearl", "shell"]);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub struct Rows(RowStream);

impl Rows {
    pub(crate) fn new(stream: RowStream) -> Rows {
        Rows(stream)
    }

    /// The kind of statement. Anything but a query has run to completion.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, ResultKind};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rows = session.stream("select id, name from items", &[]).await?;
    /// assert_eq!(rows.kind(), ResultKind::Query);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn kind(&self) -> ResultKind {
        self.0.kind()
    }

    /// Columns; empty unless the statement returns rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rows = session.stream("select id, name from items", &[]).await?;
    /// assert_eq!(rows.columns()[1].name, "name");
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn columns(&self) -> &[Field] {
        self.0.columns()
    }

    /// Rows inserted, updated or deleted.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rows = session.stream("delete from items where id = 1", &[]).await?;
    /// assert_eq!(rows.rows_affected(), 1);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn rows_affected(&self) -> u64 {
        self.0.rows_affected()
    }

    /// Statistics of the execution so far.
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
    /// rows.next().await?;
    /// assert_eq!(rows.statistics().rows_read, 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn statistics(&self) -> StatementStatistics {
        self.0.statistics()
    }

    /// A flag that ends the stream with `cancelled` once any thread sets it.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, ErrorKind, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// use std::sync::atomic::Ordering;
    ///
    /// let mut rows = session.stream("select id, name from items", &[]).await?;
    /// rows.cancel_flag().store(true, Ordering::Relaxed);
    /// assert_eq!(rows.next().await.unwrap_err().kind(), ErrorKind::Cancelled);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.0.cancel_flag()
    }

    /// Returns the next rows, without a selection; `None` at the end, and after an error.
    ///
    /// Errors: those of the query; `cancelled`; `closed`.
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
    /// let batch = rows.next().await?.expect("there are rows");
    /// assert_eq!(batch.rows, 2);
    /// assert!(rows.next().await?.is_none());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        self.0.next().await
    }

    /// Returns at least `rows` of the next rows, in batches as computed: up to a batch more; fewer
    /// at the end, or if they exceed a few megabytes; none at the end. An error after some of the
    /// rows is returned by the next call.
    ///
    /// Errors: those of [`Rows::next`].
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
    /// let batches = rows.next_batches(1_000).await?;
    /// assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn next_batches(&mut self, rows: usize) -> Result<Vec<Batch>> {
        self.0.next_batches(rows).await
    }

    /// The Arrow schema of the rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rows = session.stream("select id, name from items", &[]).await?;
    /// assert_eq!(rows.arrow_schema().fields().len(), 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn arrow_schema(&self) -> SchemaRef {
        schema_of(self.columns())
    }

    /// Like [`Rows::next_batches`], as one record batch; `None` at the end.
    ///
    /// Errors: those of [`Rows::next`] and [`crate::arrow::batch_to_arrow`].
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
    /// while let Some(record_batch) = rows.next_record_batch(1_000).await? {
    ///     println!("{} rows", record_batch.num_rows());
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn next_record_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let batches = self.next_batches(rows).await?;
        joined(self.columns(), batches)
            .map(|batch| batch_to_arrow(&batch, &self.arrow_schema()))
            .transpose()
    }

    /// Like [`Rows::next_batches`], as the bytes of an Arrow IPC stream with one record batch; at
    /// the end, with the schema only.
    ///
    /// Errors: those of [`Rows::next_record_batch`].
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
    /// while !rows.has_ended() {
    ///     let bytes = rows.next_arrow_ipc(1_000).await?;
    ///     println!("{} bytes", bytes.len());
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn next_arrow_ipc(&mut self, rows: usize) -> Result<Vec<u8>> {
        let batches = self.next_batches(rows).await?;
        rows_to_ipc_stream(self.columns(), joined(self.columns(), batches).as_slice())
    }

    /// Whether the end was reached: a call returned no rows, or an error.
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
    /// assert!(!rows.has_ended());
    /// while rows.next().await?.is_some() {}
    /// assert!(rows.has_ended());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Returns all remaining rows, as [`crate::Session::execute`] would have. They do not count
    /// against the memory limit: the caller holds them.
    ///
    /// Errors: those of [`Rows::next`].
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let rows = session.stream("select id, name from items", &[]).await?;
    /// assert_eq!(rows.collect().await?.rows(), 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn collect(self) -> Result<QueryResult> {
        self.0.collect().await.map(QueryResult::from)
    }
}

/// Joins batches into one; `None` if there are none.
fn joined(columns: &[Field], mut batches: Vec<Batch>) -> Option<Batch> {
    if batches.len() <= 1 {
        return batches.pop();
    }
    let column = |(at, field): (usize, &Field)| {
        let parts = batches.iter().map(|batch| (*batch.columns[at]).clone()).collect();
        Arc::new(Vector::concat(field.data_type, parts))
    };
    let rows = batches.iter().map(|batch| batch.rows).sum();
    Some(Batch::new(columns.iter().enumerate().map(column).collect(), rows))
}
