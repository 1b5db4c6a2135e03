//! Converts rows to the column types of their table.

use nacre_column::Batch;
use nacre_types::{TableSchema, Value};
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
    let types = table.types();
    let chunks = rows.chunks(nacre_types::limits::VECTOR_ROWS);
    chunks.map(|rows| Batch::from_rows(&types, rows)).collect()
}
