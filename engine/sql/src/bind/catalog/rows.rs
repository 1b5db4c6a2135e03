//! Constant rows for answers from the catalog.

use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{Column, ColumnRule, DataType, Value};

pub(crate) fn text(v: &str) -> Value {
    Value::Text(v.to_string())
}

/// Builds a plan of constant rows; every column is nullable.
pub(crate) fn rows(columns: &[(&str, DataType)], rows: Vec<Vec<Value>>) -> Plan {
    let field = |(name, t): &(&str, DataType)| Field {
        name: name.to_string(),
        data_type: *t,
        nullable: true,
    };
    let cells = |row: Vec<Value>| {
        row.into_iter().zip(columns).map(|(v, (_, t))| Expr::literal(v, *t)).collect()
    };
    Plan::Values {
        fields: columns.iter().map(field).collect(),
        rows: rows.into_iter().map(cells).collect(),
    }
}

/// The default of a column as text; null if it has none.
pub(crate) fn default_of(column: &Column) -> Value {
    match &column.rule {
        ColumnRule::Default(text) if text == "NULL" => Value::Null,
        ColumnRule::Default(expression) => text(expression),
        ColumnRule::Constant if !column.default.is_null() => text(&column.default.to_string()),
        _ => Value::Null,
    }
}
