//! The description of a scan.

use nacre_sql::ScanOutput;
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::plan::Plan;
use nacre_types::{DataType, TableSchema};
use std::sync::Arc;

/// The parts of a `Plan::Scan`.
#[derive(Clone, Copy)]
pub(crate) struct ScanSpec<'a> {
    pub schema: &'a Arc<TableSchema>,
    /// Positions in the table of the first output columns.
    pub projection: &'a [usize],
    /// The other output columns, over the columns of the table.
    pub paths: &'a [Expr],
    /// Conjuncts over the output columns.
    pub filters: &'a [Expr],
    /// Computed columns of indexes, by position in the table, over the output columns.
    pub keys: &'a [(usize, Expr)],
}

impl<'a> ScanSpec<'a> {
    /// The parts of a plan, if it is a scan.
    pub fn of(plan: &'a Plan) -> Option<ScanSpec<'a>> {
        match plan {
            Plan::Scan { table, projection, paths, filters, keys } => {
                Some(ScanSpec { schema: table, projection, paths, filters, keys })
            }
            _ => None,
        }
    }

    /// Its output, as columns of indexes.
    pub fn output(&self) -> ScanOutput<'a> {
        ScanOutput { table: self.schema, projection: self.projection, keys: self.keys }
    }

    /// Types of the output columns.
    pub fn types(&self) -> Vec<DataType> {
        let stored = self.projection.iter().map(|at| self.schema.columns[*at].data_type);
        stored.chain(self.paths.iter().map(|path| path.data_type)).collect()
    }

    /// Number of output columns.
    pub fn width(&self) -> usize {
        self.projection.len() + self.paths.len()
    }

    /// Which output columns these expressions read.
    pub fn columns_of<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<bool> {
        let mut marks = vec![false; self.width()];
        exprs.into_iter().for_each(|expr| mark_columns(expr, &mut marks));
        marks
    }
}

/// Marks the columns that an expression reads.
fn mark_columns(expr: &Expr, marks: &mut [bool]) {
    if let ExprKind::Column(column) = expr.kind
        && let Some(mark) = marks.get_mut(column)
    {
        *mark = true;
    }
    expr.for_each_child(&mut |child| mark_columns(child, marks));
}
