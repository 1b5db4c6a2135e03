//! What a statement answers.

use nacre_column::Batch;
use nacre_session::{ResultKind, StatementResult, StatementStatistics};
use nacre_sql::Field;
use nacre_types::Value;

/// The result of one statement.
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// What kind of statement it was.
    pub kind: ResultKind,
    /// Columns; empty unless it is a query.
    pub columns: Vec<Field>,
    /// Rows, in batches without a selection.
    pub batches: Vec<Batch>,
    /// Rows inserted, updated or deleted.
    pub rows_affected: u64,
    /// What it took.
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
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|b| b.rows).sum()
    }

    /// One row; empty past the end.
    pub fn row(&self, mut index: usize) -> Vec<Value> {
        for batch in &self.batches {
            if index < batch.rows {
                return batch.columns.iter().map(|c| c.value(index)).collect();
            }
            index -= batch.rows;
        }
        Vec::new()
    }

    /// All rows, for small results.
    pub fn to_rows(&self) -> Vec<Vec<Value>> {
        let rows = |batch: &Batch| -> Vec<Vec<Value>> {
            (0..batch.rows)
                .map(|row| batch.columns.iter().map(|c| c.value(row)).collect())
                .collect()
        };
        self.batches.iter().flat_map(rows).collect()
    }
}
