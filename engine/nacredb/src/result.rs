//! The result of a statement.

use crate::arrow::{batch_to_arrow, rows_to_ipc_stream, schema_of};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use nacre_column::Batch;
use nacre_session::{ResultKind, StatementResult, StatementStatistics};
use nacre_sql::Field;
use nacre_types::{Result, Value};

/// The result of one statement.
///
/// ```
/// use nacre_native::{block_on, memory_host};
/// use nacredb::{Database, Options, ResultKind};
///
/// # block_on(async {
/// let db = Database::open(memory_host(), Options::default()).await?;
/// let mut session = db.session();
/// let created = session.execute("create table cities (name text primary key)", &[]).await?;
/// assert_eq!(created.kind, ResultKind::Ddl);
///
/// let inserted = session.execute("insert into cities values ('Lima'), ('Oslo')", &[]).await?;
/// assert_eq!((inserted.kind, inserted.rows_affected), (ResultKind::Write, 2));
///
/// let found = session.execute("select name from cities order by name", &[]).await?;
/// assert_eq!((found.columns[0].name.as_str(), found.rows()), ("name", 2));
/// # Ok::<(), nacredb::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// The kind of statement.
    pub kind: ResultKind,
    /// Columns; empty unless the statement returns rows.
    pub columns: Vec<Field>,
    /// Rows, in batches without a selection.
    pub batches: Vec<Batch>,
    /// Rows inserted, updated or deleted.
    pub rows_affected: u64,
    /// Statistics of the execution.
    pub statistics: StatementStatistics,
}

impl From<StatementResult> for QueryResult {
    fn from(result: StatementResult) -> QueryResult {
        let StatementResult { kind, columns, batches, rows_affected, statistics } = result;
        QueryResult { kind, columns, batches, rows_affected, statistics }
    }
}

impl QueryResult {
    /// Number of rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select 1 union all select 2", &[]).await?;
    /// assert_eq!(result.rows(), 2);
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|b| b.rows).sum()
    }

    /// The values of one row, counted from zero; empty past the end.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options, Value};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select true, 'pearl'", &[]).await?;
    /// assert_eq!(result.row(0), [Value::Boolean(true), Value::Text("pearl".into())]);
    /// assert!(result.row(1).is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn row(&self, mut index: usize) -> Vec<Value> {
        for batch in &self.batches {
            if index < batch.rows {
                return batch.row(index);
            }
            index -= batch.rows;
        }
        Vec::new()
    }

    /// The values of all rows. For small results: a large one is cheaper to read through `batches`
    /// or Arrow.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select 'a' union all select 'b'", &[]).await?;
    /// for row in result.to_rows() {
    ///     println!("{}", row[0]);
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn to_rows(&self) -> Vec<Vec<Value>> {
        let rows = |batch: &Batch| (0..batch.rows).map(|row| batch.row(row)).collect::<Vec<_>>();
        self.batches.iter().flat_map(rows).collect()
    }

    /// The Arrow schema of the rows.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select 'pearl' as word", &[]).await?;
    /// assert_eq!(result.arrow_schema().field(0).name(), "word");
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn arrow_schema(&self) -> SchemaRef {
        schema_of(&self.columns)
    }

    /// The rows as Arrow record batches.
    ///
    /// Errors: those of [`crate::arrow::batch_to_arrow`].
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select 'pearl' as word", &[]).await?;
    /// for record_batch in result.to_record_batches()? {
    ///     println!("{} rows", record_batch.num_rows());
    /// }
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn to_record_batches(&self) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        self.batches.iter().map(|batch| batch_to_arrow(batch, &schema)).collect()
    }

    /// The rows as the bytes of an Arrow IPC stream.
    ///
    /// Errors: those of [`crate::arrow::batch_to_arrow`].
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// # let mut session = Database::open(memory_host(), Options::default()).await?.session();
    /// let result = session.execute("select 'pearl' as word", &[]).await?;
    /// let bytes = result.to_arrow_ipc()?;
    /// assert!(!bytes.is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn to_arrow_ipc(&self) -> Result<Vec<u8>> {
        rows_to_ipc_stream(&self.columns, &self.batches)
    }
}
