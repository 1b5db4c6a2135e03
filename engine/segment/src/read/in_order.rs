//! Search for a key in a segment sorted by other columns.
//!
//! Such a segment has a column of row numbers: position *i* holds the number of the row whose key
//! is the *i*-th in key order. It is encoded like every column, so it takes about as many bits per
//! row as row numbers have, and a position is read without decoding its neighbours. A search is a
//! binary search over positions, with two seeks per step.

use super::opened::Opened;
use nacre_column::Scalar;
use nacre_types::{Error, Result, Value};
use std::cmp::Ordering;

impl Opened {
    /// Finds the row with exactly this key. `order` is the column of row numbers in key order.
    pub fn search_in_order(
        &self,
        order: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<Option<usize>> {
        debug_assert_eq!(key.len(), key_columns.len(), "values of a whole key");
        let at = self.lower_bound_in_order(order, key_columns, key)?;
        if at == self.rows() {
            return Ok(None);
        }
        let row = self.row_in_order(order, at)?;
        Ok(self.compare_row(row, key_columns, key)?.is_eq().then_some(row))
    }

    /// Finds the first position in key order whose key is not below this one; the number of rows if
    /// there is none.
    pub fn lower_bound_in_order(
        &self,
        order: usize,
        key_columns: &[usize],
        key: &[Value],
    ) -> Result<usize> {
        let (mut low, mut high) = match self.outside(key_columns, key) {
            Some(Ordering::Greater) => return Ok(self.rows()),
            Some(_) => return Ok(0),
            None => (0, self.rows()),
        };
        debug_assert!(!key_columns.is_empty(), "a search by no columns");
        while low < high {
            let middle = low.midpoint(high);
            let row = self.row_in_order(order, middle)?;
            match self.compare_row(row, key_columns, key)? {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The row at a position in key order.
    pub fn row_in_order(&self, order: usize, at: usize) -> Result<usize> {
        debug_assert!(at < self.rows(), "key {at} of {}", self.rows());
        match self.get(order, at)? {
            Value::Int(row) if (0..self.rows() as i64).contains(&row) => Ok(row as usize),
            other => Err(Error::corrupt(format!(
                "segment {}: {other} at {at} in key order is not a row",
                self.name()
            ))),
        }
    }

    /// Whether the bounds of the first key column exclude a key.
    pub fn is_outside(&self, key_columns: &[usize], key: &[Value]) -> bool {
        self.outside(key_columns, key).is_some()
    }

    /// The order of this key relative to all keys, if the bounds of the first key column show that
    /// it is outside.
    fn outside(&self, key_columns: &[usize], key: &[Value]) -> Option<Ordering> {
        let (column, key) = (*key_columns.first()?, key.first()?);
        let entry = &self.columns[column];
        debug_assert_eq!(entry.bounds.max.len(), self.blocks() + 1, "bounds of a column");
        if entry.meta.null_count > 0 || key.is_null() || self.rows() == 0 {
            return None;
        }
        let whole = self.blocks();
        if Scalar::at(&entry.bounds.max, whole).compare(key)?.is_lt() {
            return Some(Ordering::Greater);
        }
        Scalar::at(&entry.bounds.min, whole).compare(key)?.is_gt().then_some(Ordering::Less)
    }
}
