//! Operators that look at one row at a time: constant rows, filters and projections.

use super::settle::settle;
use crate::buffer::limits::BATCH_BYTES;
use crate::buffer::limits::MOST_TEXT_BYTES;
use crate::context::Context;
use crate::expr;
use crate::operator::protocol::Operator;
use nacre_column::{Batch, VectorBuilder};
use nacre_function::vector::room::Room;
use nacre_sql::expr::Expr;
use nacre_types::{DataType, Result, limits};
use std::sync::Arc;

/// Constant rows.
pub(crate) struct Values {
    types: Vec<DataType>,
    rows: Vec<Vec<Expr>>,
    at: usize,
}

impl Values {
    pub fn new(types: Vec<DataType>, rows: Vec<Vec<Expr>>) -> Values {
        Values { types, rows, at: 0 }
    }

    /// No rows.
    pub fn nothing() -> Box<dyn Operator> {
        Box::new(Values::new(Vec::new(), Vec::new()))
    }
}

impl Operator for Values {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.check_cancelled()?;
        let rows = &self.rows[self.at..(self.at + limits::VECTOR_ROWS).min(self.rows.len())];
        if rows.is_empty() {
            return Ok(None);
        }
        let mut builders: Vec<_> = self.types.iter().map(|t| VectorBuilder::new(*t)).collect();
        let (mut room, mut count) = (Room::new(MOST_TEXT_BYTES), 0);
        for row in rows {
            for (builder, expr) in builders.iter_mut().zip(row) {
                let value = expr::evaluate_constant(expr, context)?;
                room.take_value(&value)?;
                builder.push(&value);
            }
            count += 1;
            if room.taken() >= BATCH_BYTES {
                break;
            }
        }
        self.at += count;
        let columns = builders.into_iter().map(|b| Arc::new(b.finish())).collect();
        Ok(Some(Batch::new(columns, count)))
    }
}

/// Rows for which a predicate is true.
pub(crate) struct Filter {
    input: Box<dyn Operator>,
    predicate: [Expr; 1],
}

impl Filter {
    pub fn new(input: Box<dyn Operator>, predicate: Expr) -> Filter {
        Filter { input, predicate: [predicate] }
    }
}

impl Operator for Filter {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while let Some(mut batch) = self.input.next(context)? {
            context.check_cancelled()?;
            let selection = expr::filter(&self.predicate, &batch, context)?;
            if !selection.is_empty() {
                batch.selection = Some(selection);
                return Ok(Some(settle(batch)));
            }
        }
        Ok(None)
    }
}

/// Computed columns.
pub(crate) struct Project {
    input: Box<dyn Operator>,
    exprs: Vec<Expr>,
}

impl Project {
    pub fn new(input: Box<dyn Operator>, exprs: Vec<Expr>) -> Project {
        Project { input, exprs }
    }
}

impl Operator for Project {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(context)? else { return Ok(None) };
        context.check_cancelled()?;
        let columns = self
            .exprs
            .iter()
            .map(|e| expr::evaluate_shared(e, &batch, context))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Batch { columns, rows: batch.rows, selection: batch.selection }))
    }
}
