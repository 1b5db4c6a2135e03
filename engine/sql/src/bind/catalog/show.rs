//! `SHOW` and `DESCRIBE`: answered from the catalog alone, as constant rows.

use crate::bind::binder::Binder;
use crate::bind::catalog::keys::{Key, key_of_column, keys_of};
use crate::bind::catalog::references::quoted;
use crate::bind::catalog::rows::{default_of, rows, text};
use crate::bind::names::{table_name, unsupported};
use crate::bind::scope::{Scope, with_suggestion};
use crate::expr::{Expr, ExprKind};
use crate::plan::{Plan, Statement};
use nacre_builtin::scalar::system::SCHEMA;
use nacre_function::entry::created::{Created, CreatedFunctions};
use nacre_types::{Column, ColumnRule, DataType, Error, IndexKind, Result, TableSchema, Value};
use sqlparser::ast;

const TEXT: DataType = DataType::TEXT;

fn texts(names: &[&str], list: Vec<Vec<Value>>) -> Plan {
    let columns: Vec<(&str, DataType)> = names.iter().map(|n| (*n, TEXT)).collect();
    rows(&columns, list)
}

impl<'a> Binder<'a> {
    pub(crate) fn show_tables(
        &mut self,
        options: &'a ast::ShowStatementOptions,
        full: bool,
    ) -> Result<Statement> {
        in_main(options)?;
        let tables = self.sorted_tables();
        if full {
            let mut list: Vec<_> =
                tables.iter().map(|t| vec![text(&t.name), text("BASE TABLE")]).collect();
            list.extend(self.sorted_views().iter().map(|name| vec![text(name), text("VIEW")]));
            return self.shown(texts(&["table_name", "table_type"], list), options);
        }
        self.shown(
            texts(&["table_name"], tables.iter().map(|t| vec![text(&t.name)]).collect()),
            options,
        )
    }

    pub(crate) fn show_views(
        &mut self,
        options: &'a ast::ShowStatementOptions,
    ) -> Result<Statement> {
        in_main(options)?;
        let list = self.sorted_views().iter().map(|name| vec![text(name)]).collect();
        self.shown(texts(&["view_name"], list), options)
    }

    pub(crate) fn show_schemas(
        &mut self,
        options: &'a ast::ShowStatementOptions,
    ) -> Result<Statement> {
        if options.show_in.is_some() {
            return Err(unsupported("SHOW SCHEMAS of something"));
        }
        let list = vec![vec![text(SCHEMA)], vec![text("information_schema")]];
        self.shown(texts(&["schema_name"], list), options)
    }

    pub(crate) fn show_columns(
        &mut self,
        options: &'a ast::ShowStatementOptions,
    ) -> Result<Statement> {
        let parent = options.show_in.as_ref();
        let is_table =
            |kind: Option<&_>| matches!(kind, None | Some(ast::ShowStatementInParentType::Table));
        if !is_table(parent.and_then(|parent| parent.parent_type.as_ref())) {
            return Err(unsupported("SHOW COLUMNS of anything but a table"));
        }
        match parent.and_then(|parent| parent.parent_name.as_ref()) {
            Some(name) => {
                let plan = self.columns_of(name)?;
                self.shown(plan, options)
            }
            None => Err(Error::syntax("SHOW COLUMNS requires FROM and a table name")),
        }
    }

    pub(crate) fn describe(&mut self, name: &ast::ObjectName) -> Result<Statement> {
        Ok(Statement::query(self.columns_of(name)?))
    }

    fn columns_of(&mut self, name: &ast::ObjectName) -> Result<Plan> {
        let names = ["Field", "Type", "Null", "Key", "Default"];
        let (written, at) = table_name(name)?;
        let row = |name: &str, t: DataType, nullable: bool, key: &str, default: Value| {
            let null = if nullable { "YES" } else { "NO" };
            vec![text(name), text(&t.to_string()), text(null), text(key), default]
        };
        if self.catalog.table(&written).is_none()
            && let Some(fields) = self.view_fields(&written).map_err(|e| e.at(at))?
        {
            let list = fields
                .iter()
                .map(|f| row(&f.name, f.data_type, f.nullable, "", Value::Null))
                .collect();
            return Ok(texts(&names, list));
        }
        let table = self.table(name)?;
        let row = |(at, c): (usize, &nacre_types::Column)| {
            row(&c.name, c.data_type, c.nullable, key_of_column(&table, at), default_of(c))
        };
        Ok(texts(&names, table.columns.iter().enumerate().map(row).collect()))
    }

    pub(crate) fn show_create_table(&mut self, name: &ast::ObjectName) -> Result<Statement> {
        let table = self.table(name)?;
        let references = table.foreign_keys.iter().map(|key| self.declaration(&table, key));
        let references: Vec<String> = references.collect();
        let row = vec![text(&table.name), Value::Text(create_table(&table, &references))];
        Ok(Statement::query(texts(&["Table", "Create Table"], vec![row])))
    }

    pub(crate) fn show_create_view(&mut self, name: &ast::ObjectName) -> Result<Statement> {
        let (name, at) = table_name(name)?;
        let Some(view) = self.catalog.view(&name) else {
            let error = Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01").at(at);
            return Err(with_suggestion(
                error,
                &name,
                self.sorted_views().iter().map(String::as_str),
            ));
        };
        let row = vec![text(&view.name), text(&view.statement)];
        Ok(Statement::query(texts(&["View", "Create View"], vec![row])))
    }

    /// Binds forms of `SHOW` that the parser passes on as words, such as `SHOW INDEXES FROM t`.
    pub(crate) fn show_words(&mut self, words: &[ast::Ident]) -> Result<Statement> {
        let lower: Vec<String> = words.iter().map(|w| w.value.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        match (lower.as_slice(), words.last()) {
            (["index" | "indexes" | "indices" | "keys", "from" | "in", _], Some(name)) => {
                let name = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(name.clone())]);
                let table = self.table(&name)?;
                let mut list = Vec::new();
                for key in keys_of(&table) {
                    for (at, column) in key.columns.iter().enumerate() {
                        list.push(vec![
                            text(&table.name),
                            text(&key.name),
                            Value::Int(at as i64 + 1),
                            text(&table.key_column(*column).name),
                            Value::Boolean(key.unique),
                            text(key.kind),
                        ]);
                    }
                }
                let columns = [
                    ("table_name", TEXT),
                    ("key_name", TEXT),
                    ("seq_in_index", DataType::Int64),
                    ("column_name", TEXT),
                    ("is_unique", DataType::Boolean),
                    ("index_type", TEXT),
                ];
                Ok(Statement::query(rows(&columns, list)))
            }
            (["cache"], _) => Ok(Statement::query(self.cache())),
            (["lag"], _) => Ok(Statement::query(self.lag())),
            _ => Err(unsupported("SHOW of a variable")),
        }
    }

    pub(crate) fn show_functions(
        &mut self,
        filter: Option<&'a ast::ShowStatementFilter>,
    ) -> Result<Statement> {
        let scalar = nacre_builtin::registry::scalar_names().map(|name| (name, "scalar"));
        let aggregate = nacre_builtin::registry::aggregate_names().map(|name| (name, "aggregate"));
        let window = nacre_builtin::registry::window_names().map(|name| (name, "window"));
        let created = self.catalog.created_functions().into_iter().flat_map(CreatedFunctions::iter);
        let created = created.map(|(name, function)| match function {
            Created::Scalar(_) => (name, "scalar"),
            Created::Aggregate(_) => (name, "aggregate"),
        });
        let listed = scalar.chain(aggregate).chain(window);
        let mut all: Vec<(&str, &str)> = listed.chain(created).collect();
        all.sort_unstable();
        all.dedup();
        let list = all.iter().map(|(name, kind)| vec![text(name), text(kind)]).collect();
        self.left_by(texts(&["function_name", "function_type"], list), filter)
    }

    /// Applies the `LIKE` or `WHERE` of a `SHOW` statement to its rows.
    fn shown(&mut self, plan: Plan, options: &'a ast::ShowStatementOptions) -> Result<Statement> {
        use ast::ShowStatementFilterPosition as Place;
        if options.limit.is_some() || options.starts_with.is_some() {
            return Err(unsupported("SHOW with LIMIT or STARTS WITH"));
        }
        let filter = options
            .filter_position
            .as_ref()
            .map(|(Place::Infix(filter) | Place::Suffix(filter))| filter);
        self.left_by(plan, filter)
    }

    fn left_by(
        &mut self,
        plan: Plan,
        filter: Option<&'a ast::ShowStatementFilter>,
    ) -> Result<Statement> {
        use ast::ShowStatementFilter as Filter;
        let Some(filter) = filter else { return Ok(Statement::query(plan)) };
        let like = |pattern: &String, case_insensitive: bool| Expr {
            kind: ExprKind::Like {
                arg: Box::new(Expr::column(0, TEXT)),
                pattern: Box::new(Expr::literal(text(pattern), TEXT)),
                escape: None,
                negated: false,
                case_insensitive,
            },
            data_type: DataType::Boolean,
        };
        let predicate = match filter {
            Filter::Like(pattern) | Filter::NoKeyword(pattern) => like(pattern, false),
            Filter::ILike(pattern) => like(pattern, true),
            Filter::Where(condition) => {
                let scope = Scope::of("", &plan.fields());
                return Ok(Statement::query(self.filtered(plan, &scope, Some(condition))?));
            }
        };
        Ok(Statement::query(Plan::Filter { input: Box::new(plan), predicate }))
    }
}

/// Returns an error if the statement names a schema other than the only one.
fn in_main(options: &ast::ShowStatementOptions) -> Result<()> {
    let Some(parent) = options.show_in.as_ref().and_then(|i| i.parent_name.as_ref()) else {
        return Ok(());
    };
    match parent.0.as_slice() {
        [ast::ObjectNamePart::Identifier(i)]
            if ["main", "public", "nacre"]
                .iter()
                .any(|known| i.value.eq_ignore_ascii_case(known)) =>
        {
            Ok(())
        }
        _ => Err(Error::not_found("schema does not exist; the only schema is main")
            .with_sqlstate("3F000")),
    }
}

/// Renders the `CREATE TABLE` statement that recreates the table.
pub(super) fn create_table(table: &TableSchema, references: &[String]) -> String {
    let mut out = format!("CREATE TABLE {} (", quoted(&table.name));
    for (at, column) in table.columns.iter().enumerate() {
        out += if at == 0 { "\n  " } else { ",\n  " };
        out += &quoted(&column.name);
        out.push(' ');
        out += &column.data_type.to_string();
        if !column.nullable {
            out += " NOT NULL";
        }
        out += &source_of(column);
    }
    if let Some(key) = &table.primary_key {
        let names: Vec<String> =
            key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        out += &format!(",\n  PRIMARY KEY ({})", names.join(", "));
    }
    if let Some(key) = &table.sort_key {
        let names: Vec<String> =
            key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        out += &format!(",\n  SORT KEY ({})", names.join(", "));
    }
    if let Some(key) = &table.shard_key {
        let names: Vec<String> =
            key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        out += &format!(",\n  SHARD KEY ({})", names.join(", "));
    }
    for key in keys_of(table).iter().filter(|key| key.name != "PRIMARY") {
        out += if key.unique { ",\n  UNIQUE KEY " } else { ",\n  KEY " };
        out += &format!("{} ({})", quoted(&key.name), key_parts(table, key));
        if IndexKind::of_keyword(key.kind) != Some(IndexKind::DEFAULT) {
            out += &format!(" USING {}", key.kind);
        }
    }
    for check in &table.checks {
        let (name, condition) = (quoted(&check.name), &check.expression);
        out += &format!(",\n  CONSTRAINT {name} CHECK ({condition})");
    }
    references.iter().for_each(|key| out += &format!(",\n  {key}"));
    out += "\n)";
    out
}

/// The columns and expressions of an index as `CREATE INDEX` lists them.
pub(super) fn key_parts(table: &TableSchema, key: &Key) -> String {
    let part = |at: &usize| match table.key_column(*at) {
        Column { name, rule: ColumnRule::Computed { .. }, .. } => format!("({name})"),
        column => quoted(&column.name),
    };
    key.columns.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Renders where the values of a column come from.
fn source_of(column: &Column) -> String {
    match &column.rule {
        ColumnRule::Constant if column.default.is_null() => String::new(),
        ColumnRule::Computed { .. } => String::new(),
        ColumnRule::Constant => {
            let value = crate::explain::literal_text(&column.default, column.data_type);
            format!(" DEFAULT {value}")
        }
        ColumnRule::Default(text) => format!(" DEFAULT ({text})"),
        ColumnRule::Generated { expression, stored } => {
            let kind = if *stored { "STORED" } else { "VIRTUAL" };
            format!(" GENERATED ALWAYS AS ({expression}) {kind}")
        }
        ColumnRule::Identity { always: true } => " GENERATED ALWAYS AS IDENTITY".into(),
        ColumnRule::Identity { always: false } => " GENERATED BY DEFAULT AS IDENTITY".into(),
    }
}
