//! What is known of the values of a column without reading them all: bounds and nulls from the footers of segments,
//! the number of distinct values from dictionaries, from how narrow the bounds are, or from one block. Rows in
//! memory and deleted ones are left out of account: only planning asks, which a rough answer does not mislead much.

use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_column::{Form, Values};
use nacre_segment::{ColumnMeta, Segment};
use nacre_types::hash::{Map, Set};
use nacre_types::{Value, key};
use std::sync::{Mutex, PoisonError};

/// See the module.
#[derive(Clone, Debug)]
pub struct ColumnSummary {
    /// A lower bound; null when nothing is known.
    pub min: Value,
    /// An upper bound; null when nothing is known.
    pub max: Value,
    /// Share of nulls.
    pub nulls: f64,
    /// Number of distinct values; 0 when nothing is known.
    pub distinct: f64,
}

/// Numbers of distinct values of a segment's columns, once somebody has asked.
#[derive(Default)]
pub(crate) struct Distinct(Mutex<Map<usize, Sample>>);

/// What a block says of the number of distinct values.
#[derive(Clone, Copy)]
struct Sample {
    distinct: f64,
    /// The block has seen most values several times, so that others have hardly any more.
    complete: bool,
}

/// A block whose values come so often on average has most of them.
const OFTEN: usize = 8;

impl Table {
    /// What is known of a column, by its position; `None` without segments.
    pub fn column_summary(&self, position: usize) -> Option<ColumnSummary> {
        let id = self.schema().columns.get(position)?.id;
        let states = self.segments();
        let (mut rows, mut nulls) = (0u64, 0u64);
        let (mut sum, mut most, mut complete) = (0f64, 0f64, true);
        let mut bounds: Option<(Value, Value)> = None;
        let mut known = false;
        for state in states.iter().filter(|s| s.is_current() && s.segment.rows() > 0) {
            let segment = &state.segment;
            rows += segment.rows() as u64;
            let Some(at) = segment.column_index(id) else { continue };
            known = true;
            let meta = &segment.columns()[at];
            nulls += meta.null_count;
            if !meta.min.is_null() {
                bounds = Some(match bounds {
                    None => (meta.min.clone(), meta.max.clone()),
                    Some((min, max)) => (least(min, &meta.min, true), least(max, &meta.max, false)),
                });
            }
            let sample = state.distinct.of(state, at, meta);
            sum += sample.distinct;
            most = most.max(sample.distinct);
            complete &= sample.complete;
        }
        if !known {
            return None;
        }
        let (min, max) = bounds.unwrap_or((Value::Null, Value::Null));
        let mut distinct = if complete { most } else { sum };
        if let Some(width) = width(&min, &max) {
            distinct = distinct.min(width);
        }
        Some(ColumnSummary { min, max, nulls: nulls as f64 / rows.max(1) as f64, distinct })
    }
}

/// The lesser or the greater of two values of numbers; what is no number keeps the first.
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

/// How many values there are between two integers.
fn width(min: &Value, max: &Value) -> Option<f64> {
    Some(key::integer(max)?.checked_sub(key::integer(min)?)? as f64 + 1.0)
}

impl Distinct {
    fn of(&self, state: &SegmentState, column: usize, meta: &ColumnMeta) -> Sample {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(column).or_insert_with(|| sample(&state.segment, column, meta))
    }
}

fn sample(segment: &Segment, column: usize, meta: &ColumnMeta) -> Sample {
    let rows = segment.rows() as f64;
    if let Some(values) = segment.dictionary_values(column) {
        return Sample { distinct: values as f64, complete: true };
    }
    // So few that the rows have all of them.
    if let Some(width) = width(&meta.min, &meta.max).filter(|width| *width * 16.0 < rows) {
        return Sample { distinct: width, complete: true };
    }
    let nothing = Sample { distinct: 0.0, complete: false };
    let block = segment.blocks() / 2;
    let start = (0..block).map(|b| segment.block_rows(b)).sum();
    let len = segment.block_rows(block);
    // What cannot be read is reported to whoever reads the rows.
    let Ok(vector) = segment.decode(column, start, len) else { return nothing };
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
    if distinct * OFTEN < len && !is_clustered(segment, column) {
        return Sample { distinct: distinct as f64, complete: true };
    }
    Sample { distinct: rows * distinct as f64 / len.max(1) as f64, complete: false }
}

/// Whether the blocks of a column hold different values, as those of a sorted one do.
fn is_clustered(segment: &Segment, column: usize) -> bool {
    let (first, last) = (segment.zone(column, 0), segment.zone(column, segment.blocks() - 1));
    let apart = || matches!((key::integer(&first.max), key::integer(&last.min)), (Some(a), Some(b)) if a <= b);
    segment.blocks() > 1 && apart()
}
