//! Estimates the number of distinct values of a segment's columns: from a dictionary, from narrow
//! bounds, or from one block. Each column is estimated once, when a planner first asks.

use nacre_column::{Form, Values};
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::hash::{Map, Set};
use nacre_types::{Result, Value, key};
use std::sync::{Mutex, PoisonError};

/// If a block's values occur this often on average, the block has most of the column's distinct
/// values.
const OFTEN: usize = 8;

/// Estimates of one segment's columns.
#[derive(Default)]
pub(crate) struct DistinctValues(Mutex<Map<usize, Estimate>>);

/// An estimate for one column of one segment.
#[derive(Clone, Copy)]
pub(crate) struct Estimate {
    /// Number of distinct values.
    pub distinct: f64,
    /// Most values occurred several times, so other segments have hardly any new ones.
    pub complete: bool,
}

/// How many integers lie between two values, both included; `None` if they are not integers, or if
/// `max` is below `min`, as a damaged footer may say.
pub(crate) fn width(min: &Value, max: &Value) -> Option<f64> {
    let width = key::integer(max)?.checked_sub(key::integer(min)?)? as f64 + 1.0;
    (width >= 1.0).then_some(width)
}

impl DistinctValues {
    /// The estimate for a column. An error of reading is not remembered.
    pub fn of(&self, segment: &Segment, column: usize, meta: &ColumnMeta) -> Result<Estimate> {
        debug_assert!(
            segment.column_ids().get(column) == Some(&meta.id),
            "bounds of column {} are taken for those of column {column}",
            meta.id
        );
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(estimate) = known().get(&column) {
            return Ok(*estimate);
        }
        let estimate = estimate(segment, column, meta)?;
        debug_assert!(
            estimate.distinct >= 0.0 && estimate.distinct.is_finite(),
            "column {column} has {} distinct values",
            estimate.distinct
        );
        known().insert(column, estimate);
        Ok(estimate)
    }
}

fn estimate(segment: &Segment, column: usize, meta: &ColumnMeta) -> Result<Estimate> {
    let rows = segment.rows() as f64;
    if let Some(values) = segment.dictionary_values(column)? {
        return Ok(Estimate { distinct: values as f64, complete: true });
    }
    // Narrow bounds: every value in between probably occurs.
    if let Some(width) = width(&meta.min, &meta.max).filter(|width| *width * 16.0 < rows) {
        return Ok(Estimate { distinct: width, complete: true });
    }
    let block = segment.blocks() / 2;
    let start = (0..block).map(|b| segment.block_rows(b)).sum();
    let len = segment.block_rows(block);
    let vector = segment.decode(column, start, len)?;
    debug_assert!(vector.len() == len, "{} of {len} values of a block", vector.len());
    let distinct = match vector.form() {
        Form::Constant(_) => 1,
        Form::Dictionary { values, .. } => values.len().min(len),
        Form::Flat(Values::I64(values)) => values.iter().collect::<Set<_>>().len(),
        Form::Flat(Values::I128(values)) => values.iter().collect::<Set<_>>().len(),
        Form::Flat(Values::F64(values)) => {
            values.iter().map(|v| v.to_bits()).collect::<Set<_>>().len()
        }
        Form::Flat(Values::Bool(_)) => 2,
        Form::Flat(Values::Bytes(values)) => {
            (0..len).map(|row| values.get(row)).collect::<Set<_>>().len()
        }
    };
    if distinct * OFTEN < len && !is_clustered(segment, column)? {
        return Ok(Estimate { distinct: distinct as f64, complete: true });
    }
    Ok(Estimate { distinct: rows * distinct as f64 / len.max(1) as f64, complete: false })
}

/// Whether blocks hold disjoint values, as in a sorted column.
fn is_clustered(segment: &Segment, column: usize) -> Result<bool> {
    let (first, last) = (segment.zone(column, 0)?, segment.zone(column, segment.blocks() - 1)?);
    let apart = || matches!((key::integer(&first.max), key::integer(&last.min)), (Some(a), Some(b)) if a <= b);
    Ok(segment.blocks() > 1 && apart())
}
