//! Splits the filters of a scan into tests of one column against constants, which can be evaluated
//! on encoded columns, and the rest, which needs values.
//!
//! A test never fails, so tests run before the rest. Several tests of one column are merged into
//! one set of values.

use super::prune::{comparison, constant};
use crate::context::Context;
use nacre_column::kernel::{Comparison, Predicate};
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, Value};

/// A test of one column of the scan's output.
pub(in crate::scan) struct ColumnTest {
    pub column: usize,
    pub predicate: Predicate,
}

/// The conjuncts of a scan.
#[derive(Default)]
pub(in crate::scan) struct Clauses {
    /// One per column, in the order in which the columns appear in the filters.
    pub tests: Vec<ColumnTest>,
    /// Filters that are not tests of one column.
    pub rest: Vec<Expr>,
}

impl Clauses {
    /// Splits filters over the scan's output.
    pub fn of(filters: &[Expr], context: &Context<'_>) -> Clauses {
        let mut clauses = Clauses::default();
        filters.iter().for_each(|filter| clauses.add(filter, context));
        clauses
    }

    fn add(&mut self, filter: &Expr, context: &Context<'_>) {
        if let ExprKind::And(list) = &filter.kind {
            list.iter().for_each(|filter| self.add(filter, context));
            return;
        }
        let Some(test) = column_test(filter, context) else {
            self.rest.push(filter.clone());
            return;
        };
        match self.tests.iter_mut().find(|known| known.column == test.column) {
            Some(known) => {
                let both = known.predicate.clone().and(&test.predicate);
                known.predicate = both;
            }
            None => self.tests.push(test),
        }
    }
}

fn kernel_comparison(op: BinaryOp) -> Option<Comparison> {
    Some(match op {
        BinaryOp::Equal => Comparison::Equal,
        BinaryOp::NotEqual => Comparison::NotEqual,
        BinaryOp::Less => Comparison::Less,
        BinaryOp::LessOrEqual => Comparison::LessOrEqual,
        BinaryOp::Greater => Comparison::Greater,
        BinaryOp::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// Whether a constant is comparable with a column of this type by its stored number or text alone.
pub(in crate::scan) fn same_family(data_type: DataType, value: &Value) -> bool {
    match (data_type, value) {
        (_, Value::Null) => true,
        (DataType::Decimal { scale, .. }, Value::Decimal { scale: other, .. }) => scale == *other,
        (DataType::Decimal { .. }, _) | (_, Value::Decimal { .. }) | (DataType::Interval, _) => {
            false
        }
        (data_type, value) => {
            let natural = value.natural_type();
            let integers = |t: DataType| t.is_integer();
            data_type == natural
                || (integers(data_type) && integers(natural))
                || (data_type.is_float() && natural.is_float())
                || matches!((data_type, value), (DataType::Text { .. }, Value::Text(_)))
                || matches!((data_type, value), (DataType::Binary { .. }, Value::Binary(_)))
        }
    }
}

fn column_test(filter: &Expr, context: &Context<'_>) -> Option<ColumnTest> {
    match &filter.kind {
        ExprKind::Binary { op, left, right } => {
            let data_type = if matches!(left.kind, ExprKind::Column(_)) {
                left.data_type
            } else {
                right.data_type
            };
            let (column, turned, value) = comparison(filter, context)?;
            if !same_family(data_type, &value) {
                return None;
            }
            let physical = data_type.physical();
            let predicate = match op {
                // Never null; with a constant that is not null, it is true where the values are
                // equal.
                BinaryOp::NotDistinct if !value.is_null() => {
                    Predicate::compare(physical, Comparison::Equal, &value)?
                }
                _ => Predicate::compare(physical, kernel_comparison(turned)?, &value)?,
            };
            Some(ColumnTest { column, predicate })
        }
        ExprKind::InList { arg, list, negated } => {
            let ExprKind::Column(column) = arg.kind else { return None };
            let values = list.iter().map(|e| constant(e, context)).collect::<Option<Vec<_>>>()?;
            if !values.iter().all(|value| same_family(arg.data_type, value)) {
                return None;
            }
            let physical = arg.data_type.physical();
            let among = Predicate::any_of(physical, &values)?;
            let predicate = match negated {
                false => among,
                // Not equal to null is never true.
                true if values.iter().any(Value::is_null) => Predicate::nothing(physical),
                true => among.not(),
            };
            Some(ColumnTest { column, predicate })
        }
        _ => None,
    }
}
