//! The rules of tables, for the storage: defaults, generated columns and checks as bound
//! expressions.

use nacre_column::{Batch, Form, Vector};
use nacre_operator::evaluate_alone;
use nacre_sql::expr::Expr;
use nacre_sql::{Computed, TableRules, table_rules};
use nacre_table::RowRules;
use nacre_types::{Error, Result, TableSchema, Value};
use std::sync::Arc;

/// Compiles the rules of a schema; see [`StoreOptions::rules`](nacre_table::StoreOptions::rules).
pub fn compile_rules(schema: &TableSchema) -> Result<Arc<dyn RowRules>> {
    let bound = table_rules(schema)?;
    Ok(Arc::new(Rules { table: schema.name.clone(), bound }))
}

/// The value that a new column with a default that is an expression has in existing rows.
pub(crate) fn default_now(schema: &TableSchema, column: usize, now_us: i64) -> Result<Value> {
    Ok(compile_rules(schema)?.defaults(column, 1, now_us)?.value(0))
}

struct Rules {
    /// Name of the table, for messages.
    table: String,
    bound: TableRules,
}

impl RowRules for Rules {
    fn generated(&self, rows: &Batch) -> Result<Vec<(usize, Arc<Vector>)>> {
        let mut rows = rows.clone();
        let mut out = Vec::with_capacity(self.bound.generated.len());
        for (at, expr) in &self.bound.generated {
            let values = Arc::new(evaluate_alone(expr, &rows, 0)?);
            rows.columns[*at] = values.clone();
            out.push((*at, values));
        }
        Ok(out)
    }

    fn check(&self, rows: &Batch) -> Result<()> {
        for (name, condition) in &self.bound.checks {
            let holds = evaluate_alone(condition, rows, 0)?;
            if is_false_somewhere(&holds) {
                let table = &self.table;
                let message = format!("a row of table {table} violates CHECK {name}");
                return Err(Error::constraint(message)
                    .with_sqlstate("23514")
                    .with_table(table.clone())
                    .with_key(name.clone()));
            }
        }
        let failing = self.bound.computed.iter().filter(|computed| computed.may_fail);
        failing.map(|computed| self.value(computed, rows)).try_for_each(|value| value.map(drop))
    }

    fn inputs(&self, computed: usize) -> &[usize] {
        &self.bound.computed[computed].inputs
    }

    fn compute(&self, computed: usize, inputs: &Batch) -> Result<Arc<Vector>> {
        let computed = &self.bound.computed[computed];
        debug_assert!(inputs.columns.len() == computed.inputs.len(), "columns of another index");
        match self.evaluated(computed, inputs) {
            Err(_) if computed.may_fail => Ok(self.where_it_can(computed, inputs)),
            values => values,
        }
    }

    fn defaults(&self, column: usize, rows: usize, now_us: i64) -> Result<Vector> {
        let of = |known: &&(usize, Expr)| known.0 == column;
        let Some((_, expr)) = self.bound.defaults.iter().find(of) else {
            let table = &self.table;
            return Err(Error::not_found(format!("a default of column {column} of {table}")));
        };
        evaluate_alone(expr, &Batch::new(Vec::new(), rows), now_us)
    }
}

impl Rules {
    /// The values of a computed column in whole rows.
    fn value(&self, computed: &Computed, rows: &Batch) -> Result<Arc<Vector>> {
        let inputs = computed.inputs.iter().map(|at| rows.columns[*at].clone());
        self.evaluated(computed, &Batch::new(inputs.collect(), rows.rows))
    }

    /// The values of a computed column, null in rows that have none. Such rows were deleted before the
    /// index was created, and are still in a segment or needed by a snapshot.
    fn where_it_can(&self, computed: &Computed, inputs: &Batch) -> Arc<Vector> {
        let value = |row: u32| {
            let one = Batch { selection: Some(vec![row]), ..inputs.clone() }.compact();
            self.evaluated(computed, &one).map_or(Value::Null, |values| values.value(0))
        };
        let values: Vec<Value> = (0..inputs.rows as u32).map(value).collect();
        Arc::new(Vector::from_values(computed.expr.data_type, &values))
    }

    fn evaluated(&self, computed: &Computed, inputs: &Batch) -> Result<Arc<Vector>> {
        let values = evaluate_alone(&computed.expr, inputs, 0);
        values.map(Arc::new).map_err(|error| {
            error.context(format!("table {}, key ({})", self.table, computed.text))
        })
    }
}

/// Whether a condition is false, and not null, for a row.
fn is_false_somewhere(holds: &Vector) -> bool {
    let rows = match holds.form() {
        Form::Constant(_) => holds.len().min(1),
        _ => holds.len(),
    };
    (0..rows).any(|row| holds.value(row) == Value::Boolean(false))
}
