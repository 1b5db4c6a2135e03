//! Values of point statements: those that depend on parameters only, and those computed from a row.

use crate::execution::Execution;
use nacre_column::{Batch, Vector};
use nacre_operator::{cast_value_of, evaluate};
use nacre_sql::expr::{Expr, ExprKind};
use nacre_table::Transaction;
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use std::sync::Arc;

/// A value that depends on parameters only.
pub(super) enum Slot {
    Parameter(usize),
    Literal(Value),
    Cast(Box<Cast>),
}

/// A slot of one type that is cast to another.
pub(super) struct Cast {
    slot: Slot,
    from: DataType,
    to: DataType,
}

/// The new value of a column.
pub(super) enum Assigned {
    Slot(Slot),
    /// An expression over columns of the row.
    Computed(Computed),
}

/// An expression over the listed columns of a row, in order.
pub(super) struct Computed {
    pub expr: Expr,
    pub columns: Vec<usize>,
}

impl Slot {
    /// The slot of an expression; `None` if it reads a row.
    pub fn of(expr: &Expr) -> Option<Slot> {
        match &expr.kind {
            ExprKind::Parameter(at) => Some(Slot::Parameter(*at)),
            ExprKind::Literal(value) => Some(Slot::Literal(value.clone())),
            ExprKind::Cast(inner) => {
                let (slot, from, to) = (Slot::of(inner)?, inner.data_type, expr.data_type);
                let is_constant = matches!(slot, Slot::Literal(_));
                let cast = Cast { slot, from, to };
                Some(match cast.value(&[]) {
                    Ok(value) if is_constant => Slot::Literal(value),
                    // A failing cast must fail when the statement runs.
                    _ => Slot::Cast(Box::new(cast)),
                })
            }
            _ => None,
        }
    }

    pub fn value(&self, parameters: &[Value]) -> Result<Value> {
        match self {
            Slot::Parameter(at) => match parameters.get(*at) {
                Some(value) => Ok(value.clone()),
                // The number of parameters has been checked.
                None => Err(Error::type_error(format!("parameter {} was not given", at + 1))),
            },
            Slot::Literal(value) => Ok(value.clone()),
            Slot::Cast(cast) => cast.value(parameters),
        }
    }
}

impl Cast {
    fn value(&self, parameters: &[Value]) -> Result<Value> {
        cast_value_of(self.from, &self.slot.value(parameters)?, self.to)
    }
}

/// The values of several slots.
pub(super) fn values(slots: &[Slot], parameters: &[Value]) -> Result<Vec<Value>> {
    slots.iter().map(|slot| slot.value(parameters)).collect()
}

impl Assigned {
    pub fn of(expr: &Expr, projection: &[usize]) -> Option<Assigned> {
        match Slot::of(expr) {
            Some(slot) => Some(Assigned::Slot(slot)),
            None => Computed::of(expr, projection).map(Assigned::Computed),
        }
    }

    /// The new value, given the old row.
    pub fn value(
        &self,
        schema: &TableSchema,
        row: &[Value],
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Value> {
        match self {
            Assigned::Slot(slot) => slot.value(execution.parameters()),
            Assigned::Computed(computed) => {
                let vector = |at: &usize| {
                    Arc::new(Vector::from_values(schema.columns[*at].data_type, [&row[*at]]))
                };
                let batch = Batch::new(computed.columns.iter().map(vector).collect(), 1);
                Ok(computed.evaluate(&batch, transaction, execution)?.value(0))
            }
        }
    }
}

impl Computed {
    /// An expression over the output of a scan with this projection; `None` if it needs more than
    /// one row.
    pub fn of(expr: &Expr, projection: &[usize]) -> Option<Computed> {
        let mut computed = Computed { expr: expr.clone(), columns: Vec::new() };
        gather_columns(&mut computed.expr, projection, &mut computed.columns)?;
        Some(computed)
    }

    /// Evaluates it over a batch of its columns.
    pub fn evaluate(
        &self,
        batch: &Batch,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Vector> {
        evaluate(&self.expr, batch, &execution.context(transaction))
    }
}

/// Collects the table columns that an expression over a scan reads, and rewrites it to read them by
/// their index in the list. `None` if it needs more than one row.
fn gather_columns(expr: &mut Expr, projection: &[usize], columns: &mut Vec<usize>) -> Option<()> {
    match &mut expr.kind {
        ExprKind::Column(at) => {
            let position = *projection.get(*at)?;
            *at = columns.iter().position(|known| *known == position).unwrap_or_else(|| {
                columns.push(position);
                columns.len() - 1
            });
        }
        ExprKind::Subquery(_) | ExprKind::Outer { .. } => return None,
        _ => {}
    }
    let mut complete = Some(());
    expr.for_each_child_mut(&mut |child| {
        complete = complete.and(gather_columns(child, projection, columns))
    });
    complete
}
