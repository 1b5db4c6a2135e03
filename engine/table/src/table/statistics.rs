//! Column statistics available without reading all values: bounds and null counts from segment
//! footers, and estimated distinct counts. Rows in memory and deleted rows are ignored, because
//! only the planner uses the result and tolerates errors.

use crate::segments::distinct::width;
use crate::segments::state::SegmentState;
use nacre_types::{Result, Value, key};
use std::sync::Arc;

/// Statistics of one column.
#[derive(Clone, Debug)]
pub struct ColumnSummary {
    /// Lower bound, or null if unknown.
    pub min: Value,
    /// Upper bound, or null if unknown.
    pub max: Value,
    /// Fraction of nulls.
    pub nulls: f64,
    /// Number of distinct values, or 0 if unknown.
    pub distinct: f64,
}

impl ColumnSummary {
    /// Summarises the column with this id over these segments; `None` if none has it. Fails only if
    /// bytes are absent: damage is reported by the statement that reads the rows.
    pub(crate) fn of(states: &[Arc<SegmentState>], id: u32) -> Result<Option<ColumnSummary>> {
        let (mut rows, mut nulls) = (0u64, 0u64);
        let (mut sum, mut most, mut complete) = (0f64, 0f64, true);
        let mut bounds: Option<(Value, Value)> = None;
        let mut known = false;
        for state in states.iter().filter(|s| s.is_current() && s.segment.rows() > 0) {
            let segment = &state.segment;
            rows += segment.rows() as u64;
            let Some(at) = segment.column_index(id) else { continue };
            known = true;
            let Some(columns) = unless_damaged(segment.columns())? else { continue };
            let meta = &columns[at];
            nulls += meta.null_count;
            if !meta.min.is_null() {
                bounds = Some(match bounds {
                    None => (meta.min.clone(), meta.max.clone()),
                    Some((min, max)) => (least(min, &meta.min, true), least(max, &meta.max, false)),
                });
            }
            let Some(sample) = unless_damaged(state.distinct(at, meta))? else {
                complete = false;
                continue;
            };
            sum += sample.distinct;
            most = most.max(sample.distinct);
            complete &= sample.complete;
        }
        if !known {
            return Ok(None);
        }
        debug_assert!(nulls <= rows, "{nulls} nulls in {rows} rows");
        let (min, max) = bounds.unwrap_or((Value::Null, Value::Null));
        let mut distinct = if complete { most } else { sum };
        if let Some(width) = width(&min, &max) {
            distinct = distinct.min(width);
        }
        debug_assert!(distinct >= 0.0, "{distinct} distinct values");
        let nulls = nulls as f64 / rows.max(1) as f64;
        Ok(Some(ColumnSummary { min, max, nulls, distinct }))
    }
}

/// What was read; `None` for a file that cannot be read.
fn unless_damaged<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.missing().is_none() => Ok(None),
        read => read.map(Some),
    }
}

/// The lesser or greater of two numeric values; the first one if they are not numeric.
fn least(a: Value, b: &Value, lesser: bool) -> Value {
    let order = match (key::integer(&a), key::integer(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => match (&a, b) {
            (Value::Float(x), Value::Float(y)) => x.total_cmp(y),
            _ => return a,
        },
    };
    if order.is_le() == lesser { a } else { b.clone() }
}
