//! Rows of generated tables: computed from their number, so that every engine gets the same.

use nacredb::hash::hash_u64;
use nacredb::{Batch, DataType, VectorBuilder};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A value of a generated row.
pub enum Cell {
    /// An integer, a day since 1970 or a microsecond since 1970.
    Int(i64),
    Text(Cow<'static, str>),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Int(value)
    }
}

impl From<&'static str> for Cell {
    fn from(value: &'static str) -> Cell {
        Cell::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(Cow::Owned(value))
    }
}

/// A value below `below`, the same for the same row and salt.
pub fn random(row: i64, salt: u64, below: i64) -> i64 {
    (hash_u64(row as u64 * 64 + salt) % below.max(1) as u64) as i64
}

/// As [`random`], where half of all values are below a hundredth of `below`, half of the others
/// below a tenth.
pub fn skewed(row: i64, salt: u64, below: i64) -> i64 {
    let within = match random(row, salt + 32, 4) {
        0 | 1 => below / 100,
        2 => below / 10,
        _ => below,
    };
    random(row, salt, within)
}

/// Returns the rows of a range as one batch.
pub fn batch(rows: Range<i64>, types: &[DataType], row: impl Fn(i64) -> Vec<Cell>) -> Batch {
    let count = rows.clone().count();
    let mut columns: Vec<VectorBuilder> = types.iter().map(|t| VectorBuilder::new(*t)).collect();
    for number in rows {
        for (column, cell) in columns.iter_mut().zip(row(number)) {
            match cell {
                Cell::Int(value) => column.push_i64(value),
                Cell::Text(text) => column.push_bytes(text.as_bytes()),
            }
        }
    }
    Batch::new(columns.into_iter().map(|c| Arc::new(c.finish())).collect(), count)
}
