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

/// What the segments of a run add to the statistics of a column.
#[derive(Clone, Default)]
pub(crate) struct RunSummary {
    rows: u64,
    nulls: u64,
    /// Whether some segment has the column.
    is_known: bool,
    bounds: Option<(Value, Value)>,
    /// Distinct values of each segment together, and of the one with the most.
    distinct_sum: f64,
    distinct_most: f64,
    /// Whether some segment's distinct values are a sample only.
    is_sampled: bool,
}

impl RunSummary {
    /// Summarises the column with this id over these segments. Fails only if bytes are absent:
    /// damage is reported by the statement that reads the rows.
    pub fn of(states: &[Arc<SegmentState>], id: u32) -> Result<RunSummary> {
        let mut all = RunSummary::default();
        for state in states.iter().filter(|s| s.is_current() && s.segment.rows() > 0) {
            let segment = &state.segment;
            all.rows += segment.rows() as u64;
            let Some(at) = segment.column_index(id) else { continue };
            all.is_known = true;
            let Some(columns) = unless_damaged(segment.columns())? else { continue };
            let meta = &columns[at];
            all.nulls += meta.null_count;
            debug_assert!(
                all.nulls <= all.rows,
                "{} nulls in {} rows of column {id}",
                all.nulls,
                all.rows
            );
            if !meta.min.is_null() {
                all.widen((meta.min.clone(), meta.max.clone()));
            }
            let Some(sample) = unless_damaged(state.distinct(at, meta))? else {
                all.is_sampled = true;
                continue;
            };
            all.distinct_sum += sample.distinct;
            all.distinct_most = all.distinct_most.max(sample.distinct);
            all.is_sampled |= !sample.complete;
        }
        Ok(all)
    }

    /// Adds the segments of another run.
    pub fn add(&mut self, other: &RunSummary) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.is_known |= other.is_known;
        other.bounds.iter().for_each(|bounds| self.widen(bounds.clone()));
        self.distinct_sum += other.distinct_sum;
        self.distinct_most = self.distinct_most.max(other.distinct_most);
        self.is_sampled |= other.is_sampled;
        debug_assert!(
            self.distinct_most <= self.distinct_sum,
            "one segment has {} distinct values, all have {}",
            self.distinct_most,
            self.distinct_sum
        );
    }

    fn widen(&mut self, (low, high): (Value, Value)) {
        self.bounds = Some(match self.bounds.take() {
            None => (low, high),
            Some((min, max)) => (least(min, &low, true), least(max, &high, false)),
        });
    }

    /// The statistics of the column; `None` if no segment has it.
    pub fn summary(self) -> Option<ColumnSummary> {
        debug_assert!(self.nulls <= self.rows, "{} nulls in {} rows", self.nulls, self.rows);
        if !self.is_known {
            return None;
        }
        let (min, max) = self.bounds.unwrap_or((Value::Null, Value::Null));
        let mut distinct = if self.is_sampled { self.distinct_sum } else { self.distinct_most };
        if let Some(width) = width(&min, &max) {
            distinct = distinct.min(width);
        }
        debug_assert!(distinct >= 0.0, "{distinct} distinct values");
        let nulls = self.nulls as f64 / self.rows.max(1) as f64;
        Some(ColumnSummary { min, max, nulls, distinct })
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
