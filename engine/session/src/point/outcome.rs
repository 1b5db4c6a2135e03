//! The outcome of a point statement.

use crate::result::{ResultKind, StatementResult};
use nacre_column::{Batch, Vector};
use nacre_sql::RowStatement;
use nacre_types::Value;
use std::sync::Arc;

/// The outcome of a point statement.
pub(crate) enum Outcome {
    /// The row read, if it exists.
    Row(Option<Vec<Value>>),
    /// The rows read.
    Rows(Vec<Batch>),
    /// The number of rows written.
    Written(u64),
    /// Nothing was done: this execution takes the general path.
    General,
}

impl Outcome {
    /// The row of a read that finds at most one; `None` if the execution takes the general path.
    pub fn into_single_row(self) -> Option<Option<Vec<Value>>> {
        let values = |batch: &Batch| batch.columns.iter().map(|column| column.value(0)).collect();
        match self {
            Outcome::Row(row) => Some(row),
            Outcome::Rows(batches) => Some(batches.first().map(values)),
            Outcome::Written(_) | Outcome::General => None,
        }
    }

    /// The result of the statement; `None` if the execution takes the general path.
    pub fn result(self, statement: &RowStatement) -> Option<StatementResult> {
        let query = || StatementResult {
            columns: statement.describe().output.fields(),
            ..StatementResult::new(ResultKind::Query)
        };
        match self {
            Outcome::Row(row) => {
                let mut result = query();
                if let Some(row) = row {
                    debug_assert!(
                        row.len() == result.columns.len(),
                        "{} values for {} columns",
                        row.len(),
                        result.columns.len()
                    );
                    let vectors = result.columns.iter().zip(&row).map(|(field, value)| {
                        Arc::new(Vector::from_values(field.data_type, [value]))
                    });
                    result.batches.push(Batch::new(vectors.collect(), 1));
                    result.statistics.rows_read = 1;
                }
                result.statistics.point_reads = 1;
                Some(result)
            }
            Outcome::Rows(batches) => {
                let mut result = StatementResult { batches, ..query() };
                result.statistics.rows_read = result.rows() as u64;
                Some(result)
            }
            Outcome::Written(rows) => Some(StatementResult::written(rows)),
            Outcome::General => None,
        }
    }
}
