//! The domain of a correlated subquery as columns.

use crate::analysis::columns::replace_outer;
use crate::expr::Expr;
use crate::plan::tree::Domain;

impl Domain {
    /// Replaces references to the enclosing row by the domain's columns, which start at `base`.
    pub fn settle(&self, expr: &mut Expr, base: usize) {
        let column = |index: usize| {
            let at = self.used.iter().position(|u| *u == index)?;
            Some(Expr::column(base + at, self.fields.get(at)?.data_type))
        };
        replace_outer(expr, self.frame, &column);
    }

    /// The domain's columns, which start at `base`.
    pub fn columns(&self, base: usize) -> Vec<Expr> {
        self.fields.iter().enumerate().map(|(at, f)| Expr::column(base + at, f.data_type)).collect()
    }
}
