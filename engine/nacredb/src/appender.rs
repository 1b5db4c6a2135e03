//! Bulk loading.

use crate::database::Database;
use crate::session::Session;
use nacre_column::Batch;
use nacre_table::{BulkLoad, OnDuplicate};
use nacre_types::{Error, Result, TableSchema};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A bulk load: rows are written directly into sorted segments and become visible together at
/// [`Appender::finish`]. Dropping it instead leaves the table unchanged.
///
/// ```
/// # use nacre_native::{block_on, memory_host};
/// # use nacredb::{Batch, DataType, Database, OnDuplicate, Options, Value, Vector};
/// # block_on(async {
/// # let db = Database::open(memory_host(), Options::default()).await?;
/// # let mut session = db.session();
/// use std::sync::Arc;
///
/// session.execute("create table readings (sensor bigint primary key, value double)", &[]).await?;
/// let mut appender = session.appender("readings", OnDuplicate::Error).await?;
/// let sensors = Vector::from_values(DataType::Int64, &[Value::Int(1), Value::Int(2)]);
/// let values = Vector::from_values(DataType::Float64, &[Value::Float(0.5), Value::Float(1.5)]);
/// appender.append(&Batch::new(vec![Arc::new(sensors), Arc::new(values)], 2))?;
/// assert_eq!(appender.finish().await?, 2);
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
pub struct Appender {
    database: Database,
    load: BulkLoad,
    schema: Arc<TableSchema>,
    cancel: Arc<AtomicBool>,
}

impl Session {
    /// Starts a bulk load into a table, as a transaction of its own.
    ///
    /// Errors: `unsupported` inside a transaction, and for a table with foreign keys, or that others refer to,
    /// with anything but [`OnDuplicate::Error`]; `not_found` if the table does not exist.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, OnDuplicate, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let appender = session.appender("items", OnDuplicate::Skip).await?;
    /// assert_eq!(appender.schema().name, "items");
    /// // Dropped: nothing was loaded.
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn appender(&mut self, table: &str, on_duplicate: OnDuplicate) -> Result<Appender> {
        if self.in_transaction() {
            return Err(Error::unsupported("bulk load inside a transaction"));
        }
        let database = self.database().clone();
        database.engine().prepare_files().await?;
        let store = database.engine().store();
        let target = store
            .table(table)
            .ok_or_else(|| Error::not_found(format!("table {table}")).with_sqlstate("42P01"))?;
        if on_duplicate != OnDuplicate::Error && target.schema().has_references() {
            let what = format!(
                "a bulk load that skips or replaces rows of {table}, which has foreign keys"
            );
            return Err(Error::unsupported(what).with_hint("use INSERT, which can"));
        }
        let schema = nacre_session::load_schema(&target, database.engine())?;
        let load = store.bulk_load(&target, on_duplicate);
        Ok(Appender { database, load, schema, cancel: Arc::default() })
    }
}

impl Appender {
    /// The schema of rows to append: the table's. Defaults that are expressions are values, and
    /// columns that the table fills in, such as `AUTO_INCREMENT`, take nulls.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, OnDuplicate, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let appender = session.appender("items", OnDuplicate::Error).await?;
    /// let columns = &appender.schema().columns;
    /// let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    /// assert_eq!(names, ["id", "name"]);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Adds rows: one vector per column, in table order, each of the column's type.
    ///
    /// Errors: `type` if the columns differ or a value is out of range; `constraint`; `limit`;
    /// `io`.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Batch, DataType, Database, OnDuplicate, Options, Value, Vector};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// use std::sync::Arc;
    ///
    /// let mut appender = session.appender("items", OnDuplicate::Error).await?;
    /// let ids = Vector::from_values(DataType::Int64, &[Value::Int(7)]);
    /// let names = Vector::from_values(DataType::TEXT, &[Value::Text("conch".into())]);
    /// appender.append(&Batch::new(vec![Arc::new(ids), Arc::new(names)], 1))?;
    /// appender.finish().await?;
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        nacre_session::load_rows(&mut self.load, batch)
    }

    /// Prepares the next call of [`Appender::append`], which then takes its rows only: writes segments that
    /// are full, giving way to other work of the thread in between, and lets the host open files, which
    /// takes a wait in a browser.
    ///
    /// Errors: those of [`Appender::append`], and `limit` if there is no room for more files.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Batch, DataType, Database, OnDuplicate, Options, Value, Vector};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// use std::sync::Arc;
    ///
    /// session.execute("create table numbers (n bigint)", &[]).await?;
    /// let mut appender = session.appender("numbers", OnDuplicate::Error).await?;
    /// for n in 0..3 {
    ///     appender.prepare().await?;
    ///     let vector = Vector::from_values(DataType::Int64, &[Value::Int(n)]);
    ///     appender.append(&Batch::new(vec![Arc::new(vector)], 1))?;
    /// }
    /// assert_eq!(appender.finish().await?, 3);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn prepare(&mut self) -> Result<()> {
        nacre_session::write_load(self.database.engine(), &mut self.load).await
    }

    /// A flag that cancels [`Appender::finish`] when set, from any thread. Once the rows are visible, it has no
    /// effect.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, ErrorKind, OnDuplicate, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// use std::sync::atomic::Ordering;
    ///
    /// session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// let appender = session.appender("items", OnDuplicate::Error).await?;
    /// appender.cancel_flag().store(true, Ordering::Relaxed);
    /// assert_eq!(appender.finish().await.unwrap_err().kind(), ErrorKind::Cancelled);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// Makes all rows visible and durable, or none. Returns the number of rows inserted or
    /// replaced.
    ///
    /// Errors: `constraint` for a duplicate key under [`OnDuplicate::Error`]; `conflict` if the
    /// table was altered; `lock_timeout` if a transaction keeps a row locked that has a key of the
    /// load; `cancelled`; `io`. Where commits wait for uploads, `unavailable` if that takes too long: the rows
    /// are visible then.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, OnDuplicate, Options};
    /// # block_on(async {
    /// # let db = Database::open(memory_host(), Options::default()).await?;
    /// # let mut session = db.session();
    /// # session.execute("create table items (id bigint primary key, name text)", &[]).await?;
    /// # session.execute("insert into items values (1, 'pearl'), (2, 'shell')", &[]).await?;
    /// let appender = session.appender("items", OnDuplicate::Replace).await?;
    /// assert_eq!(appender.finish().await?, 0);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn finish(self) -> Result<u64> {
        let engine = self.database.engine();
        engine.prepare_files().await?;
        let rows = nacre_session::finish_load(engine, self.load, self.cancel).await?;
        engine.housekeeping();
        engine.acknowledge().await?;
        Ok(rows)
    }
}
