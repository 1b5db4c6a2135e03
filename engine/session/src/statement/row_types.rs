//! Converts rows to the column types of their table.

use nacre_column::{Batch, Vector};
use nacre_types::{DataType, TableSchema, Value};
use std::sync::Arc;

/// Relabels vectors with the table's column types: for example, the length limit of a text column
/// is not part of an expression's type.
pub(crate) fn in_table_types(batch: &Batch, table: &TableSchema) -> Batch {
    debug_assert!(
        batch.columns.len() == table.columns.len(),
        "{} columns for table {}",
        batch.columns.len(),
        table.name
    );
    let columns = batch.columns.iter().zip(&table.columns);
    let columns = columns
        .map(|(vector, column)| {
            let same = vector.data_type() == column.data_type;
            let fits = vector.data_type().physical() == column.data_type.physical();
            if same || !fits {
                vector.clone()
            } else {
                Arc::new((**vector).clone().with_type(column.data_type))
            }
        })
        .collect();
    Batch { columns, rows: batch.rows, selection: batch.selection.clone() }
}

/// Converts rows of values to batches.
pub(crate) fn in_batches(table: &TableSchema, rows: &[Vec<Value>]) -> Vec<Batch> {
    let batch = |rows: &[Vec<Value>]| {
        let vector = |(at, t): (usize, DataType)| {
            Arc::new(Vector::from_values(t, rows.iter().map(|row| &row[at])))
        };
        Batch::new(table.types().into_iter().enumerate().map(vector).collect(), rows.len())
    };
    rows.chunks(nacre_types::limits::VECTOR_ROWS).map(batch).collect()
}
