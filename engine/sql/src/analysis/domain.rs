//! The domain of a correlated subquery as columns.

use crate::analysis::columns::replace_outer;
use crate::analysis::equal_values::is_float;
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::Domain;
use nacre_types::DataType;

impl Domain {
    /// Replaces references to the enclosing row by the domain's columns, which start at `base`. A
    /// float may be held as its text.
    pub fn settle(&self, expr: &mut Expr, base: usize) {
        let column = |index: usize, data_type: DataType| {
            let at = self.used.iter().position(|u| *u == index)?;
            let column = Expr::column(base + at, self.fields.get(at)?.data_type);
            let is_text = is_float(data_type) && !is_float(column.data_type);
            Some(match is_text {
                true => Expr { kind: ExprKind::Cast(Box::new(column)), data_type },
                false => column,
            })
        };
        replace_outer(expr, self.frame, &column);
    }

    /// The domain's columns, which start at `base`.
    pub fn columns(&self, base: usize) -> Vec<Expr> {
        self.fields.iter().enumerate().map(|(at, f)| Expr::column(base + at, f.data_type)).collect()
    }
}
