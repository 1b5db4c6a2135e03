//! Which columns of indexes the output columns of a scan are.

use crate::expr::{Expr, ExprKind};
use crate::plan::Plan;
use nacre_types::TableSchema;

/// The output of a scan.
#[derive(Clone, Copy)]
pub struct ScanOutput<'a> {
    /// The table.
    pub table: &'a TableSchema,
    /// Positions in the table of its first columns.
    pub projection: &'a [usize],
    /// Computed columns of indexes, by position in the table, as expressions over it.
    pub keys: &'a [(usize, Expr)],
}

impl<'a> ScanOutput<'a> {
    /// That of a plan, if it is a scan.
    pub fn of(plan: &'a Plan) -> Option<ScanOutput<'a>> {
        match plan {
            Plan::Scan { table, projection, keys, .. } => {
                Some(ScanOutput { table, projection, keys })
            }
            _ => None,
        }
    }

    /// The position of the index column that an expression over the output is.
    pub fn place(&self, expr: &Expr) -> Option<usize> {
        if let ExprKind::Column(at) = expr.kind
            && let Some(position) = self.projection.get(at)
        {
            return Some(*position);
        }
        let found = self.keys.iter().find(|(_, key)| key == expr).map(|(at, _)| *at);
        debug_assert!(
            found.is_none_or(|at| at >= self.table.columns.len()),
            "a column of table {} is computed",
            self.table.name
        );
        found
    }

    /// The position of the index column that an output column is.
    pub fn column(&self, at: usize) -> Option<usize> {
        let is = |key: &Expr| matches!(key.kind, ExprKind::Column(known) if known == at);
        let computed = || self.keys.iter().find(|(_, key)| is(key)).map(|(at, _)| *at);
        self.projection.get(at).copied().or_else(computed)
    }
}
