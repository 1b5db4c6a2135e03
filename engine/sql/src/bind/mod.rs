//! Names and types: syntax trees to typed plans. One folder, one pass: every expression leaves here
//! with a type, every cast is explicit, every name is a position.
//!
//! Invariants: recursion is bounded by [`MAX_DEPTH`]; nothing here reads data; sizes that only data can
//! decide (overflow, length) are left to run time.

mod catalog;
mod expression;
mod given;
mod query;
mod scope;
mod statement;

use crate::expr::{Aggregate, Expr, ExprKind};
use crate::parse::literal_rows::LiteralRows;
use crate::parse::{Parsed, position};
use crate::plan::{Catalog, Statement};
pub(crate) use expression::types::decimal_shape;
pub use given::Given;
use nacre_types::{DataType, Error, Position, Result, TableSchema};
pub(crate) use query::from::nullable;
use scope::{Scope, with_suggestion};
use sqlparser::ast;
use std::sync::Arc;

/// Levels of expressions and subqueries at most.
const MAX_DEPTH: usize = 420;
/// Levels that a query inside another takes: binding it needs so much more of the stack than an expression does.
const QUERY_LEVELS: usize = 7;
/// Subqueries, common table expressions included, that one statement may expand to. Each may become a join below the
/// others, and who walks a plan needs stack for each.
const MAX_QUERIES: usize = 160;
/// Parts of expressions that may stand once in a statement and are needed several times.
const MAX_COPIED: usize = 1 << 18;
/// Tables of one `FROM` at most.
const MAX_TABLES: usize = 64;
/// Aggregates of a grouped query are columns from here on until the grouping is known.
const AGGREGATE_BASE: usize = 1 << 30;
/// And window functions from here on.
const WINDOW_BASE: usize = 1 << 31;

/// State of binding one statement.
struct Binder<'a> {
    catalog: &'a dyn Catalog,
    /// What is known of the parameter values at hand.
    given: &'a [Given],
    /// Types decided so far; `Null` is undecided.
    parameters: Vec<DataType>,
    /// Common table expressions in scope, innermost last.
    ctes: Vec<query::query_expression::Cte<'a>>,
    /// Rows of enclosing queries that the one being bound may refer to, innermost last.
    frames: Vec<expression::subquery::Frame>,
    /// Numbers for frames and shared plans, each used once.
    numbers: u32,
    depth: usize,
    queries: usize,
    /// Parts of expressions that were copied.
    copied: usize,
    /// Tables of the current `FROM`.
    tables: usize,
    /// The statement as written.
    text: &'a str,
    /// Rows of the insert that are only in the text, until they are bound.
    literal_rows: Option<&'a LiteralRows>,
    /// The `WINDOW` clause of the current `SELECT`.
    named_windows: &'a [ast::NamedWindowDefinition],
    /// Views whose queries are being bound, outermost first.
    views: Vec<String>,
}

/// What an expression may refer to, and what it was found to use.
struct Env<'s> {
    scope: &'s Scope,
    /// Output columns, for names that are not in scope.
    aliases: &'s [(String, Expr)],
    /// Clause, for messages.
    clause: &'static str,
    /// Aggregates found; none where they are not allowed.
    aggregates: Option<Vec<Aggregate>>,
    in_aggregate: bool,
    /// Inside an aggregate over a window: the aggregates of the query, which its arguments may use.
    outer_aggregates: Option<Vec<Aggregate>>,
    /// Window functions found; none where they are not allowed.
    windows: Option<Vec<expression::function::window::Window>>,
    /// Columns named outside aggregates, for grouping errors.
    seen: Vec<(usize, Option<Position>)>,
}

impl<'s> Env<'s> {
    fn new(scope: &'s Scope, clause: &'static str) -> Env<'s> {
        Env {
            scope,
            aliases: &[],
            clause,
            aggregates: None,
            in_aggregate: false,
            outer_aggregates: None,
            windows: None,
            seen: Vec::new(),
        }
    }
}

pub(crate) fn bind_statement(
    parsed: &Parsed,
    catalog: &dyn Catalog,
    given: &[Given],
) -> Result<(Statement, Vec<DataType>)> {
    let mut binder = Binder::new(catalog, given, parsed.parameter_names().len(), parsed.text());
    binder.literal_rows = parsed.literal_rows();
    let statement = binder.statement(&parsed.statement)?;
    let statement = crate::unnest::statement(statement, &mut binder.numbers)?;
    let mut parameters = binder.parameters;
    for (at, t) in parameters.iter_mut().enumerate() {
        if *t == DataType::Null {
            *t = given
                .get(at)
                .map(|g| g.natural)
                .filter(|t| *t != DataType::Null)
                .unwrap_or(DataType::TEXT);
        }
    }
    Ok((statement, parameters))
}

#[cold]
fn unsupported(feature: &str) -> Error {
    Error::unsupported(format!("{feature} is not supported"))
}

impl<'a> Binder<'a> {
    fn new(
        catalog: &'a dyn Catalog,
        given: &'a [Given],
        parameters: usize,
        text: &'a str,
    ) -> Binder<'a> {
        Binder {
            catalog,
            given,
            parameters: vec![DataType::Null; parameters],
            ctes: Vec::new(),
            frames: Vec::new(),
            numbers: 0,
            depth: 0,
            queries: 0,
            copied: 0,
            tables: 0,
            text,
            literal_rows: None,
            named_windows: &[],
            views: Vec::new(),
        }
    }

    fn statement(&mut self, statement: &'a ast::Statement) -> Result<Statement> {
        use ast::Statement as S;
        match statement {
            S::Query(query) if !query.locks.is_empty() => self.locking_query(query),
            S::Query(query) if is_write(&query.body) => self.write_with(query),
            S::Query(query) => Ok(Statement::Query(self.query(query)?)),
            S::Insert(insert) => self.insert(insert),
            S::Update(update) => self.update(update),
            S::Delete(delete) => self.delete(delete),
            S::CreateTable(create) => self.create_table(create),
            S::Drop {
                object_type: ast::ObjectType::Table,
                if_exists,
                names,
                temporary: false,
                ..
            } => {
                if !if_exists {
                    names.iter().try_for_each(|name| self.table(name).map(|_| ()))?;
                }
                let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
                Ok(Statement::DropTable {
                    names: names.into_iter().map(|n| n.0).collect(),
                    if_exists: *if_exists,
                })
            }
            S::CreateView(create) => self.create_view(create),
            S::Drop {
                object_type: ast::ObjectType::View,
                if_exists,
                names,
                temporary: false,
                ..
            } => {
                let names =
                    names.iter().map(|n| Ok(table_name(n)?.0)).collect::<Result<Vec<_>>>()?;
                Ok(Statement::DropView { names, if_exists: *if_exists })
            }
            S::CreateIndex(create) => self.create_index(create),
            S::Drop { object_type: ast::ObjectType::Index, if_exists, names, table, .. } => {
                self.drop_indexes(names, table.as_ref(), *if_exists)
            }
            S::AlterTable(alter) => self.alter_table(alter),
            S::Truncate(truncate) => self.truncate(truncate),
            S::StartTransaction { modes, statements, exception: None, .. }
                if statements.is_empty() =>
            {
                modes.iter().try_for_each(transaction_mode).map(|()| Statement::Begin)
            }
            S::Commit { chain: false, .. } => Ok(Statement::Commit),
            S::Rollback { chain: false, savepoint: None } => Ok(Statement::Rollback),
            S::Rollback { chain: false, savepoint: Some(name) } => {
                Ok(Statement::RollbackTo(name.value.clone()))
            }
            S::Savepoint { name } => Ok(Statement::Savepoint(name.value.clone())),
            S::ReleaseSavepoint { name } => Ok(Statement::Release(name.value.clone())),
            S::Set(set) => self.set_option(set),
            S::Explain { statement, analyze, .. } => {
                let inner = Box::new(self.nested(|b| b.statement(statement))?);
                match &*inner {
                    _ if !analyze => Ok(Statement::Explain(inner)),
                    Statement::Query(_)
                    | Statement::Lock { .. }
                    | Statement::Insert { .. }
                    | Statement::Upsert { .. }
                    | Statement::Update { .. }
                    | Statement::Change { .. }
                    | Statement::Returning { .. }
                    | Statement::Delete { .. } => Ok(Statement::Profile(inner)),
                    _ => Err(unsupported(
                        "PROFILE of a statement that neither reads nor writes rows",
                    )),
                }
            }
            S::OptimizeTable { name, include_final, .. } => {
                Ok(Statement::Optimize { table: self.table(name)?, full: *include_final })
            }
            S::ShowTables { show_options, full, .. } => self.show_tables(show_options, *full),
            S::ShowColumns { show_options, .. } => self.show_columns(show_options),
            S::ExplainTable { table_name, .. } => self.describe(table_name),
            S::ShowCreate { obj_type: ast::ShowCreateObject::Table, obj_name } => {
                self.show_create_table(obj_name)
            }
            S::ShowCreate { obj_type: ast::ShowCreateObject::View, obj_name } => {
                self.show_create_view(obj_name)
            }
            S::ShowViews { show_options, .. } => self.show_views(show_options),
            S::ShowDatabases { .. } | S::ShowSchemas { .. } => self.show_schemas(),
            S::ShowFunctions { filter } => self.show_functions(filter.as_ref()),
            S::ShowVariable { variable } => self.show_words(variable),
            _ => Err(unsupported(statement_name(statement))),
        }
    }

    /// `WITH … INSERT`, `UPDATE` or `DELETE`.
    fn write_with(&mut self, query: &'a ast::Query) -> Result<Statement> {
        use ast::SetExpr::{Delete, Insert, Update};
        let (Insert(statement) | Update(statement) | Delete(statement)) = query.body.as_ref()
        else {
            return Err(unsupported("a data-modifying statement as a query"));
        };
        self.with(query.with.as_ref(), |b| b.nested(|b| b.statement(statement)))
    }

    /// A number not used before in this statement.
    fn fresh(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    /// Runs one level deeper; too deep is an error instead of a stack overflow.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limit(format!(
                "expression is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// A table of the catalog.
    fn table(&self, name: &ast::ObjectName) -> Result<Arc<TableSchema>> {
        let (name, place) = table_name(name)?;
        self.catalog.table(&name).ok_or_else(|| {
            if self.catalog.view(&name).is_some() {
                return Error::unsupported(format!("{name} is a view, not a table"))
                    .with_sqlstate("42809")
                    .at(place);
            }
            let error =
                Error::not_found(format!("no table `{name}`")).with_sqlstate("42P01").at(place);
            let names = self.catalog.table_names();
            with_suggestion(error, &name, names.iter().map(String::as_str))
        })
    }

    /// A parameter whose type is not decided yet.
    fn is_untyped(expr: &Expr) -> bool {
        expr.data_type == DataType::Null && matches!(expr.kind, ExprKind::Parameter(_))
    }

    /// What is known of the value at hand for a parameter.
    fn given(&self, index: usize) -> Given {
        self.given.get(index).copied().unwrap_or(DataType::Null.into())
    }

    /// Decides an untyped parameter's type; the first decision stands, others cast.
    fn decide(&mut self, expr: Expr, to: DataType) -> Expr {
        let ExprKind::Parameter(index) = expr.kind else { return expr };
        if expr.data_type != DataType::Null || to == DataType::Null {
            return expr;
        }
        let Some(slot) = self.parameters.get_mut(index) else { return expr };
        if *slot == DataType::Null {
            *slot = to;
        }
        let typed = Expr { kind: ExprKind::Parameter(index), data_type: *slot };
        if typed.data_type == to {
            typed
        } else {
            Expr { kind: ExprKind::Cast(Box::new(typed)), data_type: to }
        }
    }

    /// Decides an untyped parameter by its value, or by `otherwise` without one.
    fn settle(&mut self, expr: Expr, otherwise: DataType) -> Expr {
        match expr.kind {
            ExprKind::Parameter(index) if expr.data_type == DataType::Null => {
                let decided = self.parameters.get(index).copied().unwrap_or(DataType::Null);
                let natural = self.given(index).natural;
                let to = [decided, natural, otherwise].into_iter().find(|t| *t != DataType::Null);
                self.decide(expr, to.unwrap_or(DataType::TEXT))
            }
            _ => expr,
        }
    }
}

fn is_write(body: &ast::SetExpr) -> bool {
    matches!(body, ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_))
}

/// The last part of a table's name, and where it is.
fn table_name(name: &ast::ObjectName) -> Result<(String, Option<Position>)> {
    let part = |at: usize| match name.0.get(at) {
        Some(ast::ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    };
    let ident = match (name.0.len(), part(0), part(1)) {
        (1, Some(ident), _) => ident,
        (2, Some(schema), Some(ident))
            if schema.value.eq_ignore_ascii_case("main")
                || schema.value.eq_ignore_ascii_case("public") =>
        {
            ident
        }
        (_, Some(first), _) => {
            return Err(unsupported("a qualified table name").at(position(first.span.start)));
        }
        _ => return Err(unsupported("this form of name")),
    };
    Ok((ident.value.clone(), position(ident.span.start)))
}

/// Where an expression starts, as far as the syntax tree says.
fn place(mut expr: &ast::Expr) -> Option<Position> {
    use ast::Expr as E;
    loop {
        let span = match expr {
            E::Identifier(ident) => ident.span,
            E::CompoundIdentifier(parts) => parts.first()?.span,
            E::Value(value) => value.span,
            E::TypedString(typed) => typed.value.span,
            E::Interval(interval) => {
                expr = &interval.value;
                continue;
            }
            E::Function(function) => match function.name.0.first()? {
                ast::ObjectNamePart::Identifier(ident) => ident.span,
                _ => return None,
            },
            E::Case { case_token, .. } => case_token.0.span,
            E::BinaryOp { left, .. } => {
                expr = left;
                continue;
            }
            E::IsDistinctFrom(inner, _) | E::IsNotDistinctFrom(inner, _) => {
                expr = inner;
                continue;
            }
            E::Nested(inner)
            | E::UnaryOp { expr: inner, .. }
            | E::Cast { expr: inner, .. }
            | E::Between { expr: inner, .. }
            | E::InList { expr: inner, .. }
            | E::InSubquery { expr: inner, .. }
            | E::Like { expr: inner, .. }
            | E::ILike { expr: inner, .. }
            | E::IsNull(inner)
            | E::IsNotNull(inner)
            | E::IsTrue(inner)
            | E::IsNotTrue(inner)
            | E::IsFalse(inner)
            | E::IsNotFalse(inner)
            | E::Extract { expr: inner, .. }
            | E::Substring { expr: inner, .. }
            | E::Ceil { expr: inner, .. }
            | E::Floor { expr: inner, .. }
            | E::Trim { expr: inner, .. }
            | E::Collate { expr: inner, .. } => {
                expr = inner;
                continue;
            }
            E::Subquery(query) | E::Exists { subquery: query, .. } => match query.body.as_ref() {
                ast::SetExpr::Select(select) => select.select_token.0.span,
                _ => return None,
            },
            _ => return None,
        };
        return position(span.start);
    }
}

/// Names of statements that parse but are not there yet.
#[cold]
fn statement_name(statement: &ast::Statement) -> &'static str {
    use ast::Statement as S;
    match statement {
        S::Drop { .. } => "this DROP",
        S::Commit { .. } => "COMMIT AND CHAIN",
        S::Rollback { .. } => "ROLLBACK AND CHAIN",
        S::StartTransaction { .. } => "this form of BEGIN",
        S::Merge(_) => "MERGE",
        S::Copy { .. } => "COPY",
        S::Set(_) => "SET",
        S::Use(_) => "USE",
        S::Pragma { .. } => "PRAGMA",
        S::Analyze(_) => "ANALYZE",
        S::Grant(_) => "GRANT",
        S::Revoke(_) => "REVOKE",
        S::Call(_) => "CALL",
        S::Prepare { .. } => "PREPARE",
        S::Execute { .. } => "EXECUTE",
        S::Vacuum(_) => "VACUUM",
        S::CreateSchema { .. } => "CREATE SCHEMA",
        S::CreateDatabase { .. } => "CREATE DATABASE",
        S::CreateFunction(_) => "CREATE FUNCTION",
        S::CreateTrigger(_) => "CREATE TRIGGER",
        S::CreateSequence { .. } => "CREATE SEQUENCE",
        S::CreateType { .. } => "CREATE TYPE",
        S::RenameTable(_) => "RENAME TABLE",
        S::ShowVariable { .. } | S::ShowVariables { .. } => "SHOW of a variable",
        _ => "this statement",
    }
}

/// Transactions read and write, on a snapshot: what asks for more, or for less that somebody may rely on, is refused.
fn transaction_mode(mode: &ast::TransactionMode) -> Result<()> {
    use ast::{
        TransactionAccessMode as Access, TransactionIsolationLevel as Level,
        TransactionMode as Mode,
    };
    match mode {
        Mode::AccessMode(Access::ReadWrite) => Ok(()),
        Mode::IsolationLevel(
            Level::ReadUncommitted | Level::ReadCommitted | Level::RepeatableRead | Level::Snapshot,
        ) => Ok(()),
        other => Err(Error::unsupported(format!("a transaction that is {other}"))),
    }
}
