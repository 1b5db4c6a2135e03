//! Frame bounds with an offset.

use super::run::{Run, is_beyond};
use crate::expr::{self, ActiveRows, compare_values};
use nacre_column::Vector;
use nacre_sql::Expr;
use nacre_sql::plan::{FrameBound, FrameUnit};
use nacre_types::{Error, Result, Value};
use std::sync::Arc;

/// The bounds of a frame that have an offset.
pub(super) struct Bounds {
    pub start: Option<Offset>,
    pub end: Option<Offset>,
}

/// One bound, evaluated for each row.
pub(super) struct Offset {
    /// The offset; for `RANGE` the key at the bound, null if it is out of the type's range.
    pub values: Arc<Vector>,
    /// For `RANGE`, the sort key cast to the same type.
    pub keys: Option<Vector>,
}

impl Bounds {
    pub fn new(run: &Run<'_>) -> Result<Bounds> {
        let of = |bound: &FrameBound| match bound {
            FrameBound::Preceding(e) | FrameBound::Following(e) => {
                Offset::new(run, e, matches!(bound, FrameBound::Preceding(_))).map(Some)
            }
            _ => Ok(None),
        };
        Ok(Bounds { start: of(&run.call.frame.start)?, end: of(&run.call.frame.end)? })
    }
}

impl Offset {
    fn new(run: &Run<'_>, bound: &Expr, preceding: bool) -> Result<Offset> {
        let wrong = || {
            Error::type_error("a frame bound must not be negative or null").with_sqlstate("22013")
        };
        if run.call.frame.unit != FrameUnit::Range {
            let values = run.eval(bound)?;
            let is_wrong =
                run.batch.rows > 0 && !matches!(values.value(0), Value::Int(v) if v >= 0);
            return if is_wrong { Err(wrong()) } else { Ok(Offset { values, keys: None }) };
        }
        let Some(key) = run.order.first() else {
            return Ok(Offset { values: run.eval(bound)?, keys: None });
        };
        let keys = expr::cast_vector(
            &*run.eval(&key.expr)?,
            bound.data_type,
            ActiveRows::all(run.batch.rows),
        )?;
        let (values, is_whole) = match run.eval(bound) {
            Err(error) if is_beyond(&error) => (run.eval_row_by_row(bound)?, false),
            other => (other?, true),
        };
        let known = |row: &usize| !keys.is_null(*row) && (is_whole || !values.is_null(*row));
        let is_wrong = |row: usize| {
            let order = compare_values(&values.value(row), &keys.value(row));
            values.is_null(row)
                || if preceding != key.descending { order.is_gt() } else { order.is_lt() }
        };
        match (0..run.batch.rows).find(known).is_some_and(is_wrong) {
            true => Err(wrong()),
            false => Ok(Offset { values, keys: Some(keys) }),
        }
    }
}
