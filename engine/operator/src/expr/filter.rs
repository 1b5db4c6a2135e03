//! Evaluates filters. Conjuncts run left to right, each over the rows that the ones before it kept,
//! so a later one never fails on a row that an earlier one rejected.

use super::Evaluator;
use crate::Context;
use nacre_column::{Batch, Bitmap, Selection, Vector};
use nacre_function::kernel::truth::Truth;
use nacre_function::vector::rows::ActiveRows;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_types::Result;

/// Selected rows of the batch for which all expressions are true.
pub fn filter(exprs: &[Expr], batch: &Batch, context: &Context<'_>) -> Result<Selection> {
    filter_rows(
        exprs,
        batch,
        ActiveRows { len: batch.rows, selection: batch.selection.as_deref() },
        context,
    )
}

/// Those of `rows` for which all expressions are true.
pub fn filter_rows(
    exprs: &[Expr],
    batch: &Batch,
    rows: ActiveRows<'_>,
    context: &Context<'_>,
) -> Result<Selection> {
    Evaluator::new(batch, context).conjunction(exprs, rows)
}

/// A bit for each row of the batch's vectors: set for those of `rows` for which an expression is
/// true. Bits of other rows are unspecified.
pub fn true_rows(
    expr: &Expr,
    batch: &Batch,
    rows: ActiveRows<'_>,
    context: &Context<'_>,
) -> Result<Bitmap> {
    let evaluator = Evaluator::new(batch, context);
    if matches!(expr.kind, ExprKind::And(_) | ExprKind::Or(_)) {
        let mut bits = Bitmap::filled(rows.len, false);
        let passed = evaluator.clause(expr, rows)?;
        passed.iter().for_each(|row| bits.set(*row as usize, true));
        return Ok(bits);
    }
    let vector = evaluator.eval(expr, rows)?;
    let truth = Truth::new(&vector);
    if let nacre_column::Form::Constant(_) = vector.form() {
        return Ok(Bitmap::filled(rows.len, truth.get(0) == Some(true)));
    }
    let mut bits = Bitmap::default();
    bits.reserve(rows.len);
    for from in (0..rows.len).step_by(64) {
        let count = (rows.len - from).min(64);
        let bit = |at: usize| u64::from(truth.is_true(from + at)) << at;
        bits.extend_bits((0..count).map(bit).fold(0, |bits, bit| bits | bit), count);
    }
    Ok(bits)
}

/// Selected rows of the batch for which an expression is true, and those for which it is null.
pub fn truths(expr: &Expr, batch: &Batch, context: &Context<'_>) -> Result<(Selection, Selection)> {
    let rows = ActiveRows { len: batch.rows, selection: batch.selection.as_deref() };
    let vector = Evaluator::new(batch, context).eval(expr, rows)?;
    let truth = Truth::new(&vector);
    let constant = matches!(vector.form(), nacre_column::Form::Constant(_));
    let (mut yes, mut unknown) = (Vec::new(), Vec::new());
    for row in rows.iter() {
        match truth.get(if constant { 0 } else { row }) {
            Some(true) => yes.push(row as u32),
            Some(false) => {}
            None => unknown.push(row as u32),
        }
    }
    Ok((yes, unknown))
}

impl Evaluator<'_> {
    // The only place that decides the order of clauses.
    fn conjunction(&self, exprs: &[Expr], rows: ActiveRows<'_>) -> Result<Selection> {
        let mut current: Option<Selection> = None;
        for expr in exprs {
            let narrowed =
                ActiveRows { len: rows.len, selection: current.as_deref().or(rows.selection) };
            if narrowed.is_empty() {
                return Ok(Vec::new());
            }
            current = Some(self.clause(expr, narrowed)?);
        }
        Ok(current.unwrap_or_else(|| rows.to_selection()))
    }

    fn clause(&self, expr: &Expr, rows: ActiveRows<'_>) -> Result<Selection> {
        match &expr.kind {
            ExprKind::And(list) => self.conjunction(list, rows),
            ExprKind::Or(list) => self.disjunction(list, rows),
            _ => Ok(select_true(&*self.eval(expr, rows)?, rows)),
        }
    }

    fn disjunction(&self, list: &[Expr], rows: ActiveRows<'_>) -> Result<Selection> {
        let mut accepted = Vec::new();
        let mut remaining = rows.to_selection();
        for expr in list {
            if remaining.is_empty() {
                break;
            }
            let more = self.clause(expr, rows.narrowed(&remaining))?;
            if more.is_empty() {
                continue;
            }
            let mut taken = more.iter().peekable();
            remaining.retain(|row| taken.next_if_eq(&row).is_none());
            accepted.extend_from_slice(&more);
        }
        accepted.sort_unstable();
        Ok(accepted)
    }
}

/// The rows where a boolean vector is true.
fn select_true(vector: &Vector, rows: ActiveRows<'_>) -> Selection {
    let truth = Truth::new(vector);
    if let nacre_column::Form::Constant(_) = vector.form() {
        let all = truth.get(0) == Some(true);
        return if all { rows.to_selection() } else { Vec::new() };
    }
    // Branch-free: every row is written, and counted only if it passes.
    let mut out = vec![0u32; rows.count()];
    let mut n = 0;
    match rows.selection {
        None => {
            for i in 0..rows.len {
                out[n] = i as u32;
                n += truth.is_true(i) as usize;
            }
        }
        Some(selection) => {
            for &i in selection {
                out[n] = i;
                n += truth.is_true(i as usize) as usize;
            }
        }
    }
    out.truncate(n);
    out
}
