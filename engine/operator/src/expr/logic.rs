//! Three-valued logic and the lazy nodes: each argument is evaluated only over the rows that need
//! it.

use super::Evaluator;
use crate::buffer::ColumnBuffer;
use nacre_column::{Bitmap, Values, Vector};
use nacre_function::kernel::truth::Truth;
use nacre_function::vector::rows::ActiveRows;
use nacre_sql::expr::Expr;
use nacre_types::{DataType, Result};
use std::sync::Arc;

impl Evaluator<'_> {
    /// `AND` (`decisive` is false) or `OR` (`decisive` is true). Evaluation of a row stops at its
    /// first decisive argument.
    pub(super) fn junction(
        &self,
        list: &[Expr],
        rows: ActiveRows<'_>,
        decisive: bool,
    ) -> Result<Arc<Vector>> {
        let mut out = vec![decisive; rows.len];
        let mut validity: Option<Bitmap> = None;
        let mut remaining = rows.to_selection();
        let mut unknown = vec![false; rows.len];
        for expr in list {
            if remaining.is_empty() {
                break;
            }
            let arg = self.eval(expr, rows.narrowed(&remaining))?;
            let truth = Truth::new(&arg);
            remaining.retain(|&i| match truth.get(i as usize) {
                Some(value) => value != decisive,
                None => {
                    unknown[i as usize] = true;
                    true
                }
            });
        }
        for i in remaining {
            let i = i as usize;
            out[i] = !decisive;
            if unknown[i] {
                validity.get_or_insert_with(|| Bitmap::filled(rows.len, true)).set(i, false);
            }
        }
        Ok(Arc::new(Vector::new(DataType::Boolean, Values::Bool(out), validity)))
    }

    /// `CASE`.
    pub(super) fn case(
        &self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        data_type: DataType,
        rows: ActiveRows<'_>,
    ) -> Result<Arc<Vector>> {
        let mut pieces = Pieces::new(data_type, rows.len, self.surroundings.most_text_bytes);
        let mut remaining = rows.to_selection();
        for (condition, result) in branches {
            if remaining.is_empty() {
                break;
            }
            let condition = self.eval(condition, rows.narrowed(&remaining))?;
            let truth = Truth::new(&condition);
            let (taken, rest): (Vec<u32>, Vec<u32>) =
                remaining.iter().partition(|&&i| truth.get(i as usize) == Some(true));
            if taken.len() == rows.count() {
                return self.eval(result, rows);
            }
            if !taken.is_empty() {
                pieces.add(&*self.eval(result, rows.narrowed(&taken))?, &taken)?;
            }
            remaining = rest;
        }
        if let Some(otherwise) = otherwise
            && !remaining.is_empty()
        {
            if remaining.len() == rows.count() {
                return self.eval(otherwise, rows);
            }
            pieces.add(&*self.eval(otherwise, rows.narrowed(&remaining))?, &remaining)?;
        }
        Ok(Arc::new(pieces.finish()))
    }

    /// `COALESCE`: evaluates an argument only where all before it are null.
    pub(super) fn coalesce(
        &self,
        args: &[Expr],
        data_type: DataType,
        rows: ActiveRows<'_>,
    ) -> Result<Arc<Vector>> {
        let mut pieces = Pieces::new(data_type, rows.len, self.surroundings.most_text_bytes);
        let mut remaining = rows.to_selection();
        for expr in args {
            if remaining.is_empty() {
                break;
            }
            let arg = self.eval(expr, rows.narrowed(&remaining))?;
            if arg.validity().is_none() && remaining.len() == rows.count() {
                return Ok(arg);
            }
            let (rest, taken): (Vec<u32>, Vec<u32>) =
                remaining.iter().partition(|&&i| arg.is_null(i as usize));
            pieces.add(&arg, &taken)?;
            remaining = rest;
        }
        Ok(Arc::new(pieces.finish()))
    }
}

/// Assembles a vector from results computed over disjoint rows; null elsewhere.
struct Pieces {
    store: ColumnBuffer,
    source: Vec<u32>,
}

impl Pieces {
    fn new(data_type: DataType, len: usize, most_bytes: usize) -> Pieces {
        Pieces {
            store: ColumnBuffer::within(data_type, most_bytes),
            source: vec![crate::buffer::limits::NO_ROW; len],
        }
    }

    fn add(&mut self, result: &Vector, taken: &[u32]) -> Result<()> {
        let start = self.store.len() as u32;
        self.store.append(result, ActiveRows { len: result.len(), selection: Some(taken) })?;
        for (at, row) in (start..).zip(taken) {
            self.source[*row as usize] = at;
        }
        Ok(())
    }

    fn finish(self) -> Vector {
        self.store.take_or_null(&self.source)
    }
}
