//! The rows of a bulk load that does not come from a statement: what they look like, and how they
//! are filled in.

use crate::engine::Engine;
use nacre_column::Batch;
use nacre_table::{BulkLoad, Table};
use nacre_types::{ColumnRule, Error, Result, TableSchema, Value, key};
use std::sync::Arc;

/// The schema of rows to load into a table. Defaults that are expressions are values, those of now;
/// columns that the table fills in take nulls.
pub fn load_schema(table: &Table, engine: &Engine) -> Result<Arc<TableSchema>> {
    let Some(rules) = table.rules()? else { return Ok(table.schema().clone()) };
    let now_us = engine.host().clock.wall_us();
    let mut schema = (**table.schema()).clone();
    for (at, column) in schema.columns.iter_mut().enumerate() {
        match std::mem::take(&mut column.rule) {
            ColumnRule::Constant | ColumnRule::Computed { .. } => {}
            ColumnRule::Default(_) => column.default = rules.defaults(at, 1, now_us)?.value(0),
            ColumnRule::Generated { .. } | ColumnRule::Identity { .. } => column.nullable = true,
        }
    }
    Ok(Arc::new(schema))
}

/// Adds rows to a load. Nulls of generated columns are filled in.
///
/// # Errors
/// `constraint` if a generated column has another value than its expression; those of the load.
pub fn load_rows(load: &mut BulkLoad, rows: &Batch) -> Result<()> {
    let table = load.table().clone();
    let given = rows.clone().compact();
    let width = table.schema().columns.len();
    // A batch of the wrong shape is for the load to refuse.
    if given.columns.len() != width {
        return load.append(&given);
    }
    let whole = table.complete(given.clone())?;
    for (at, column) in table.schema().columns.iter().enumerate().filter(|(_, c)| c.is_generated())
    {
        let differs = |row: &usize| {
            !given.columns[at].is_null(*row)
                && !is_same(&given.columns[at].value(*row), &whole.columns[at].value(*row))
        };
        if let Some(row) = (0..given.rows).find(differs) {
            let (name, value) = (&column.name, whole.columns[at].value(row));
            let message = format!("generated column {name} is given a value other than {value}");
            return Err(Error::constraint(message)
                .with_sqlstate("428C9")
                .with_table(table.schema().name.clone())
                .with_key(name.clone()));
        }
    }
    load.append(&whole)
}

/// Whether two values of a column are the same: a NaN is itself.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => key::order_f64(*a) == key::order_f64(*b),
        _ => a == b,
    }
}
