//! `SHOW` and `DESCRIBE`: answers made from the catalog alone, as constant rows.

use super::{Binder, unsupported};
use crate::expr::Expr;
use crate::plan::{Field, Plan, Statement};
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use sqlparser::ast;

fn rows(names: &[&str], rows: Vec<Vec<Value>>) -> Statement {
    let field = |n: &&str| Field { name: n.to_string(), data_type: DataType::TEXT, nullable: true };
    let cells = |row: Vec<Value>| row.into_iter().map(|v| Expr::literal(v, DataType::TEXT)).collect();
    let fields = names.iter().map(field).collect();
    Statement::Query(Plan::Values { fields, rows: rows.into_iter().map(cells).collect() })
}

fn text(v: &str) -> Value {
    Value::Text(v.to_string())
}

impl Binder<'_> {
    pub(crate) fn show_tables(&mut self, options: &ast::ShowStatementOptions) -> Result<Statement> {
        if options.filter_position.is_some() || options.limit.is_some() || options.show_in.is_some() {
            return Err(unsupported("SHOW TABLES with a filter"));
        }
        let mut names = self.catalog.table_names();
        names.sort();
        Ok(rows(&["table_name"], names.iter().map(|n| vec![text(n)]).collect()))
    }

    pub(crate) fn show_columns(&mut self, options: &ast::ShowStatementOptions) -> Result<Statement> {
        if options.filter_position.is_some() || options.limit.is_some() {
            return Err(unsupported("SHOW COLUMNS with a filter"));
        }
        match options.show_in.as_ref().and_then(|i| i.parent_name.as_ref()) {
            Some(name) => self.describe(name),
            None => Err(Error::syntax("SHOW COLUMNS needs FROM and a table")),
        }
    }

    pub(crate) fn describe(&mut self, name: &ast::ObjectName) -> Result<Statement> {
        let table = self.table(name)?;
        let key = |at: usize| table.primary_key.as_ref().is_some_and(|k| k.columns.contains(&at));
        let row = |(at, c): (usize, &nacre_types::Column)| {
            vec![
                text(&c.name),
                text(&c.data_type.to_string()),
                text(if c.nullable { "YES" } else { "NO" }),
                text(if key(at) { "PRI" } else { "" }),
                if c.default.is_null() { Value::Null } else { text(&c.default.to_string()) },
            ]
        };
        let list = table.columns.iter().enumerate().map(row).collect();
        Ok(rows(&["Field", "Type", "Null", "Key", "Default"], list))
    }

    pub(crate) fn show_create_table(&mut self, name: &ast::ObjectName) -> Result<Statement> {
        let table = self.table(name)?;
        Ok(rows(&["Table", "Create Table"], vec![vec![text(&table.name), Value::Text(create_table(&table))]]))
    }
}

/// A statement that makes the table again.
fn create_table(table: &TableSchema) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut out = format!("CREATE TABLE {} (", quoted(&table.name));
    for (at, column) in table.columns.iter().enumerate() {
        out += if at == 0 { "\n  " } else { ",\n  " };
        out += &quoted(&column.name);
        out.push(' ');
        out += &column.data_type.to_string();
        if !column.nullable {
            out += " NOT NULL";
        }
        if !column.default.is_null() {
            out += " DEFAULT ";
            out += &crate::explain::literal_text(&column.default, column.data_type);
        }
    }
    if let Some(key) = &table.primary_key {
        let names: Vec<String> = key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        out += &format!(",\n  PRIMARY KEY ({})", names.join(", "));
    }
    out += "\n)";
    out
}
