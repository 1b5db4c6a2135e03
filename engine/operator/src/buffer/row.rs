//! Rows collected in memory, one growing column for each of their columns.

use super::column::ColumnBuffer;
use super::limits::{MAX_ROWS, NO_ROW};
use nacre_column::{Batch, BytesColumn, Vector};
use nacre_function::vector::rows::ActiveRows;
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

/// Rows of growing columns.
pub struct RowBuffer {
    columns: Vec<ColumnBuffer>,
    rows: usize,
}

impl RowBuffer {
    /// No rows, of columns of these types.
    pub fn new(types: &[DataType]) -> RowBuffer {
        RowBuffer { columns: types.iter().map(|t| ColumnBuffer::new(*t)).collect(), rows: 0 }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends these rows of a batch.
    pub fn append(&mut self, batch: &Batch, rows: ActiveRows<'_>) -> Result<()> {
        if self.rows + rows.count() > MAX_ROWS {
            return Err(Error::limit(format!("more than {MAX_ROWS} rows in one operator")));
        }
        for (own, column) in self.columns.iter_mut().zip(&batch.columns) {
            own.append(column, rows)?;
        }
        self.rows += rows.count();
        debug_assert!(
            self.columns.iter().all(|column| column.len() == self.rows),
            "columns have one length"
        );
        Ok(())
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuffer::memory_bytes).sum()
    }

    /// Rows at these positions, with nulls at [`NO_ROW`].
    pub fn take(&self, positions: &[u32]) -> Vec<Arc<Vector>> {
        self.columns.iter().map(|c| Arc::new(c.take_or_null(positions))).collect()
    }

    /// The most bytes of text that taking one row copies.
    pub fn longest_row(&self) -> usize {
        let longest = |texts: &BytesColumn| {
            (0..texts.len()).map(|row| texts.get(row).len()).max().unwrap_or(0)
        };
        self.columns.iter().filter_map(ColumnBuffer::copied_texts).map(longest).sum()
    }

    /// Bytes of text that taking this row copies.
    pub fn copied_bytes(&self, row: u32) -> usize {
        let bytes =
            |texts: &BytesColumn| if row == NO_ROW { 0 } else { texts.get(row as usize).len() };
        self.columns.iter().filter_map(ColumnBuffer::copied_texts).map(bytes).sum()
    }

    /// The value of a column in a row.
    pub fn value(&self, column: usize, row: u32) -> Value {
        self.columns[column].take(&[row]).value(0)
    }

    /// Keeps only the rows at these positions, in this order.
    pub fn retain(&mut self, positions: &[u32]) {
        self.columns.iter_mut().for_each(|c| c.retain(positions));
        self.rows = positions.len();
    }
}
