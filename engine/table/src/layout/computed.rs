//! Computed columns: columns of indexes that no row has, computed from rows wherever the storage needs
//! the key of a row. They are a function of the row, so nothing of them is in the log, and rows in
//! memory do not hold them; segments have them in the parts of their indexes.

use crate::layout::rows::to_batch;
use crate::layout::table_layout::TableLayout;
use nacre_column::{Batch, Vector};
use nacre_rowstore::Row;
use nacre_segment::{Segment, SegmentBuilder};
use nacre_types::plant::{self, Bug};
use nacre_types::{Result, Value, invariant};
use std::sync::Arc;

/// Reads columns of the table, by position.
pub(crate) type ReadColumns<'a> = &'a dyn Fn(&[usize]) -> Result<Batch>;

impl TableLayout {
    /// Columns at positions, some of which may be computed, of rows whose columns `read` returns.
    ///
    /// # Errors
    /// Those of `read`, and of the expressions of computed columns.
    pub fn key_columns_of(&self, positions: &[usize], read: ReadColumns<'_>) -> Result<Batch> {
        let width = self.schema().columns.len();
        debug_assert!(
            positions.iter().all(|at| *at < width + self.schema().computed.len()),
            "columns {positions:?} of {width}, and {} computed ones",
            self.schema().computed.len()
        );
        if positions.iter().all(|at| *at < width) {
            return read(positions);
        }
        let rules = self.rules().of(self.schema())?;
        let mut wanted: Vec<usize> = Vec::new();
        for at in positions {
            match at.checked_sub(width) {
                None => wanted.push(*at),
                Some(computed) => wanted.extend(rules.inputs(computed)),
            }
        }
        let batch = read(&wanted)?;
        debug_assert!(batch.selection.is_none(), "keys of rows that are not compact");
        invariant!(
            batch.columns.len() == wanted.len(),
            "{} of {} columns of keys are read",
            batch.columns.len(),
            wanted.len()
        );
        let (mut columns, mut next) = (Vec::with_capacity(positions.len()), 0);
        for at in positions {
            let Some(computed) = at.checked_sub(width) else {
                columns.push(batch.columns[next].clone());
                next += 1;
                continue;
            };
            let end = next + rules.inputs(computed).len();
            let inputs = Batch::new(batch.columns[next..end].to_vec(), batch.rows);
            columns.push(rules.compute(computed, &inputs)?);
            next = end;
        }
        debug_assert!(
            columns.iter().all(|column: &Arc<Vector>| column.len() == batch.rows),
            "a computed column has not a value for each of {} rows",
            batch.rows
        );
        Ok(Batch::new(columns, batch.rows))
    }

    /// Values at positions of a row of values.
    pub fn key_values(&self, positions: &[usize], row: &[Value]) -> Result<Vec<Value>> {
        debug_assert!(row.len() == self.schema().columns.len(), "a row of {} values", row.len());
        let read = |wanted: &[usize]| {
            let column = |at: &usize| {
                let data_type = self.schema().columns[*at].data_type;
                Arc::new(Vector::constant(data_type, &row[*at], 1))
            };
            Ok(Batch::new(wanted.iter().map(column).collect(), 1))
        };
        match positions.iter().all(|at| *at < row.len()) {
            true => Ok(positions.iter().map(|at| row[*at].clone()).collect()),
            false => Ok(self.key_columns_of(positions, &read)?.row(0)),
        }
    }

    /// Values at positions of a row in memory, of this version.
    pub fn key_values_of(&self, positions: &[usize], row: &Row) -> Result<Vec<Value>> {
        debug_assert!(!positions.is_empty(), "a key of no columns is computed");
        let rows = std::slice::from_ref(row);
        let read = |wanted: &[usize]| to_batch(self.rows(), rows, wanted);
        Ok(self.key_columns_of(positions, &read)?.row(0))
    }

    /// Values at positions of a segment's row.
    pub fn segment_key(
        &self,
        segment: &Segment,
        row: u32,
        positions: &[usize],
    ) -> Result<Vec<Value>> {
        debug_assert!((row as usize) < segment.rows(), "row {row} of {}", segment.rows());
        if positions.iter().all(|at| *at < self.schema().columns.len()) {
            return self.segment_row(segment, row, positions);
        }
        let read = |wanted: &[usize]| {
            let types: Vec<_> =
                wanted.iter().map(|at| self.schema().columns[*at].data_type).collect();
            Ok(Batch::from_rows(&types, &[self.segment_row(segment, row, wanted)?]))
        };
        Ok(self.key_columns_of(positions, &read)?.row(0))
    }

    /// Pushes rows, with the columns that a segment stores, to a builder of
    /// [`TableLayout::segment_builder`].
    pub fn push(&self, builder: &mut SegmentBuilder, mut batch: Batch) -> Result<()> {
        let (width, computed) = (self.schema().columns.len(), self.schema().computed.len());
        if computed > 0 {
            batch = batch.compact();
            let all: Vec<usize> = (width..width + computed).collect();
            let read = |wanted: &[usize]| {
                let columns = wanted.iter().map(|at| batch.columns[*at].clone());
                Ok(Batch::new(columns.collect(), batch.rows))
            };
            let mut keys = self.key_columns_of(&all, &read)?;
            if plant::is(Bug::ComputedKeys) {
                keys.selection = Some((1..batch.rows as u32).chain([0]).collect());
                keys = keys.compact();
            }
            batch.columns.extend(keys.columns);
        }
        debug_assert!(
            batch.columns.len() == self.segment_columns().len() + computed,
            "a batch of {} columns for a segment",
            batch.columns.len()
        );
        builder.push(&batch);
        Ok(())
    }
}
