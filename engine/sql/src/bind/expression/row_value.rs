//! Row values: `(a, b) < (c, d)`, `(a, b) IN ((1, 2), (3, 4))`.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::operator::{connect, not};
use crate::bind::names::{place, unsupported};
use crate::expr::{BinaryOp, Expr};
use nacre_types::{Error, Result};
use sqlparser::ast::Expr as E;

/// Maximum number of values in a row; the expression of an ordering comparison is nested this deep.
const MAX_VALUES: usize = 32;
/// Maximum number of values in all rows of an `IN` list.
const MAX_LIST_VALUES: usize = 1 << 16;

impl<'a> Binder<'a> {
    /// Binds a comparison of two rows.
    #[inline(never)]
    pub(crate) fn compared_rows(
        &mut self,
        op: BinaryOp,
        left: &'a [E],
        right: &'a [E],
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if !op.is_comparison() {
            return Err(unsupported(&format!("operator {} of rows", op.symbol())));
        }
        let left = self.row_values(left, left.len(), env)?;
        let right = self.row_values(right, left.len(), env)?;
        self.ordered_rows(op, left, right)
    }

    /// Binds `IN` over a list of rows as one comparison per row.
    #[inline(never)]
    pub(crate) fn row_in_list(
        &mut self,
        arg: &'a [E],
        list: &'a [E],
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if list.len().saturating_mul(arg.len()) > MAX_LIST_VALUES {
            let message = format!(
                "IN list of rows has more than {MAX_LIST_VALUES} values; use IN (VALUES …) instead"
            );
            return Err(Error::limit(message));
        }
        let values = self.row_values(arg, arg.len(), env)?;
        let (mut found, mut firsts) = (Vec::with_capacity(list.len()), Vec::new());
        for item in list {
            let at = place(item);
            let Some(item) = row(item) else {
                return Err(Error::type_error("a row can only be compared with rows")
                    .with_sqlstate("42883")
                    .at(at));
            };
            let others = self.row_values(item, values.len(), env).map_err(|e| e.at(at))?;
            if let Some(first) = others.first().filter(|_| list.len() > 1) {
                firsts.push((at, self.again(first)?));
            }
            let values = values.iter().map(|value| self.again(value)).collect::<Result<_>>()?;
            found.push(self.ordered_rows(BinaryOp::Equal, values, others).map_err(|e| e.at(at))?);
        }
        let mut both = Vec::new();
        // Redundant, but scans and indexes can use it to search by the first column alone.
        if let Some(first) = values.into_iter().next().filter(|_| !firsts.is_empty()) {
            both.push(self.value_in_list(first, firsts, false)?);
        }
        both.push(connect(false, found));
        let found = connect(true, both);
        Ok(if negated { not(found) } else { found })
    }

    fn row_values(&mut self, row: &'a [E], wanted: usize, env: &mut Env<'_>) -> Result<Vec<Expr>> {
        if row.len() != wanted {
            let message = format!("rows of {wanted} and {} values cannot be compared", row.len());
            return Err(Error::syntax(message).with_sqlstate("42601"));
        }
        if row.len() > MAX_VALUES {
            return Err(Error::limit(format!("a row has more than {MAX_VALUES} values")));
        }
        row.iter().map(|value| self.expr(value, env)).collect()
    }

    /// Compares two rows lexicographically.
    fn ordered_rows(&mut self, op: BinaryOp, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
        use BinaryOp::{
            Distinct, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotDistinct, NotEqual,
        };
        let mut pairs = left.into_iter().zip(right);
        if matches!(op, Equal | NotEqual | Distinct | NotDistinct) {
            let each = pairs.map(|(l, r)| self.comparison(op, l, r)).collect::<Result<_>>()?;
            return Ok(connect(matches!(op, Equal | NotDistinct), each));
        }
        let (strict, loose) = if matches!(op, Less | LessOrEqual) {
            (Less, LessOrEqual)
        } else {
            (Greater, GreaterOrEqual)
        };
        let Some((l, r)) = pairs.next_back() else { return Err(unsupported("an empty row")) };
        let mut rest = self.comparison(op, l, r)?;
        while let Some((l, r)) = pairs.next_back() {
            // The first conjunct is redundant; scans and indexes use it to search.
            let (again_l, again_r) = (self.again(&l)?, self.again(&r)?);
            let first = self.comparison(loose, again_l, again_r)?;
            let less = self.comparison(strict, l, r)?;
            rest = connect(true, vec![first, connect(false, vec![less, rest])]);
        }
        Ok(rest)
    }
}

/// Returns the values of a row written in parentheses.
pub(crate) fn row(mut ast: &E) -> Option<&[E]> {
    while let E::Nested(inner) = ast {
        ast = inner;
    }
    match ast {
        E::Tuple(values) => Some(values),
        _ => None,
    }
}
