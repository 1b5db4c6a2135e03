//! Rows to be written: fills in the values that a statement leaves to the table, and checks rows
//! before they are written, on every path.

use crate::layout::rules::RowRules;
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_types::{DataType, Result, Value, key};
use std::sync::Arc;

impl Table {
    /// The compiled rules; `None` if no column and no check needs any.
    pub fn rules(&self) -> Result<Option<&Arc<dyn RowRules>>> {
        match self.schema().has_rules() {
            true => self.layout().rules().of(self.schema()).map(Some),
            false => Ok(None),
        }
    }

    /// Values at positions of a whole row, some of which may be of computed columns.
    pub fn key_values(&self, positions: &[usize], row: &[Value]) -> Result<Vec<Value>> {
        self.layout().key_values(positions, row)
    }

    /// Whether a row may get another value of a unique index by a change of these columns.
    pub fn may_change_unique(&self, columns: &[usize]) -> Result<bool> {
        let width = self.schema().columns.len();
        for at in self.unique_indexes().flat_map(|index| index.columns()) {
            let is_changed = match at.checked_sub(width) {
                None => columns.contains(at),
                Some(computed) => {
                    let inputs = self.layout().rules().of(self.schema())?.inputs(computed);
                    inputs.iter().any(|input| columns.contains(input))
                }
            };
            if is_changed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The value that the counter of the identity column gives next.
    pub(crate) fn next_identity(&self) -> i64 {
        self.row_source().counter.next()
    }

    /// Fills in whole rows: values of the counter in place of nulls, and the generated columns. Rows
    /// to be written must pass through here once.
    ///
    /// # Errors
    /// Those of generated columns; `limit` if the counter is at its end.
    pub fn complete(&self, mut rows: Batch) -> Result<Batch> {
        debug_assert!(rows.selection.is_none(), "rows to be completed are not compact");
        debug_assert!(
            rows.columns.len() == self.schema().columns.len(),
            "rows of {} columns are to be completed",
            rows.columns.len()
        );
        if let Some(at) = self.row_source().identity
            && rows.columns[at].null_count() > 0
        {
            rows.columns[at] = Arc::new(self.counted(&rows.columns[at])?);
        }
        if self.row_source().generates {
            let rules = self.layout().rules().of(self.schema())?;
            for (at, values) in rules.generated(&rows)? {
                debug_assert!(values.len() == rows.rows, "{} values of a column", values.len());
                rows.columns[at] = values;
            }
        }
        Ok(rows)
    }

    /// Like [`Table::complete`], for rows of values.
    pub fn complete_rows(&self, rows: &mut [Vec<Value>]) -> Result<()> {
        debug_assert!(
            rows.iter().all(|row| row.len() == self.schema().columns.len()),
            "a row to be completed has not all columns"
        );
        if self.row_source().generates && !rows.is_empty() {
            let done = self.complete(Batch::from_rows(&self.schema().types(), rows))?;
            rows.iter_mut().enumerate().for_each(|(at, row)| *row = done.row(at));
            return Ok(());
        }
        let Some(at) = self.row_source().identity else { return Ok(()) };
        rows.iter().for_each(|row| self.saw(&row[at]));
        for row in rows.iter_mut().filter(|row| row[at].is_null()) {
            row[at] = self.identity(self.row_source().counter.take(1)?);
        }
        Ok(())
    }

    /// Like [`Table::complete`], for one row.
    pub fn complete_row(&self, mut row: Vec<Value>) -> Result<Vec<Value>> {
        self.complete_rows(std::slice::from_mut(&mut row))?;
        Ok(row)
    }

    /// Replaces nulls by values of the counter. Values that are given count first, so that those
    /// which are given out follow them.
    fn counted(&self, column: &Vector) -> Result<Vector> {
        let mut values: Vec<Value> = (0..column.len()).map(|row| column.value(row)).collect();
        values.iter().for_each(|value| self.saw(value));
        let first = self.row_source().counter.take(column.null_count())?;
        let missing = values.iter_mut().filter(|value| value.is_null());
        missing.zip(first..).for_each(|(value, next)| *value = self.identity(next));
        let counted = Vector::from_values(column.data_type(), &values);
        debug_assert!(counted.null_count() == 0, "a row has no value of the counter");
        Ok(counted)
    }

    /// A value of the counter as one of the identity column.
    fn identity(&self, value: i64) -> Value {
        let data_type = self
            .row_source()
            .identity
            .map_or(DataType::Int64, |at| self.schema().columns[at].data_type);
        key::from_integer(data_type, value as i128)
    }

    fn saw(&self, value: &Value) {
        match value {
            Value::Int(value) => self.row_source().counter.saw(*value),
            Value::UInt(value) => {
                self.row_source().counter.saw(i64::try_from(*value).unwrap_or(i64::MAX))
            }
            _ => {}
        }
    }

    /// Checks a batch to be written: types, nulls, limits, and the table's checks.
    pub fn check_batch(&self, rows: &Batch) -> Result<()> {
        let schema = self.schema();
        self.layout().check_batch(rows)?;
        self.layout().rules().check(schema, rows)?;
        if let Some(at) = self.row_source().identity {
            (0..rows.rows).for_each(|row| self.saw(&rows.columns[at].value(row)));
        }
        Ok(())
    }

    /// Checks a row to be written: types, nulls, limits, and the table's checks.
    pub fn check_row(&self, row: &[Value]) -> Result<()> {
        let schema = self.schema();
        schema.check_row(row)?;
        self.layout().rules().check_row(schema, row)?;
        if let Some(at) = self.row_source().identity {
            self.saw(&row[at]);
        }
        Ok(())
    }
}
