//! Expressions that a schema holds as text: defaults, generated columns, checks. They are bound when
//! they are declared, so that errors are reported there, and again from the text when they are used.
//!
//! They read at most the row they belong to: no subqueries, aggregates or parameters. What they
//! store is the expression as the parser renders it; a text that would bind to something else is
//! refused at its declaration.

use crate::analysis::columns::{columns, remap};
use crate::analysis::json_path::normal;
use crate::analysis::subqueries::has_subquery;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::scope::Scope;
use crate::bind::statement::assignment::table_fields;
use crate::expr::{Expr, ExprKind};
use crate::parse::Parsed;
use crate::parse::tokens::tokens;
use crate::plan::Catalog;
use nacre_function::entry::definition::Volatility;
use nacre_types::{Column, ColumnRule, Error, Result, TableSchema, Value};
use sqlparser::ast;
use sqlparser::tokenizer::Token;
use std::sync::Arc;

/// The bound rules of a table.
#[derive(Debug)]
pub struct TableRules {
    /// Positions of generated columns with their expressions over the row, in the order in which
    /// they are computed.
    pub generated: Vec<(usize, Expr)>,
    /// Names of checks with their conditions over the row.
    pub checks: Vec<(String, Expr)>,
    /// Positions of columns whose default is an expression, with that.
    pub defaults: Vec<(usize, Expr)>,
    /// The computed columns, in their order.
    pub computed: Vec<Computed>,
}

/// A computed column.
#[derive(Debug)]
pub struct Computed {
    /// The expression as it is stored.
    pub text: String,
    /// The columns of the table that it reads, ascending.
    pub inputs: Vec<usize>,
    /// The expression over these columns.
    pub expr: Expr,
    /// Whether it raises an error for some rows.
    pub may_fail: bool,
}

/// Binds the rules of a table.
///
/// # Errors
/// `corrupt` if the text of a rule is not an expression; those of an expression that no longer has a
/// meaning.
pub fn table_rules(schema: &TableSchema) -> Result<TableRules> {
    let (mut generated, mut defaults) = (Vec::new(), Vec::new());
    for (at, column) in schema.columns.iter().enumerate() {
        match &column.rule {
            ColumnRule::Generated { .. } => generated.push((at, rule_of(schema, at)?)),
            ColumnRule::Default(_) => defaults.push((at, rule_of(schema, at)?)),
            ColumnRule::Constant | ColumnRule::Identity { .. } | ColumnRule::Computed { .. } => {}
        }
    }
    let check = |check: &nacre_types::CheckConstraint| {
        Ok((check.name.clone(), of_text(&check.expression, schema, Kind::Check)?))
    };
    let checks = schema.checks.iter().map(check).collect::<Result<_>>()?;
    let computed = schema.computed.iter().map(|column| computed(schema, column));
    Ok(TableRules { generated, checks, defaults, computed: computed.collect::<Result<_>>()? })
}

/// Binds a computed column.
fn computed(schema: &TableSchema, column: &Column) -> Result<Computed> {
    let (mut expr, mut inputs) = (key_of(schema, column)?, Vec::new());
    columns(&expr, &mut |at| inputs.push(at));
    inputs.sort_unstable();
    inputs.dedup();
    remap(&mut expr, &|at| inputs.iter().position(|input| *input == at).unwrap_or(at));
    Ok(Computed { text: column.name.clone(), inputs, expr, may_fail: column.may_fail() })
}

/// The expression of a column of an index over the columns of its table.
pub(crate) fn key_expr(schema: &TableSchema, column: &Column) -> Result<Expr> {
    of_text(&column.name, schema, Kind::Key)
}

/// The expression of a computed column over the columns of its table.
pub(crate) fn key_of(schema: &TableSchema, column: &Column) -> Result<Expr> {
    let bound = normal(&key_expr(schema, column)?);
    match bound.data_type == column.data_type {
        true => Ok(bound),
        false => {
            let (table, text) = (&schema.name, &column.name);
            Err(Error::corrupt(format!("table {table}: `{text}` has another type than its index")))
        }
    }
}

/// The value of a column in a row that does not name it, as an expression without columns. Null
/// where the table fills it in.
pub(crate) fn rule_of(schema: &TableSchema, at: usize) -> Result<Expr> {
    let column = &schema.columns[at];
    match &column.rule {
        ColumnRule::Constant => Ok(Expr::literal(column.default.clone(), column.data_type)),
        ColumnRule::Identity { .. } => Ok(Expr::literal(Value::Null, column.data_type)),
        ColumnRule::Computed { .. } => key_of(schema, column),
        ColumnRule::Default(text) => of_text(text, schema, Kind::Default(column)),
        ColumnRule::Generated { expression, .. } => {
            of_text(expression, schema, Kind::Generated(column))
        }
    }
}

/// What a rule is for.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'c> {
    Default(&'c Column),
    Generated(&'c Column),
    Check,
    Key,
}

impl Kind<'_> {
    fn clause(self) -> &'static str {
        match self {
            Kind::Default(_) => "DEFAULT",
            Kind::Generated(_) => "GENERATED",
            Kind::Check => "CHECK",
            Kind::Key => "KEY",
        }
    }
}

/// Parses and binds the text of a rule.
fn of_text(text: &str, schema: &TableSchema, kind: Kind<'_>) -> Result<Expr> {
    let corrupt =
        || Error::corrupt(format!("table {}: `{text}` is not an expression", schema.name));
    let parsed = crate::parse(&format!("SELECT {text}")).map_err(|_| corrupt())?;
    let expr = parsed.first().and_then(expression).filter(|_| parsed.len() == 1);
    let mut binder = Binder::new(&NoTables, &[], 0, "");
    let bound = binder.rule(expr.ok_or_else(corrupt)?, schema, kind);
    // A position would be one in the text of the rule.
    bound.map_err(|error| error.at(None).context(format!("table {}", schema.name)))
}

/// The expression of a `SELECT` that consists of it.
pub(super) fn expression(parsed: &Parsed) -> Option<&ast::Expr> {
    let Ok(ast::Statement::Query(query)) = parsed.statement() else { return None };
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
    match select.projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(expr)] if select.from.is_empty() => Some(expr),
        _ => None,
    }
}

/// Rules read no table.
struct NoTables;

impl Catalog for NoTables {
    fn table(&self, _: &str) -> Option<Arc<TableSchema>> {
        None
    }

    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn row_count(&self, _: &TableSchema) -> u64 {
        0
    }
}

impl<'a> Binder<'a> {
    /// Binds the expression of a rule over the columns of its table.
    fn rule(&mut self, ast: &'a ast::Expr, schema: &TableSchema, kind: Kind<'_>) -> Result<Expr> {
        let scope = match kind {
            Kind::Default(_) => Scope::default(),
            Kind::Generated(_) | Kind::Check | Kind::Key => {
                Scope::of(&schema.name, &table_fields(schema))
            }
        };
        let clause = kind.clause();
        let expr = self.expr(ast, &mut Env::new(&scope, clause))?;
        let expr = match kind {
            Kind::Check => self.condition(expr, clause)?,
            Kind::Key => expr,
            Kind::Default(column) | Kind::Generated(column) => {
                self.assign(expr, column.data_type, &column.name)?
            }
        };
        if !self.parameters.is_empty() {
            return Err(unsupported(&format!("{clause} with parameters")));
        }
        if has_subquery(&expr) {
            return Err(unsupported(&format!("{clause} with a subquery")));
        }
        if let Some(name) = created(&expr) {
            // Functions are not stored, so the rule would fail after the database is opened again.
            return Err(unsupported(&format!("{clause} with the created function {name}()")));
        }
        if !matches!(kind, Kind::Default(_))
            && let Some(name) = varying(&expr)
        {
            return Err(Error::unsupported(format!("{clause} with {name}(), which varies"))
                .with_sqlstate("42P17"));
        }
        match kind {
            Kind::Generated(column) => check_order(&expr, schema, column).map(|()| expr),
            Kind::Default(_) | Kind::Check | Kind::Key => Ok(expr),
        }
    }

    /// Binds the expression of a rule where it is declared, and returns the text to store.
    pub(crate) fn declared_rule(
        &mut self,
        ast: &'a ast::Expr,
        schema: &TableSchema,
        kind: Kind<'_>,
    ) -> Result<String> {
        let bound = self.rule(ast, schema, kind).map_err(|e| e.at(place(ast)))?;
        let mut inner = ast;
        while let ast::Expr::Nested(within) = inner {
            inner = within;
        }
        let text = inner.to_string();
        match of_text(&text, schema, kind) {
            Ok(again) if again == bound => Ok(text),
            _ => Err(unsupported(&format!("this expression of {}", kind.clause())).at(place(ast))),
        }
    }
}

/// The name of a function in an expression whose result depends on more than its arguments.
fn varying(expr: &Expr) -> Option<&str> {
    if let ExprKind::Function { function, .. } = &expr.kind
        && function.volatility() != Volatility::Immutable
    {
        return Some(function.name());
    }
    let mut found = None;
    expr.for_each_child(&mut |child| found = found.or(varying(child)));
    found
}

/// The name of a function in an expression that the application created.
fn created(expr: &Expr) -> Option<&str> {
    if let ExprKind::Function { function, .. } = &expr.kind
        && function.listed().is_none()
    {
        return Some(function.name());
    }
    let mut found = None;
    expr.for_each_child(&mut |child| found = found.or(created(child)));
    found
}

/// Fails if a generated column reads itself or a generated column that is computed after it.
fn check_order(expr: &Expr, schema: &TableSchema, column: &Column) -> Result<()> {
    let own = schema.columns.iter().position(|c| c.id == column.id);
    let own = own.unwrap_or(schema.columns.len());
    let mut read = Vec::new();
    columns(expr, &mut |at| read.push(at));
    let late =
        read.into_iter().find(|at| *at == own || *at > own && schema.columns[*at].is_generated());
    match late {
        None => Ok(()),
        Some(at) => Err(Error::unsupported(format!(
            "column {} is generated from {}, which is not computed before it",
            column.name, schema.columns[at].name
        ))
        .with_sqlstate("42P17")),
    }
}

/// What reads a column: the name of a check or of another generated column, if there is any.
pub(crate) fn rules_reading(schema: &TableSchema, column: usize) -> Result<Option<String>> {
    let rules = table_rules(schema)?;
    let reads = |expr: &Expr| {
        let mut found = false;
        columns(expr, &mut |at| found |= at == column);
        found
    };
    if let Some((name, _)) = rules.checks.iter().find(|(_, expr)| reads(expr)) {
        return Ok(Some(format!("CHECK {name}")));
    }
    let key = rules.computed.iter().position(|computed| computed.inputs.contains(&column));
    if let Some(at) = key {
        let id = schema.computed[at].id;
        let index = schema.declared_indexes().find(|index| index.columns.contains(&id));
        return Ok(index.map(|index| format!("index {}", index.name)));
    }
    let generated = rules.generated.iter().find(|(at, expr)| *at != column && reads(expr));
    Ok(generated.map(|(at, _)| format!("the generated column {}", schema.columns[*at].name)))
}

/// A text of a rule with another name of a column, or of the table where a point follows it.
/// `is_same` tells whether a text has the meaning of this one.
fn renamed(
    text: &str,
    (from, to): (&str, &str),
    is_table: bool,
    is_same: &dyn Fn(&str) -> bool,
) -> Result<String> {
    let tokens = tokens(text)?;
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut new = text.to_string();
    for (at, (token, place)) in tokens.iter().enumerate().rev() {
        let after = tokens.get(at + 1).map(|(token, _)| token);
        let is_word = matches!(token, Token::Word(w) if w.value.eq_ignore_ascii_case(from))
            && (after == Some(&Token::Period)) == is_table
            && after != Some(&Token::LParen);
        // A word of the syntax, such as the END of a CASE, loses its meaning in quotes.
        let (head, tail) = (&text[..place.start], &text[place.end..]);
        if is_word && is_same(&[head, &quoted(from), tail].concat()) {
            new.replace_range(place.clone(), &quoted(to));
        }
    }
    Ok(new)
}

/// Changes a name in the texts of rules: that of a column, or of the table before a point.
/// `changed` is the schema with the new name and the old texts.
pub(crate) fn rename_in_rules(
    before: &TableSchema,
    changed: &mut TableSchema,
    (from, to): (&str, &str),
    is_table: bool,
) -> Result<()> {
    let new_text = |text: &str, kind: Kind<'_>, after: &TableSchema| {
        let bound = of_text(text, before, kind)?;
        let is_same = |text: &str| of_text(text, before, kind).is_ok_and(|again| again == bound);
        let new = renamed(text, (from, to), is_table, &is_same)?;
        match of_text(&new, after, kind)? == bound {
            true => Ok(new),
            false => Err(unsupported("this change of a name that is used by a CHECK or a column")),
        }
    };
    let after = changed.clone();
    for at in 0..changed.columns.len() {
        let kind = Kind::Generated(&after.columns[at]);
        if let ColumnRule::Generated { expression, .. } = &mut changed.columns[at].rule {
            *expression = new_text(expression, kind, &after)?;
        }
    }
    for column in &mut changed.computed {
        column.name = new_text(&column.name, Kind::Key, &after)?;
    }
    for check in &mut changed.checks {
        check.expression = new_text(&check.expression, Kind::Check, &after)?;
    }
    Ok(())
}
