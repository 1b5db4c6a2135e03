//! The rows of a query while it runs, as batches of vectors or as Arrow.

use crate::arrow::{batch_to_arrow, schema_of, to_ipc_stream};
use crate::result::QueryResult;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use nacre_column::{Batch, Vector};
use nacre_session::{ResultKind, RowStream, StatementStatistics};
use nacre_sql::Field;
use nacre_types::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A query on its way; see the module. After an error it is at its end.
pub struct Rows(RowStream);

impl Rows {
    pub(crate) fn new(stream: RowStream) -> Rows {
        Rows(stream)
    }

    /// What kind of statement it is. Anything but a query has been run to its end.
    pub fn kind(&self) -> ResultKind {
        self.0.kind()
    }

    /// Columns; empty unless it answers rows.
    pub fn columns(&self) -> &[Field] {
        self.0.columns()
    }

    /// Rows inserted, updated or deleted.
    pub fn rows_affected(&self) -> u64 {
        self.0.rows_affected()
    }

    /// What it took so far.
    pub fn statistics(&self) -> StatementStatistics {
        self.0.statistics()
    }

    /// Set this, from any thread, to end the stream with `cancelled`.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.0.cancel_flag()
    }

    /// The next rows, without a selection; none at the end, and after an error.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        self.0.next().await
    }

    /// The next so many rows, or a batch more, as they come; fewer where they take more than a few megabytes; none
    /// at the end. An error that comes after some of them is the answer to the next call.
    pub async fn next_batches(&mut self, rows: usize) -> Result<Vec<Batch>> {
        self.0.next_batches(rows).await
    }

    /// The Arrow schema of the rows.
    pub fn arrow_schema(&self) -> SchemaRef {
        schema_of(self.columns())
    }

    /// Like [`Rows::next_batches`], as one record batch.
    pub async fn next_record_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let batches = self.next_batches(rows).await?;
        joined(self.columns(), batches)
            .map(|batch| batch_to_arrow(&batch, &self.arrow_schema()))
            .transpose()
    }

    /// Like [`Rows::next_batches`], as an Arrow IPC stream of its own with one record batch; with none, but the schema,
    /// at the end.
    pub async fn next_arrow_ipc(&mut self, rows: usize) -> Result<Vec<u8>> {
        let batch = self.next_record_batch(rows).await?;
        to_ipc_stream(&self.arrow_schema(), batch.as_slice())
    }

    /// Whether the last row has been answered, or an error. Before the end was asked for nobody knows.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// All rows that are left, as [`crate::Session::execute`] would have answered them. They are not counted against
    /// the memory limit: who asks for them holds them.
    pub async fn collect(self) -> Result<QueryResult> {
        self.0.collect().await.map(QueryResult::from)
    }
}

/// Batches as one; none of none.
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
