//! Keys of rows that lie in columns, encoded row by row ([`nacre_types::key`]) without a value in between.

use nacre_column::{Values, Vector};
use std::borrow::{Borrow, Cow};

/// The columns of a key, in its order.
pub(crate) struct KeyRows<'a> {
    columns: Vec<(&'a Vector, Cow<'a, Values>)>,
}

impl<'a> KeyRows<'a> {
    pub fn new<V: Borrow<Vector>>(columns: &'a [V]) -> KeyRows<'a> {
        KeyRows {
            columns: columns
                .iter()
                .map(|column| (column.borrow(), column.borrow().flat()))
                .collect(),
        }
    }

    /// Appends the key of a row. Answers whether any of its columns is null.
    #[inline]
    pub fn put(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let mut has_null = false;
        for (vector, values) in &self.columns {
            if vector.is_null(row) {
                out.push(0);
                has_null = true;
            } else {
                values.put_key(row, out);
            }
        }
        has_null
    }
}
