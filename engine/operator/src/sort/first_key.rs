//! The first key of a sort with a limit, as a filter of the scans below it: see [`KeyFilter`].
//!
//! Before the sort reads its input it may look at the parts of a table in which the first rows are
//! likely. So a sort whose first rows come last does not read everything.

use crate::buffer::RowBuffer;
use crate::context::Context;
use crate::expr::ActiveRows;
use crate::join_filter::KeyFilter;
use crate::operator::protocol::Operator;
use nacre_column::{Bitmap, Vector};
use nacre_types::{Result, Value};
use std::sync::Arc;

/// The first key of a sort.
pub struct FirstKey {
    /// The input column that it is.
    pub column: usize,
    /// Whether it is the only key.
    pub is_only: bool,
    /// What rows of the input may still be among the first.
    pub filter: Arc<KeyFilter>,
    /// Rows of the input, sorted, as far as they are looked at before it is read.
    pub ahead: Option<SortedAhead>,
}

/// Some rows of the input, of the first key only, sorted and as many as the limit.
pub struct SortedAhead {
    operator: Box<dyn Operator>,
    rows: usize,
    last: Value,
}

impl SortedAhead {
    /// Sorted rows of one column.
    pub fn new(operator: Box<dyn Operator>) -> SortedAhead {
        SortedAhead { operator, rows: 0, last: Value::Null }
    }
}

impl FirstKey {
    /// Bounds the filter by rows of the input, if there are enough of them.
    pub fn look_ahead(&mut self, limit: usize, context: &Context<'_>) -> Result<()> {
        let Some(ahead) = &mut self.ahead else { return Ok(()) };
        while let Some(batch) = ahead.operator.next(context)? {
            let batch = batch.compact();
            ahead.rows += batch.rows;
            ahead.last = batch.columns[0].value(batch.rows - 1);
        }
        debug_assert!(ahead.rows <= limit, "no more rows than the limit are sorted");
        if ahead.rows >= limit {
            // The rows come again, so those that equal the last of them must pass.
            self.filter.tighten(ahead.last.clone(), false);
        }
        self.ahead = None;
        Ok(())
    }

    /// Bounds the filter by a row: as many rows as the limit are there up to it.
    pub fn tighten(&self, rows: &RowBuffer, last: u32) {
        self.filter.tighten(rows.value(self.column, last), self.is_only);
    }

    /// Those of the rows that may be returned, by the values of the first key; `None` if all.
    pub fn kept(&self, vector: &Vector, rows: ActiveRows<'_>) -> Option<Vec<u32>> {
        if !self.filter.is_filled() {
            return None;
        }
        let all = match rows.selection {
            Some(selection) => Bitmap::of_ones(selection.iter().copied(), rows.len),
            None => Bitmap::filled(rows.len, true),
        };
        let kept = self.filter.kept(vector, &all)?;
        (kept.count_ones() < rows.count()).then(|| kept.ones())
    }
}
