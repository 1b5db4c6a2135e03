//! Values of expressions that occur more than once among those that are evaluated over a batch.

use nacre_column::Vector;
use nacre_function::entry::definition::Volatility;
use nacre_function::vector::rows::ActiveRows;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_types::Result;
use std::cell::RefCell;
use std::sync::Arc;

/// No more expressions are compared with each other.
const MOST: usize = 64;

/// The expressions that occur more than once in others, but for columns and constants.
pub fn repeated<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Vec<Expr> {
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    exprs.for_each(|expr| collect(expr, &mut seen, &mut found));
    found
}

fn collect<'e>(expr: &'e Expr, seen: &mut Vec<&'e Expr>, found: &mut Vec<Expr>) {
    let is_leaf = matches!(
        expr.kind,
        ExprKind::Column(_)
            | ExprKind::Literal(_)
            | ExprKind::Parameter(_)
            | ExprKind::Placeholder(_)
    );
    if is_leaf || seen.len() == MOST || is_volatile(expr) {
        return;
    }
    if seen.contains(&expr) {
        if !found.contains(expr) {
            found.push(expr.clone());
        }
        return;
    }
    seen.push(expr);
    expr.for_each_child(&mut |child| collect(child, seen, found));
}

/// Whether an expression is a call of a volatile function; its arguments are not looked at.
pub(super) fn is_volatile_call(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Function { function, .. }
        if function.volatility() == Volatility::Volatile)
}

/// Whether an expression has a volatile function.
pub fn is_volatile(expr: &Expr) -> bool {
    let mut found = is_volatile_call(expr);
    expr.for_each_child(&mut |child| found = found || is_volatile(child));
    found
}

/// The values over one batch of expressions that are evaluated once.
pub struct Repeated<'a> {
    exprs: &'a [Expr],
    /// The rows of the values. Over fewer rows, an expression is evaluated again.
    rows: ActiveRows<'a>,
    whole: RefCell<Vec<Option<Arc<Vector>>>>,
    /// Of expressions whose values fit in 64 bits although their types do not.
    short: RefCell<Vec<Option<Arc<Vector>>>>,
}

impl<'a> Repeated<'a> {
    /// No values yet.
    pub fn new(exprs: &'a [Expr], rows: ActiveRows<'a>) -> Repeated<'a> {
        let none = || RefCell::new(vec![None; exprs.len()]);
        Repeated { exprs, rows, whole: none(), short: none() }
    }

    /// The value of an expression, which is computed unless it is known.
    pub(super) fn whole(
        &self,
        expr: &Expr,
        rows: ActiveRows<'_>,
        compute: impl FnOnce() -> Result<Arc<Vector>>,
    ) -> Result<Arc<Vector>> {
        self.once(&self.whole, expr, rows, compute)
    }

    /// Like [`Repeated::whole`], of a value in 64 bits.
    pub(super) fn short(
        &self,
        expr: &Expr,
        rows: ActiveRows<'_>,
        compute: impl FnOnce() -> Option<Arc<Vector>>,
    ) -> Option<Arc<Vector>> {
        self.once(&self.short, expr, rows, || compute().ok_or(())).ok()
    }

    fn once<E>(
        &self,
        values: &RefCell<Vec<Option<Arc<Vector>>>>,
        expr: &Expr,
        rows: ActiveRows<'_>,
        compute: impl FnOnce() -> std::result::Result<Arc<Vector>, E>,
    ) -> std::result::Result<Arc<Vector>, E> {
        let Some(at) = self.find(expr, rows) else { return compute() };
        if let Some(known) = &values.borrow()[at] {
            return Ok(known.clone());
        }
        let value = compute()?;
        values.borrow_mut()[at] = Some(value.clone());
        Ok(value)
    }

    fn find(&self, expr: &Expr, rows: ActiveRows<'_>) -> Option<usize> {
        let of = |rows: ActiveRows<'_>| (rows.len, rows.selection.map(|s| (s.as_ptr(), s.len())));
        if of(rows) != of(self.rows) {
            return None;
        }
        self.exprs.iter().position(|known| known == expr)
    }
}
