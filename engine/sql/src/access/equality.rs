//! Columns that the filters of a scan fix to a value, and hence whether the filters fix a key. The
//! optimizer, the executor's scan and point statements all use this; they differ only in what they
//! require of the values.

use super::output::ScanOutput;
use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::DataType;

/// `column = value`, where the value is known before any row is read.
#[derive(Clone, Copy, Debug)]
pub struct Equality<'a> {
    /// Position of the column in the table, or of a computed one.
    pub column: usize,
    /// The value: an expression without columns.
    pub value: &'a Expr,
    /// The filter that fixes the column.
    pub filter: &'a Expr,
}

/// A conjunction of filters, split into the columns it fixes and the remaining conjuncts.
#[derive(Clone, Debug, Default)]
pub struct Equalities<'a> {
    /// In the order of the filters. A column may have several. All of them must hold, so that each
    /// alone finds the rows: where the value of one is of no use, the next can stand in.
    pub fixed: Vec<Equality<'a>>,
    /// The other conjuncts.
    pub rest: Vec<&'a Expr>,
}

impl<'a> Equalities<'a> {
    /// Whether all of these columns are fixed.
    pub fn fix(&self, columns: &[usize]) -> bool {
        columns.iter().all(|column| self.values(*column).next().is_some())
    }

    /// Returns the values that a column must equal, in the order of the filters.
    pub fn values(&self, column: usize) -> impl Iterator<Item = &'a Expr> {
        self.fixed.iter().filter(move |fixed| fixed.column == column).map(|fixed| fixed.value)
    }
}

/// Classifies the conjuncts of `filters`, which are over the output of a scan. An interval fixes no
/// column: equal intervals may differ as keys.
pub fn equalities<'a>(output: ScanOutput<'_>, filters: &'a [Expr]) -> Equalities<'a> {
    let mut found = Equalities::default();
    let mut pending: Vec<&'a Expr> = filters.iter().rev().collect();
    while let Some(filter) = pending.pop() {
        if let ExprKind::And(list) = &filter.kind {
            pending.extend(list.iter().rev());
            continue;
        }
        match equality(output, filter) {
            Some(equality)
                if output.table.key_column(equality.column).data_type != DataType::Interval =>
            {
                found.fixed.push(equality)
            }
            _ => found.rest.push(filter),
        }
    }
    found
}

fn equality<'a>(output: ScanOutput<'_>, filter: &'a Expr) -> Option<Equality<'a>> {
    let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &filter.kind else { return None };
    let (column, value) = match (output.place(left), output.place(right)) {
        (Some(column), _) if !reads_rows(right) => (column, &**right),
        (_, Some(column)) if !reads_rows(left) => (column, &**left),
        _ => return None,
    };
    Some(Equality { column, value, filter })
}

/// Whether the value of an expression depends on rows.
fn reads_rows(expr: &Expr) -> bool {
    let mut reads =
        matches!(expr.kind, ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Subquery(_));
    expr.for_each_child(&mut |child| reads |= reads_rows(child));
    reads
}
