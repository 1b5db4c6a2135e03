//! Functions in `FROM` that make rows of a JSON document: `json_each` and its kin, `unnest`, and
//! `JSON_TABLE`.

use crate::analysis::columns::shift_columns;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::{cast, explicit_cast};
use crate::bind::expression::types;
use crate::bind::names::unsupported;
use crate::bind::scope::Scope;
use crate::expr::{Expr, ExprKind};
use crate::plan::node::json_rows::{DocumentRows, JsonRows};
use crate::plan::{Field, Plan};
use nacre_builtin::scalar::json::get::{JSON_EXTRACT, JSON_EXTRACT_STRING, JSON_VALUE};
use nacre_builtin::scalar::json::inspect::JSON_EXISTS;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Arguments;
use nacre_function::json::outline::Part;
use nacre_function::json::path::JsonPath;
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast;

/// A function that makes rows of a document.
pub(crate) struct JsonFunction {
    names: &'static [&'static str],
    rows: DocumentRows,
    parts: &'static [Part],
    takes_path: bool,
}

/// The columns of `json_each` and `json_tree`.
const ALL: &[Part] = &[
    Part::Key,
    Part::Value,
    Part::Type,
    Part::Atom,
    Part::Id,
    Part::Parent,
    Part::FullKey,
    Part::Path,
];

static FUNCTIONS: [JsonFunction; 6] = [
    JsonFunction {
        names: &["json_each", "jsonb_each"],
        rows: DocumentRows::Each,
        parts: ALL,
        takes_path: true,
    },
    JsonFunction { names: &["json_tree"], rows: DocumentRows::Tree, parts: ALL, takes_path: true },
    JsonFunction {
        names: &["json_array_elements", "jsonb_array_elements"],
        rows: DocumentRows::Elements,
        parts: &[Part::Value],
        takes_path: false,
    },
    JsonFunction {
        names: &["json_array_elements_text", "jsonb_array_elements_text"],
        rows: DocumentRows::Elements,
        parts: &[Part::Text],
        takes_path: false,
    },
    JsonFunction {
        names: &["json_object_keys", "jsonb_object_keys"],
        rows: DocumentRows::Members,
        parts: &[Part::Key],
        takes_path: false,
    },
    JsonFunction {
        names: &["unnest"],
        rows: DocumentRows::Elements,
        parts: &[Part::Value],
        takes_path: false,
    },
];

/// The function with a name.
pub(crate) fn json_function(name: &str) -> Option<(&'static JsonFunction, &'static str)> {
    FUNCTIONS.iter().find_map(|function| {
        let known = function.names.iter().find(|known| name.eq_ignore_ascii_case(known))?;
        Some((function, *known))
    })
}

impl JsonFunction {
    /// Whether the only column has the function's name, or that of an alias.
    pub(crate) fn is_named_by_alias(&self) -> bool {
        self.rows == DocumentRows::Members || self.names == ["unnest"]
    }
}

impl<'a> Binder<'a> {
    /// Binds a call in `FROM` over bound arguments.
    pub(crate) fn json_rows(
        &mut self,
        function: &JsonFunction,
        name: &'static str,
        mut args: Vec<Expr>,
        with_ordinality: bool,
    ) -> Result<Plan> {
        if args.is_empty() || args.len() > 1 + usize::from(function.takes_path) {
            let takes = if function.takes_path { "1 or 2 arguments" } else { "1 argument" };
            let message = format!("function {name} takes {takes}, not {}", args.len());
            return Err(Error::type_error(message).with_sqlstate("42883"));
        }
        let path = (args.len() == 2).then(|| args.pop()).flatten();
        let path = path.map(|path| self.text(path)).transpose()?;
        check_path(path.as_ref())?;
        let document = self.document(args.pop())?;
        let mut parts = function.parts.to_vec();
        parts.extend(with_ordinality.then_some(Part::Ordinal));
        let mut node = rows(one_row(), document, path, function.rows, parts, name);
        if function.is_named_by_alias() {
            name.clone_into(&mut node.fields[0].name);
        }
        Ok(Plan::Node(Box::new(node)))
    }

    fn document(&mut self, document: Option<Expr>) -> Result<Expr> {
        self.by_rule(document.into_iter().collect(), |binding, operands| {
            let [document] = Arguments { name: "JSON", operands }.exactly()?;
            coerce::json(binding, document)
        })
    }

    /// Binds `JSON_TABLE(document, path COLUMNS (…))`.
    #[inline(never)]
    pub(crate) fn json_table(
        &mut self,
        document: &'a ast::Expr,
        path: &'a ast::ValueWithSpan,
        columns: &'a [ast::JsonTableColumn],
    ) -> Result<Plan> {
        let scope = Scope::default();
        let mut env = Env::new(&scope, "the arguments of a table function");
        let document = self.expr(document, &mut env)?;
        let document = self.document(Some(document))?;
        let mut table = Table::default();
        let plan = self.path_rows(one_row(), document, path)?;
        let plan = self.table_columns(plan, columns, &mut table)?;
        Ok(Plan::Project { input: Box::new(plan), exprs: table.exprs, fields: table.fields })
    }

    /// The values at a path, with their numbers, before the columns of the input.
    fn path_rows(
        &mut self,
        input: Plan,
        document: Expr,
        path: &ast::ValueWithSpan,
    ) -> Result<Plan> {
        let outer = !input.fields().is_empty();
        let path = self.literal(path)?;
        let path = self.text(path)?;
        check_path(Some(&path))?;
        let parts = vec![Part::Value, Part::Ordinal];
        let mut node =
            rows(input, document, Some(path), DocumentRows::Matches, parts, "json_table");
        node.outer = outer;
        Ok(Plan::Node(Box::new(node)))
    }

    /// Adds the columns of one level. Its values are the first column of the plan, their numbers
    /// the second.
    fn table_columns(
        &mut self,
        mut plan: Plan,
        columns: &'a [ast::JsonTableColumn],
        table: &mut Table,
    ) -> Result<Plan> {
        let mut value = 0;
        for column in columns {
            match column {
                ast::JsonTableColumn::Named(column) => {
                    let expr = self.table_column(Expr::column(value, DataType::Json), column)?;
                    table.add(&column.name, expr);
                }
                ast::JsonTableColumn::ForOrdinality(name) => {
                    table.add(name, Expr::column(value + 1, DataType::Int64));
                }
                ast::JsonTableColumn::Nested(_) if value > 0 => {
                    return Err(unsupported("several NESTED PATHs beside each other"));
                }
                ast::JsonTableColumn::Nested(nested) => {
                    let document = Expr::column(value, DataType::Json);
                    plan = self.path_rows(plan, document, &nested.path)?;
                    table.exprs.iter_mut().for_each(|expr| shift_columns(expr, 2));
                    let before = plan.fields().len();
                    plan = self.table_columns(plan, &nested.columns, table)?;
                    value += 2 + plan.fields().len() - before;
                }
            }
        }
        Ok(plan)
    }

    fn table_column(&mut self, value: Expr, column: &'a ast::JsonTableNamedColumn) -> Result<Expr> {
        use ast::JsonTableColumnErrorHandling as Handling;
        let data_type = types::data_type(&column.r#type)?;
        let path = self.literal(&column.path)?;
        let path = self.text(path)?;
        check_path(Some(&path))?;
        let args = || vec![value.clone(), path.clone()];
        let exists = || Expr::call(&JSON_EXISTS, args(), DataType::Boolean);
        if column.exists {
            return cast(exists(), data_type);
        }
        let text = || Expr::call(&JSON_EXTRACT_STRING, args(), DataType::TEXT);
        let mut found = match (data_type, &column.on_error) {
            (DataType::Json, _) => Expr::call(&JSON_EXTRACT, args(), data_type),
            (_, Some(Handling::Error)) => explicit_cast(text(), data_type)?,
            _ => Expr::call(&JSON_VALUE, args(), data_type),
        };
        let is_null = |arg: Expr, negated| Expr {
            kind: ExprKind::IsNull { arg: Box::new(arg), negated },
            data_type: DataType::Boolean,
        };
        let when = |test: Expr, yes: Expr, no: Expr| Expr {
            kind: ExprKind::Case { branches: vec![(test, yes)], otherwise: Some(Box::new(no)) },
            data_type,
        };
        if let Some(Handling::Default(default)) = &column.on_error {
            let default = explicit_cast(self.literal(default)?, data_type)?;
            let fails = ExprKind::And(vec![is_null(found.clone(), false), is_null(text(), true)]);
            found = when(Expr { kind: fails, data_type: DataType::Boolean }, default, found);
        }
        match &column.on_empty {
            None | Some(Handling::Null) => {}
            Some(Handling::Error) => return Err(unsupported("ERROR ON EMPTY")),
            Some(Handling::Default(default)) => {
                let default = explicit_cast(self.literal(default)?, data_type)?;
                found = when(exists(), found, default);
            }
        }
        Ok(found)
    }
}

/// The output columns of a `JSON_TABLE`.
#[derive(Default)]
struct Table {
    exprs: Vec<Expr>,
    fields: Vec<Field>,
}

impl Table {
    fn add(&mut self, name: &ast::Ident, expr: Expr) {
        let name = name.value.clone();
        self.fields.push(Field { name, data_type: expr.data_type, nullable: true });
        self.exprs.push(expr);
    }
}

fn rows(
    input: Plan,
    document: Expr,
    path: Option<Expr>,
    rows: DocumentRows,
    parts: Vec<Part>,
    name: &'static str,
) -> JsonRows {
    let field = |part: &Part| Field {
        name: part.name().into(),
        data_type: part.data_type(),
        nullable: true,
    };
    let fields = parts.iter().map(field).collect();
    JsonRows {
        input,
        document,
        path,
        rows,
        parts,
        paths: Vec::new(),
        fields,
        is_last_reader: false,
        outer: false,
        name,
    }
}

/// Fails if a literal is no path.
fn check_path(path: Option<&Expr>) -> Result<()> {
    match path.map(|path| &path.kind) {
        Some(ExprKind::Literal(Value::Text(path))) => JsonPath::parse(path).map(|_| ()),
        _ => Ok(()),
    }
}

fn one_row() -> Plan {
    Plan::Values { fields: Vec::new(), rows: vec![Vec::new()] }
}
