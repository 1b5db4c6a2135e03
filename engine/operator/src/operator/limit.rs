//! `LIMIT` and `OFFSET`.

use super::settle::settle;
use crate::context::Context;
use crate::expr;
use crate::operator::protocol::Operator;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_types::{Error, Result, Value};

/// Skips rows, then passes rows, then stops reading its input.
pub struct Limit {
    input: Box<dyn Operator>,
    offset: Option<Expr>,
    limit: Option<Expr>,
    /// Rows left to skip and to pass, once the expressions are evaluated.
    left: Option<(u64, u64)>,
}

impl Limit {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>, offset: Option<Expr>, limit: Option<Expr>) -> Limit {
        Limit { input, offset, limit, left: None }
    }
}

/// The value of a count of rows; `absent` where there is no count or it is null.
///
/// # Errors
/// `type` for what is no count, called `what`.
pub fn row_count(
    expr: &Option<Expr>,
    absent: u64,
    what: &str,
    context: &Context<'_>,
) -> Result<u64> {
    let Some(expr) = expr else { return Ok(absent) };
    match expr::evaluate_constant(expr, context)? {
        Value::Null => Ok(absent),
        Value::Int(n) => u64::try_from(n).map_err(|_| {
            Error::type_error(format!("{what} must not be negative")).with_sqlstate("2201W")
        }),
        Value::UInt(n) => Ok(n),
        other => Err(Error::type_error(format!(
            "{what} must be an integer, not {}",
            other.natural_type()
        ))),
    }
}

/// How many rows a limit needs of its input; `None` when it needs all, or when the counts are
/// invalid (the operator reports that).
pub fn rows_needed(
    offset: &Option<Expr>,
    limit: &Option<Expr>,
    context: &Context<'_>,
) -> Option<u64> {
    limit.as_ref()?;
    let pass = row_count(limit, u64::MAX, "LIMIT", context).ok()?;
    row_count(offset, 0, "OFFSET", context).ok()?.checked_add(pass).filter(|rows| *rows < u64::MAX)
}

impl Operator for Limit {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let (mut skip, mut pass) = match self.left {
            Some(left) => left,
            None => (
                row_count(&self.offset, 0, "OFFSET", context)?,
                row_count(&self.limit, u64::MAX, "LIMIT", context)?,
            ),
        };
        self.left = Some((skip, pass));
        while pass > 0 {
            let Some(mut batch) = self.input.next(context)? else { break };
            let selected = batch.selected() as u64;
            let skipped = skip.min(selected);
            let passed = (selected - skipped).min(pass);
            skip -= skipped;
            pass -= passed;
            self.left = Some((skip, pass));
            if passed == 0 {
                continue;
            }
            if passed < selected {
                let range = skipped as usize..(skipped + passed) as usize;
                batch.selection = Some(match &batch.selection {
                    Some(selection) => selection[range].to_vec(),
                    None => (range.start as u32..range.end as u32).collect(),
                });
            }
            return Ok(Some(settle(batch)));
        }
        Ok(None)
    }
}
