//! Finding a key in a segment that is sorted by something else.
//!
//! Such a segment has one more column: at position *i* the number of the row whose key is the *i*-th in key order. It
//! is encoded like every column, so it takes about as many bits a row as row numbers have, and a position is found
//! without decoding its neighbours. A search is then a binary search over positions, each step two seeks.

use crate::segment::Segment;
use nacre_column::encoding::Scalar;
use nacre_column::{Bitmap, Values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result, Value};
use std::cmp::Ordering;

/// The row numbers of `rows` rows in the order of their keys, given the blocks of each key column.
pub(crate) fn order_of(keys: &[&[(Values, Option<Bitmap>)]], rows: usize) -> Vec<i64> {
    if let [blocks] = keys
        && blocks.iter().all(|(values, validity)| matches!(values, Values::I64(_)) && validity.is_none())
    {
        // The common case: one integer.
        let values = blocks.iter().flat_map(|(values, _)| match values {
            Values::I64(values) => values.as_slice(),
            _ => &[],
        });
        let mut pairs: Vec<(i64, u32)> = values.copied().zip(0..).collect();
        pairs.sort_unstable();
        return pairs.into_iter().map(|(_, row)| row as i64).collect();
    }
    let scalar = |column: usize, row: u32| {
        let (values, validity) = &keys[column][row as usize / BLOCK_ROWS];
        let at = row as usize % BLOCK_ROWS;
        if validity.as_ref().is_none_or(|v| v.get(at)) { Scalar::at(values, at) } else { Scalar::Null }
    };
    let compare = |a: &u32, b: &u32| {
        let orders = (0..keys.len()).map(|column| scalar(column, *a).order(&scalar(column, *b)));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(b))
    };
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_unstable_by(compare);
    order.into_iter().map(i64::from).collect()
}

impl Segment {
    /// The row with exactly this key, if there is one. `order` is the column of row numbers in key order.
    pub fn search_in_order(&self, order: usize, key_columns: &[usize], key: &[Value]) -> Result<Option<usize>> {
        let at = self.lower_bound_in_order(order, key_columns, key)?;
        if at == self.rows() {
            return Ok(None);
        }
        let row = self.row_in_order(order, at)?;
        Ok(self.compare_row(row, key_columns, key)?.is_eq().then_some(row))
    }

    /// The first position in key order whose key is not below this one; the number of rows if there is none.
    pub fn lower_bound_in_order(&self, order: usize, key_columns: &[usize], key: &[Value]) -> Result<usize> {
        let (mut low, mut high) = match self.outside(key_columns, key) {
            Some(Ordering::Greater) => return Ok(self.rows()),
            Some(_) => return Ok(0),
            None => (0, self.rows()),
        };
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
        match self.get(order, at)? {
            Value::Int(row) if (0..self.rows() as i64).contains(&row) => Ok(row as usize),
            other => Err(Error::corrupt(format!("segment {}: {other} at {at} in key order is not a row", self.name()))),
        }
    }

    /// Whether the bounds of the first key column tell that a key is not there.
    pub fn is_outside(&self, key_columns: &[usize], key: &[Value]) -> bool {
        self.outside(key_columns, key).is_some()
    }

    /// On which side of all keys this one is, if the bounds of the first key column tell.
    fn outside(&self, key_columns: &[usize], key: &[Value]) -> Option<Ordering> {
        let (column, key) = (*key_columns.first()?, key.first()?);
        let entry = &self.columns[column];
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
