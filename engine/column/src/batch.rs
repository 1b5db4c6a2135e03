//! A batch: vectors of equal length, with an optional selection of the rows to process.

use crate::{Form, Values, Vector};
use nacre_types::{DataType, Value};
use std::sync::Arc;

/// Ascending row positions that survived a filter.
pub type Selection = Vec<u32>;

/// Columns of equal length. With a `selection`, a reader sees only the selected rows; the positions
/// index the vectors.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// One vector per column, each of length `rows`.
    pub columns: Vec<Arc<Vector>>,
    /// Length of the vectors. A batch may have rows and no columns (`count(*)`).
    pub rows: usize,
    /// Selected rows; `None` selects all.
    pub selection: Option<Selection>,
}

impl Batch {
    /// Creates a batch without a selection.
    pub fn new(columns: Vec<Arc<Vector>>, rows: usize) -> Batch {
        debug_assert!(columns.iter().all(|c| c.len() == rows), "a column without {rows} rows");
        Batch { columns, rows, selection: None }
    }

    /// Creates a batch from rows of values, given the column types.
    pub fn from_rows<R: AsRef<[Value]>>(types: &[DataType], rows: &[R]) -> Batch {
        let column = |(at, data_type): (usize, &DataType)| {
            Arc::new(Vector::from_values(*data_type, rows.iter().map(|row| &row.as_ref()[at])))
        };
        Batch::new(types.iter().enumerate().map(column).collect(), rows.len())
    }

    /// Returns the values of a row, whether it is selected or not.
    pub fn row(&self, row: usize) -> Vec<Value> {
        debug_assert!(row < self.rows, "row {row} of {}", self.rows);
        self.columns.iter().map(|column| column.value(row)).collect()
    }

    /// Number of selected rows.
    pub fn selected(&self) -> usize {
        debug_assert!(self.is_selection_valid(), "rows selected past {}", self.rows);
        self.selection.as_ref().map_or(self.rows, Vec::len)
    }

    /// Whether the selection, if any, ascends and lies within the batch.
    fn is_selection_valid(&self) -> bool {
        self.selection.as_ref().is_none_or(|rows| {
            rows.last().is_none_or(|last| (*last as usize) < self.rows) && rows.is_sorted()
        })
    }

    /// Whether the length of every column equals the number of rows.
    fn is_rectangular(&self) -> bool {
        self.columns.iter().all(|column| column.len() == self.rows)
    }

    /// Estimated memory in bytes, given the batch kept before this one: a dictionary shared by both
    /// counts once.
    pub fn memory_bytes(&self, before: Option<&Batch>) -> usize {
        fn dictionary(column: &Vector) -> Option<&Arc<Values>> {
            match column.form() {
                Form::Dictionary { values, .. } => Some(values),
                _ => None,
            }
        }
        let column_bytes = |(at, column): (usize, &Arc<Vector>)| {
            let known = before.and_then(|batch| dictionary(batch.columns.get(at)?));
            let new = dictionary(column)
                .filter(|values| !known.is_some_and(|known| Arc::ptr_eq(values, known)));
            column.memory_bytes() + new.map_or(0, |values| values.memory_bytes())
        };
        self.columns.iter().enumerate().map(column_bytes).sum()
    }

    /// Bytes of the values of all rows in flat form.
    pub fn flat_bytes(&self) -> usize {
        debug_assert!(self.is_rectangular(), "a column without {} rows", self.rows);
        self.columns.iter().map(|column| column.flat_bytes()).fold(0, usize::saturating_add)
    }

    /// Upper bound of the size of a row in bytes.
    pub fn longest_row(&self) -> usize {
        self.columns.iter().map(|column| column.longest()).sum()
    }

    /// Copies the selected rows into new vectors and clears `selection`.
    pub fn compact(self) -> Batch {
        debug_assert!(self.is_rectangular(), "a column without {} rows", self.rows);
        match self.selection {
            None => self,
            Some(selection) => {
                debug_assert!(
                    selection.iter().all(|row| (*row as usize) < self.rows),
                    "a selected row past the {} rows of its batch",
                    self.rows
                );
                let columns = self.columns.iter().map(|c| Arc::new(c.take(&selection))).collect();
                Batch { columns, rows: selection.len(), selection: None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::DataType;

    #[test]
    fn a_dictionary_counts_where_it_is_new() {
        let of = |values: &Arc<Values>| {
            Batch::new(
                vec![Arc::new(Vector::dictionary(
                    DataType::Int64,
                    vec![0; 10],
                    values.clone(),
                    None,
                ))],
                10,
            )
        };
        let (a, b) = (Arc::new(Values::I64(vec![7; 100])), Arc::new(Values::I64(vec![8; 100])));
        assert_eq!(of(&a).memory_bytes(None), 840);
        assert_eq!(of(&a).memory_bytes(Some(&of(&a))), 40);
        assert_eq!(of(&b).memory_bytes(Some(&of(&a))), 840);
    }
}
