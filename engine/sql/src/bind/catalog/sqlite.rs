//! The catalog as SQLite's tools read it: `sqlite_master`, and `PRAGMA` with its table functions.

use crate::bind::binder::Binder;
use crate::bind::catalog::keys::{Key, keys_of};
use crate::bind::catalog::references::{Described, action_name, quoted};
use crate::bind::catalog::rows::{default_of, rows, text};
use crate::bind::catalog::show::{create_table, key_parts};
use crate::bind::names::unsupported;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::parse::position;
use crate::plan::{ControlStatement, Field, Plan, Statement};
use nacre_types::invariant::broken;
use nacre_types::{DataType, Error, Result, TableSchema, Value};
use sqlparser::ast;
use std::sync::Arc;

const TEXT: DataType = DataType::TEXT;
const COUNT: DataType = DataType::Int64;

type Rows = Vec<Vec<Value>>;

/// Settings of SQLite that change nothing here, and the row that says their value. Drivers and dumps begin with
/// them.
const AS_IT_IS: &[(&str, &str)] = &[
    ("automatic_index", "1"),
    ("busy_timeout", "0"),
    ("cache_size", "0"),
    ("encoding", "UTF-8"),
    ("foreign_keys", "1"),
    ("journal_mode", "wal"),
    ("locking_mode", "normal"),
    ("mmap_size", "0"),
    ("optimize", ""),
    ("synchronous", "2"),
    ("temp_store", "0"),
];

fn count(v: usize) -> Value {
    Value::Int(v as i64)
}

fn flag(v: bool) -> Value {
    Value::Int(v.into())
}

impl Binder<'_> {
    /// Binds `PRAGMA name`, `PRAGMA name = value` or `PRAGMA name(value)`.
    pub(crate) fn pragma(
        &mut self,
        name: &ast::ObjectName,
        value: Option<&ast::ValueWithSpan>,
        is_set: bool,
    ) -> Result<Statement> {
        let Some(ast::ObjectNamePart::Identifier(ident)) = name.0.last() else {
            return Err(unsupported("this form of PRAGMA"));
        };
        let (name, at) = (ident.value.to_ascii_lowercase(), position(ident.span.start));
        if let Some((known, is)) = AS_IT_IS.iter().find(|(known, _)| *known == name) {
            return Ok(match value {
                // SQLite answers with the mode that it has then.
                Some(_) if *known != "journal_mode" => ControlStatement::Nothing.into(),
                _ if is.is_empty() => ControlStatement::Nothing.into(),
                _ => Statement::query(rows(&[(known, TEXT)], vec![vec![text(is)]])),
            });
        }
        if is_set {
            return Err(unsupported(&format!("PRAGMA {name}")).at(at));
        }
        let argument = value.map(|value| match &value.value {
            ast::Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        });
        let plan = self.pragma_rows(&name, argument.as_deref()).map_err(|e| e.at(at))?;
        Ok(Statement::query(plan))
    }

    /// The rows of a pragma about the catalog.
    pub(crate) fn pragma_rows(&mut self, name: &str, argument: Option<&str>) -> Result<Plan> {
        let (columns, list): (&[(&str, DataType)], Rows) = match (name, argument) {
            ("table_list", _) => (
                &[
                    ("schema", TEXT),
                    ("name", TEXT),
                    ("type", TEXT),
                    ("ncol", COUNT),
                    ("wr", COUNT),
                    ("strict", COUNT),
                ],
                self.table_list(),
            ),
            ("database_list", _) => (
                &[("seq", COUNT), ("name", TEXT), ("file", TEXT)],
                vec![vec![count(0), text("main"), text("")]],
            ),
            ("table_info", Some(of)) => (
                &[
                    ("cid", COUNT),
                    ("name", TEXT),
                    ("type", TEXT),
                    ("notnull", COUNT),
                    ("dflt_value", TEXT),
                    ("pk", COUNT),
                ],
                self.table_info(of)?,
            ),
            ("index_list", Some(of)) => (
                &[
                    ("seq", COUNT),
                    ("name", TEXT),
                    ("unique", COUNT),
                    ("origin", TEXT),
                    ("partial", COUNT),
                ],
                self.known_table(of).map_or_else(Vec::new, |table| index_list(&table)),
            ),
            ("index_info", Some(of)) => {
                (&[("seqno", COUNT), ("cid", COUNT), ("name", TEXT)], self.index_info(of))
            }
            ("foreign_key_list", Some(of)) => (
                &[
                    ("id", COUNT),
                    ("seq", COUNT),
                    ("table", TEXT),
                    ("from", TEXT),
                    ("to", TEXT),
                    ("on_update", TEXT),
                    ("on_delete", TEXT),
                    ("match", TEXT),
                ],
                self.foreign_key_list(of),
            ),
            ("table_info" | "index_list" | "index_info" | "foreign_key_list", None) => {
                return Err(Error::syntax(format!("PRAGMA {name} needs a name in parentheses")));
            }
            _ => return Err(unsupported(&format!("PRAGMA {name}"))),
        };
        Ok(rows(columns, list))
    }

    /// The rows of a pragma about the table or the index that an expression names, which may depend on a row.
    pub(crate) fn pragma_rows_of(&mut self, pragma: &str, of: Expr) -> Result<Plan> {
        if let ExprKind::Literal(Value::Text(name)) = &of.kind {
            return self.pragma_rows(pragma, Some(name));
        }
        let tables = self.sorted_tables();
        let mut names: Vec<String> = match pragma {
            "index_info" => {
                let indexes = |table: &Arc<TableSchema>| {
                    keys_of(table).iter().map(|key| index_name(table, key)).collect::<Vec<_>>()
                };
                tables.iter().flat_map(indexes).collect()
            }
            _ => tables.iter().map(|table| table.name.clone()).collect(),
        };
        names.extend(self.sorted_views());
        let Plan::Values { mut fields, rows: mut all } = self.pragma_rows(pragma, Some(""))? else {
            broken(format_args!("the rows of a pragma are constant"))
        };
        let columns = fields.clone();
        fields.push(Field { name: "of".into(), data_type: TEXT, nullable: false });
        for name in names {
            let Plan::Values { rows, .. } = self.pragma_rows(pragma, Some(&name))? else {
                continue;
            };
            let named = |mut row: Vec<Expr>| {
                row.push(Expr::literal(text(&name), TEXT));
                row
            };
            all.extend(rows.into_iter().map(named));
        }
        let predicate = self.comparison(BinaryOp::Equal, Expr::column(columns.len(), TEXT), of)?;
        let input = Box::new(Plan::Filter {
            input: Box::new(Plan::Values { fields, rows: all }),
            predicate,
        });
        let exprs =
            columns.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect();
        Ok(Plan::Project { input, exprs, fields: columns })
    }

    fn known_table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.catalog.table(name)
    }

    fn table_list(&mut self) -> Rows {
        let row = |name: &str, kind: &str, columns: usize| {
            vec![text("main"), text(name), text(kind), count(columns), count(0), count(0)]
        };
        let tables = self.sorted_tables();
        let mut list: Rows =
            tables.iter().map(|t| row(&t.name, "table", t.columns.len())).collect();
        for name in self.sorted_views() {
            let columns = self.catalog.view(&name).map_or(0, |view| view.columns.len());
            list.push(row(&name, "view", columns));
        }
        list
    }

    fn table_info(&mut self, of: &str) -> Result<Rows> {
        let Some(table) = self.known_table(of) else {
            let fields = self.view_fields(of)?.unwrap_or_default();
            let row = |(at, f): (usize, &crate::plan::Field)| {
                let kind = text(&f.data_type.to_string());
                vec![count(at), text(&f.name), kind, flag(!f.nullable), Value::Null, count(0)]
            };
            return Ok(fields.iter().enumerate().map(row).collect());
        };
        let key = table.primary_key.as_ref();
        let place = |at| key.and_then(|key| key.columns.iter().position(|column| *column == at));
        let row = |(at, c): (usize, &nacre_types::Column)| {
            vec![
                count(at),
                text(&c.name),
                text(&c.data_type.to_string()),
                flag(!c.nullable),
                default_of(c),
                count(place(at).map_or(0, |place| place + 1)),
            ]
        };
        Ok(table.columns.iter().enumerate().map(row).collect())
    }

    fn index_info(&mut self, of: &str) -> Rows {
        for table in self.sorted_tables() {
            if let Some(key) = keys_of(&table)
                .into_iter()
                .find(|key| index_name(&table, key).eq_ignore_ascii_case(of))
            {
                let row = |(at, column): (usize, &usize)| {
                    let is_column = *column < table.columns.len();
                    let cid = if is_column { count(*column) } else { Value::Int(-2) };
                    let name = table.columns.get(*column).map_or(Value::Null, |c| text(&c.name));
                    vec![count(at), cid, name]
                };
                return key.columns.iter().enumerate().map(row).collect();
            }
        }
        Vec::new()
    }

    fn foreign_key_list(&mut self, of: &str) -> Rows {
        let Some(table) = self.known_table(of) else { return Vec::new() };
        let mut list = Vec::new();
        for (id, key) in table.foreign_keys.iter().enumerate() {
            let Described { parent, columns, referred } = self.described(&table, key);
            for (seq, (from, to)) in columns.iter().zip(&referred).enumerate() {
                list.push(vec![
                    count(id),
                    count(seq),
                    text(&parent),
                    text(from),
                    text(to),
                    text(action_name(key.on_update)),
                    text(action_name(key.on_delete)),
                    text("NONE"),
                ]);
            }
        }
        list
    }

    /// The rows of `sqlite_master`.
    pub(crate) fn sqlite_master(&mut self) -> Plan {
        let row = |kind: &str, name: &str, table: &str, sql: Value| {
            vec![text(kind), text(name), text(table), count(0), sql]
        };
        let mut list = Vec::new();
        for table in self.sorted_tables() {
            let references: Vec<String> =
                table.foreign_keys.iter().map(|key| self.declaration(&table, key)).collect();
            let sql = Value::Text(create_table(&table, &references));
            list.push(row("table", &table.name, &table.name, sql));
            for key in keys_of(&table).iter().filter(|key| key.name != "PRIMARY") {
                let unique = if key.unique { "UNIQUE " } else { "" };
                let (name, of) = (quoted(&key.name), quoted(&table.name));
                let parts = key_parts(&table, key);
                let sql = format!("CREATE {unique}INDEX {name} ON {of} ({parts})");
                list.push(row("index", &key.name, &table.name, Value::Text(sql)));
            }
        }
        for name in self.sorted_views() {
            let sql = self.catalog.view(&name).map_or(Value::Null, |view| text(&view.statement));
            list.push(row("view", &name, &name, sql));
        }
        let columns = [
            ("type", TEXT),
            ("name", TEXT),
            ("tbl_name", TEXT),
            ("rootpage", COUNT),
            ("sql", TEXT),
        ];
        rows(&columns, list)
    }
}

/// The name of an index; that of a primary key as SQLite has it, with the table's name.
fn index_name(table: &TableSchema, key: &Key) -> String {
    match key.name == "PRIMARY" {
        true => format!("sqlite_autoindex_{}_1", table.name),
        false => key.name.clone(),
    }
}

fn index_list(table: &TableSchema) -> Rows {
    let origin = |key: &Key| match key.name == "PRIMARY" {
        true => "pk",
        false => "c",
    };
    let row = |(at, key): (usize, &Key)| {
        vec![
            count(at),
            text(&index_name(table, key)),
            flag(key.unique),
            text(origin(key)),
            count(0),
        ]
    };
    keys_of(table).iter().enumerate().map(row).collect()
}
