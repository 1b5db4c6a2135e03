//! A batch: vectors of one length, with an optional selection of the rows that count.

use crate::Vector;
use std::sync::Arc;

/// Ascending row positions that survived a filter.
pub type Selection = Vec<u32>;

/// Columns of one length. When `selection` is there, only those rows exist for the reader;
/// positions index the vectors.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// One vector a column, each of length `rows`.
    pub columns: Vec<Arc<Vector>>,
    /// Length of the vectors. A batch may have rows and no columns (`count(*)`).
    pub rows: usize,
    /// Rows that count; all when `None`.
    pub selection: Option<Selection>,
}

impl Batch {
    /// A batch in which every row counts.
    pub fn new(columns: Vec<Arc<Vector>>, rows: usize) -> Batch {
        debug_assert!(columns.iter().all(|c| c.len() == rows));
        Batch { columns, rows, selection: None }
    }

    /// Number of rows that count.
    pub fn selected(&self) -> usize {
        self.selection.as_ref().map_or(self.rows, Vec::len)
    }

    /// Bytes that the values of all rows take when they are flat.
    pub fn flat_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.flat_bytes()).fold(0, usize::saturating_add)
    }

    /// Bytes of a row at most.
    pub fn longest_row(&self) -> usize {
        self.columns.iter().map(|column| column.longest()).sum()
    }

    /// Copies the selected rows together, so that `selection` is `None`.
    pub fn compact(self) -> Batch {
        match self.selection {
            None => self,
            Some(selection) => {
                let columns = self.columns.iter().map(|c| Arc::new(c.take(&selection))).collect();
                Batch { columns, rows: selection.len(), selection: None }
            }
        }
    }
}
