//! `information_schema`: the catalog as tables, built from the catalog whenever a query names one.

use crate::bind::binder::Binder;
use crate::bind::catalog::keys::{key_of_column, keys_of};
use crate::bind::catalog::references::action_name;
use crate::bind::catalog::rows::{default_of, rows, text};
use crate::bind::scope::with_suggestion;
use crate::plan::Plan;
use nacre_builtin::scalar::system::{DATABASE, SCHEMA};
use nacre_function::decimal_type::decimal_shape;
use nacre_types::{ColumnRule, DataType, Error, Result, Value};
use std::iter;

const TEXT: DataType = DataType::TEXT;
const COUNT: DataType = DataType::Int64;

type Columns = &'static [(&'static str, DataType)];
/// Tables and the columns that follow `table_catalog`, `table_schema` and `table_name`, which all
/// tables except `schemata`, `memory`, `cache` and `lag` have.
const TABLES: &[(&str, Columns)] = &[
    ("tables", &[("table_type", TEXT)]),
    (
        "columns",
        &[
            ("column_name", TEXT),
            ("ordinal_position", COUNT),
            ("column_default", TEXT),
            ("is_nullable", TEXT),
            ("data_type", TEXT),
            ("character_maximum_length", COUNT),
            ("numeric_precision", COUNT),
            ("numeric_scale", COUNT),
            ("column_key", TEXT),
            ("is_identity", TEXT),
            ("identity_generation", TEXT),
            ("is_generated", TEXT),
            ("generation_expression", TEXT),
        ],
    ),
    ("views", &[("view_definition", TEXT)]),
    ("table_constraints", &[("constraint_name", TEXT), ("constraint_type", TEXT)]),
    ("check_constraints", &[("constraint_name", TEXT), ("check_clause", TEXT)]),
    (
        "key_column_usage",
        &[
            ("constraint_name", TEXT),
            ("column_name", TEXT),
            ("ordinal_position", COUNT),
            ("referenced_table_name", TEXT),
            ("referenced_column_name", TEXT),
        ],
    ),
    (
        "referential_constraints",
        &[
            ("constraint_name", TEXT),
            ("referenced_table_name", TEXT),
            ("match_option", TEXT),
            ("update_rule", TEXT),
            ("delete_rule", TEXT),
        ],
    ),
    (
        "statistics",
        &[
            ("index_name", TEXT),
            ("seq_in_index", COUNT),
            ("column_name", TEXT),
            ("non_unique", COUNT),
            ("nullable", TEXT),
            ("index_type", TEXT),
            ("expression", TEXT),
        ],
    ),
    ("schemata", &[]),
    ("memory", &[]),
    ("cache", &[]),
    ("lag", &[]),
];

fn count(v: usize) -> Value {
    Value::Int(v as i64)
}

impl Binder<'_> {
    /// Builds the rows of one table of `information_schema`.
    pub(crate) fn information_schema(&mut self, name: &str) -> Result<Plan> {
        let Some((known, columns)) =
            TABLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
        else {
            let message = format!("no table `{name}` in `information_schema`");
            let error = Error::not_found(message).with_sqlstate("42P01");
            return Err(with_suggestion(error, name, TABLES.iter().map(|(known, _)| *known)));
        };
        if *known == "schemata" {
            let schema = |name: &str| vec![text(DATABASE), text(name)];
            return Ok(rows(
                &[("catalog_name", TEXT), ("schema_name", TEXT)],
                vec![schema(SCHEMA), schema("information_schema")],
            ));
        }
        if *known == "memory" {
            return Ok(self.memory());
        }
        if *known == "cache" {
            return Ok(self.cache());
        }
        if *known == "lag" {
            return Ok(self.lag());
        }
        let mut all = vec![("table_catalog", TEXT), ("table_schema", TEXT), ("table_name", TEXT)];
        all.extend_from_slice(columns);
        let mut out = Vec::new();
        for table in self.sorted_tables() {
            let mut push = |cells: Vec<Value>| {
                let mut row = vec![text(DATABASE), text(SCHEMA), text(&table.name)];
                row.extend(cells);
                out.push(row);
            };
            let keys = keys_of(&table);
            match *known {
                "tables" => push(vec![text("BASE TABLE")]),
                "columns" => {
                    for (at, c) in table.columns.iter().enumerate() {
                        let key = key_of_column(&table, at);
                        let mut cells =
                            column(at, &c.name, c.data_type, c.nullable, default_of(c), key);
                        cells.extend(generation(&c.rule));
                        push(cells);
                    }
                }
                "table_constraints" => {
                    for key in keys.iter().filter(|key| key.unique) {
                        let kind = if key.name == "PRIMARY" { "PRIMARY KEY" } else { "UNIQUE" };
                        push(vec![text(&key.name), text(kind)]);
                    }
                    table.checks.iter().for_each(|c| push(vec![text(&c.name), text("CHECK")]));
                    let keys = table.foreign_keys.iter();
                    keys.for_each(|key| push(vec![text(&key.name), text("FOREIGN KEY")]));
                }
                "check_constraints" => {
                    for check in &table.checks {
                        push(vec![text(&check.name), text(&check.expression)]);
                    }
                }
                "key_column_usage" => {
                    for key in keys.iter().filter(|key| key.unique) {
                        for (at, column) in key.columns.iter().enumerate() {
                            let Some(column) = table.columns.get(*column) else { continue };
                            let place = vec![text(&key.name), text(&column.name), count(at + 1)];
                            push([place, vec![Value::Null, Value::Null]].concat());
                        }
                    }
                    for key in &table.foreign_keys {
                        let described = self.described(&table, key);
                        let pairs = described.columns.iter().zip(&described.referred);
                        for (at, (column, referred)) in pairs.enumerate() {
                            let place = vec![text(&key.name), text(column), count(at + 1)];
                            push([place, vec![text(&described.parent), text(referred)]].concat());
                        }
                    }
                }
                "referential_constraints" => {
                    for key in &table.foreign_keys {
                        push(vec![
                            text(&key.name),
                            text(&self.described(&table, key).parent),
                            text("NONE"),
                            text(action_name(key.on_update)),
                            text(action_name(key.on_delete)),
                        ]);
                    }
                }
                "statistics" => {
                    for key in &keys {
                        for (at, column) in key.columns.iter().enumerate() {
                            let (column, nothing) = (table.key_column(*column), Value::Null);
                            let (name, expression) = match column.rule {
                                ColumnRule::Computed { .. } => (nothing, text(&column.name)),
                                _ => (text(&column.name), nothing),
                            };
                            push(vec![
                                text(&key.name),
                                count(at + 1),
                                name,
                                count(usize::from(!key.unique)),
                                text(if column.nullable { "YES" } else { "" }),
                                text(key.kind),
                                expression,
                            ]);
                        }
                    }
                }
                _ => {}
            }
        }
        for name in self.sorted_views() {
            let Some(view) = self.catalog.view(&name) else { continue };
            let mut push = |cells: Vec<Value>| {
                let mut row = vec![text(DATABASE), text(SCHEMA), text(&view.name)];
                row.extend(cells);
                out.push(row);
            };
            match *known {
                "tables" => push(vec![text("VIEW")]),
                "views" => push(vec![text(&view.statement)]),
                // A view over a dropped table or column has no columns.
                "columns" => {
                    let fields = self.view_fields(&name).ok().flatten().unwrap_or_default();
                    for (at, f) in fields.iter().enumerate() {
                        let mut cells =
                            column(at, &f.name, f.data_type, f.nullable, Value::Null, "");
                        cells.extend(generation(&ColumnRule::Constant));
                        push(cells);
                    }
                }
                _ => {}
            }
        }
        Ok(rows(&all, out))
    }

    /// The parts of the database in memory.
    fn memory(&self) -> Plan {
        let bytes = |bytes: u64| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
        let parts = self.catalog.memory().into_iter().map(|part| {
            let counts = [Some(part.bytes), part.limit_bytes, part.hits, part.misses];
            let counts = counts.map(|count| count.map_or(Value::Null, bytes));
            iter::once(text(part.part)).chain(counts).collect()
        });
        let counts = ["bytes", "limit_bytes", "hits", "misses"].map(|name| (name, COUNT));
        rows(&[&[("part", TEXT)][..], &counts].concat(), parts.collect())
    }

    /// What of each column and index is on the local disk, and in memory.
    pub(crate) fn cache(&self) -> Plan {
        let bytes = |bytes: u64| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
        let name = |name: Option<String>| name.map_or(Value::Null, Value::Text);
        let parts = self.catalog.cache().into_iter().map(|part| {
            debug_assert!(part.local_bytes <= part.bytes, "more is local than there is: {part:?}");
            let counts = [part.bytes, part.local_bytes, part.memory_bytes].map(bytes);
            let names = [Value::Text(part.table), name(part.column), name(part.index)];
            names.into_iter().chain(counts).collect()
        });
        let columns = [
            ("table_name", TEXT),
            ("column_name", TEXT),
            ("index_name", TEXT),
            ("bytes", COUNT),
            ("local_bytes", COUNT),
            ("memory_bytes", COUNT),
        ];
        rows(&columns, parts.collect())
    }

    /// How far what is shown, and the newest upload, are in the log.
    pub(crate) fn lag(&self) -> Plan {
        let columns = [
            ("log_position", COUNT),
            ("uploaded_position", COUNT),
            ("uploaded_at", DataType::Timestamp),
            ("known_ms", COUNT),
            ("lease", TEXT),
            ("failure", TEXT),
        ];
        rows(&columns, vec![self.catalog.lag().to_vec()])
    }

    pub(crate) fn sorted_tables(&self) -> Vec<std::sync::Arc<nacre_types::TableSchema>> {
        let mut names = self.catalog.table_names();
        names.sort();
        names.iter().filter_map(|name| self.catalog.table(name)).collect()
    }

    pub(crate) fn sorted_views(&self) -> Vec<String> {
        let mut names = self.catalog.view_names();
        names.sort();
        names
    }
}

fn column(
    at: usize,
    name: &str,
    t: DataType,
    nullable: bool,
    default: Value,
    key: &str,
) -> Vec<Value> {
    let length = match t {
        DataType::Text { max_chars: Some(n) } | DataType::Binary { max_bytes: Some(n) } => {
            count(n as usize)
        }
        _ => Value::Null,
    };
    let shape = decimal_shape(t);
    vec![
        text(name),
        count(at + 1),
        default,
        text(if nullable { "YES" } else { "NO" }),
        text(&t.to_string()),
        length,
        shape.map_or(Value::Null, |(precision, _)| count(precision as usize)),
        shape.map_or(Value::Null, |(_, scale)| count(scale as usize)),
        text(key),
    ]
}

/// Whether a column counts rows, and how; whether it is generated, and from what.
fn generation(rule: &ColumnRule) -> [Value; 4] {
    let (no, never) = (text("NO"), text("NEVER"));
    match rule {
        ColumnRule::Identity { always } => {
            let how = text(if *always { "ALWAYS" } else { "BY DEFAULT" });
            [text("YES"), how, never, Value::Null]
        }
        ColumnRule::Generated { expression, .. } => {
            [no, Value::Null, text("ALWAYS"), text(expression)]
        }
        ColumnRule::Constant | ColumnRule::Default(_) | ColumnRule::Computed { .. } => {
            [no, Value::Null, never, Value::Null]
        }
    }
}
