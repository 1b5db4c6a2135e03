//! Constant rows.

use super::protocol::Operator;
use crate::buffer::limits::{BATCH_BYTES, MOST_TEXT_BYTES};
use crate::context::Context;
use crate::expr;
use nacre_column::{Batch, VectorBuilder};
use nacre_function::vector::room::Room;
use nacre_sql::expr::Expr;
use nacre_types::{DataType, Result, limits};
use std::sync::Arc;

/// Rows of expressions without columns, evaluated as they are returned.
pub struct ValuesScan {
    types: Vec<DataType>,
    rows: Vec<Vec<Expr>>,
    at: usize,
}

impl ValuesScan {
    /// Rows of columns of these types.
    pub fn new(types: Vec<DataType>, rows: Vec<Vec<Expr>>) -> ValuesScan {
        debug_assert!(
            rows.iter().all(|row| row.len() == types.len()),
            "each row has a value for each of {} columns",
            types.len()
        );
        ValuesScan { types, rows, at: 0 }
    }
}

impl Operator for ValuesScan {
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
