//! Column statistics available without reading all values: bounds and null counts from the
//! descriptions of segments, and distinct counts estimated from some segments, however many there are.
//! Rows in memory and deleted rows are ignored, because only the planner uses the result and tolerates
//! errors.

use crate::layout::bounds::{add_bounds_of, values_of};
use crate::segments::distinct::width;
use crate::segments::state::SegmentState;
use nacre_host::fetched::Misses;
use nacre_host::waits;
use nacre_segment::BoundsOfColumns;
use nacre_types::{Column, Result, Value, key};
use std::sync::Arc;

/// Segments of a run from which distinct values are estimated: each costs its footer, and often a block.
const SAMPLED_SEGMENTS: usize = 8;

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
    /// Distinct values of each segment together, scaled to all segments, and of the one with the most.
    distinct_sum: f64,
    distinct_most: f64,
    /// Whether some segment's distinct values are a sample only.
    is_sampled: bool,
}

impl RunSummary {
    /// Summarises a column over these segments. Fails only if bytes are absent: damage is reported by
    /// the statement that reads the rows.
    pub fn of(states: &[Arc<SegmentState>], column: &Column) -> Result<RunSummary> {
        let mut all = RunSummary::default();
        waits::read_together(|| {
            all = RunSummary::default();
            all.add_segments(states, column)
        })?;
        Ok(all)
    }

    fn add_segments(&mut self, states: &[Arc<SegmentState>], column: &Column) -> Result<()> {
        let mut misses = Misses::default();
        let mut with_column: Vec<(&SegmentState, usize)> = Vec::new();
        for state in states.iter().filter(|s| s.is_current() && s.segment.rows() > 0) {
            self.rows += state.segment.rows() as u64;
            let Some(at) = state.segment.column_index(column.id) else { continue };
            with_column.push((state, at));
            if !misses.is_full() {
                misses.note(self.add_bounds(state, at, column))?;
            }
        }
        misses.end()?;
        self.is_known = !with_column.is_empty();
        self.estimate_distinct(&with_column)
    }

    /// Adds the bounds and nulls of a segment.
    fn add_bounds(&mut self, state: &SegmentState, at: usize, column: &Column) -> Result<()> {
        let segment = &state.segment;
        let known = segment.known().bounds_of(column.id);
        let mut of_footer = BoundsOfColumns::default();
        if known.is_none()
            && let Some(columns) = unless_damaged(segment.columns())?
        {
            add_bounds_of(&columns[at], &mut of_footer);
        }
        let Some(bounds) = known.or_else(|| of_footer.iter().next()) else { return Ok(()) };
        self.nulls += u64::from(bounds.nulls);
        debug_assert!(
            self.nulls <= self.rows,
            "{} nulls in {} rows of column {}",
            self.nulls,
            self.rows,
            column.id
        );
        if let Some(bounds) = unless_damaged(values_of(bounds, column.data_type))?.flatten() {
            self.widen(bounds);
        }
        Ok(())
    }

    /// Estimates distinct values from some of the segments that have the column, spread evenly.
    fn estimate_distinct(&mut self, states: &[(&SegmentState, usize)]) -> Result<()> {
        debug_assert!(self.distinct_sum == 0.0, "distinct values are estimated twice");
        let every = states.len().div_ceil(SAMPLED_SEGMENTS).max(1);
        let (mut sampled, mut rows) = (0, 0);
        Misses::each(states.iter().step_by(every), |(state, at)| {
            sampled += state.segment.rows();
            let columns = unless_damaged(state.segment.columns())?;
            let meta = columns.as_ref().map(|columns| &columns[*at]);
            let sample = meta.map(|meta| unless_damaged(state.distinct(*at, meta)));
            let Some(sample) = sample.transpose()?.flatten() else {
                self.is_sampled = true;
                return Ok(());
            };
            self.distinct_sum += sample.distinct;
            self.distinct_most = self.distinct_most.max(sample.distinct);
            self.is_sampled |= !sample.complete;
            Ok(())
        })?;
        states.iter().for_each(|(state, _)| rows += state.segment.rows());
        if every > 1 {
            self.distinct_sum *= rows as f64 / sampled as f64;
        }
        debug_assert!(
            self.distinct_most <= self.distinct_sum,
            "one segment has {} distinct values, all have {}",
            self.distinct_most,
            self.distinct_sum
        );
        Ok(())
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
