//! `INSERT`, and what it shares with `UPDATE` and `DELETE`: assignments to columns, the target
//! table and its filter.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::literal::number;
use crate::bind::names::{place, unsupported};
use crate::bind::query::from::refuse_modifiers;
use crate::bind::rule::rule_of;
use crate::bind::scope::Scope;
use crate::bind::statement::assignment::{
    column_position, set_as_values, single_assignments, table_fields,
};
use crate::expr::Expr;
use crate::parse::is_rows_only;
use crate::parse::literal_rows::{Literal, LiteralRows};
use crate::parse::position;
use crate::plan::{Plan, Statement};
use nacre_types::{ColumnRule, DataType, Error, Result, TableSchema, Value};
use sqlparser::ast::{self, SetExpr};
use std::sync::Arc;

/// The columns that an `INSERT` gives values for.
struct Targets<'t> {
    table: &'t TableSchema,
    /// Positions, in the order of the values.
    columns: Vec<usize>,
    /// For every column of the table, the value that it has otherwise.
    defaults: Vec<Expr>,
}

impl<'t> Targets<'t> {
    fn new(table: &'t TableSchema, columns: Vec<usize>) -> Result<Targets<'t>> {
        let of = |at: usize| match table.columns[at].is_generated() {
            // Computed once the row is whole.
            true => Ok(Expr::literal(Value::Null, table.columns[at].data_type)),
            false => rule_of(table, at),
        };
        let defaults = (0..table.columns.len()).map(of).collect::<Result<_>>()?;
        Ok(Targets { table, columns, defaults })
    }

    /// Whether the values of a row are those of the table, in order.
    fn are_all(&self) -> bool {
        self.columns.iter().copied().eq(0..self.table.columns.len())
    }

    /// Fails for a column that takes no value but its own.
    fn check(&self, target: usize) -> Result<()> {
        check_assignable(self.table, target)
    }
}

/// Fails for a column whose value a statement must not give: it may say `DEFAULT`.
pub(crate) fn check_assignable(table: &TableSchema, at: usize) -> Result<()> {
    let column = &table.columns[at];
    let what = match column.rule {
        ColumnRule::Generated { .. } => "generated",
        ColumnRule::Identity { always: true } => "GENERATED ALWAYS AS IDENTITY",
        _ => return Ok(()),
    };
    Err(Error::constraint(format!("column {} is {what}; only DEFAULT can be given", column.name))
        .with_sqlstate("428C9")
        .with_table(table.name.clone())
        .with_key(column.name.clone()))
}

fn is_default(ast: &ast::Expr) -> bool {
    matches!(ast, ast::Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}

impl<'a> Binder<'a> {
    pub(crate) fn insert(&mut self, insert: &'a ast::Insert) -> Result<Statement> {
        let feature = match &insert.on {
            Some(_) if insert.or.is_some() || insert.replace_into || insert.ignore => {
                Some("this form of INSERT")
            }
            None if insert.insert_alias.is_some() => Some("this form of INSERT"),
            _ if insert.overwrite || insert.partitioned.is_some() => Some("this form of INSERT"),
            _ if insert.priority.is_some() => Some("a priority of INSERT"),
            _ if insert.output.is_some() => Some("OUTPUT"),
            _ if insert.settings.is_some() || insert.format_clause.is_some() => {
                Some("this form of INSERT")
            }
            _ => None,
        };
        if let Some(feature) = feature {
            return Err(unsupported(feature));
        }
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(unsupported("INSERT into a function"));
        };
        let table = self.table(name)?;
        let mut targets = Vec::new();
        for column in &insert.columns {
            let (column, at) = column_position(&table, column)?;
            if targets.contains(&column) {
                let error = Error::already_exists(format!(
                    "column {} is specified more than once",
                    table.columns[column].name
                ));
                return Err(error.with_sqlstate("42701").at(at));
            }
            targets.push(column);
        }
        let schema = table.clone();
        let fields = table_fields(&schema);
        if !insert.assignments.is_empty() {
            let (columns, values) = set_as_values(&schema, &insert.assignments)?;
            let targets = Targets::new(&schema, columns)?;
            let row = self.inserted_row(&targets, values, &Scope::default())?;
            return self.written(insert, table, Plan::Values { fields, rows: vec![row] });
        }
        let Some(source) = &insert.source else {
            // INSERT … DEFAULT VALUES
            let rows = vec![Targets::new(&schema, Vec::new())?.defaults];
            return self.written(insert, table, Plan::Values { fields, rows });
        };
        let rows = match source.body.as_ref() {
            SetExpr::Values(values) if is_rows_only(source) => Some(values),
            _ => None,
        };
        if insert.columns.is_empty() {
            // Generated columns may be left out.
            let width = rows.and_then(|values| Some(values.rows.first()?.content.len()));
            let is_named = |at: &usize| {
                width == Some(schema.columns.len()) || !schema.columns[*at].is_generated()
            };
            targets = (0..schema.columns.len()).filter(is_named).collect();
        }
        let targets = Targets::new(&schema, targets)?;
        let source = match rows {
            Some(values) => self.insert_values(&targets, values)?,
            None => self.insert_query(&targets, source)?,
        };
        self.written(insert, table, source)
    }

    /// Binds the row of an `INSERT` within `MERGE`, over the columns in scope: a value for every column
    /// of the table. Without `values`, these are `given`, in the order of `columns`.
    pub(crate) fn merged_row(
        &mut self,
        table: &TableSchema,
        columns: Vec<usize>,
        values: Option<Vec<&'a ast::Expr>>,
        given: &[Expr],
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let targets = Targets::new(table, columns)?;
        let Some(values) = values else {
            if given.len() != targets.columns.len() {
                return Err(count_error(targets.columns.len(), given.len()));
            }
            let mut row = targets.defaults.clone();
            for (at, value) in targets.columns.iter().zip(given) {
                targets.check(*at)?;
                let column = &table.columns[*at];
                row[*at] = self.assign(value.clone(), column.data_type, &column.name)?;
            }
            return Ok(row);
        };
        self.inserted_row(&targets, values, scope)
    }

    fn insert_values(&mut self, targets: &Targets<'_>, values: &'a ast::Values) -> Result<Plan> {
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let values = row.content.iter().collect();
            rows.push(self.inserted_row(targets, values, &Scope::default())?);
            if let Some(literals) = self.literal_rows.take() {
                self.literal_rows(targets, literals, &mut rows)?;
            }
        }
        Ok(Plan::Values { fields: table_fields(targets.table), rows })
    }

    /// Binds one row of values for the target columns. Returns a value for every column, in table
    /// order.
    fn inserted_row(
        &mut self,
        targets: &Targets<'_>,
        row: Vec<&'a ast::Expr>,
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let mut env = Env::new(scope, "VALUES");
        if row.len() != targets.columns.len() {
            let at = row.first().and_then(|e| place(e));
            return Err(count_error(targets.columns.len(), row.len()).at(at));
        }
        let in_order = targets.are_all();
        let mut out =
            if in_order { Vec::with_capacity(row.len()) } else { targets.defaults.clone() };
        for (ast, target) in row.into_iter().zip(&targets.columns) {
            let column = &targets.table.columns[*target];
            let expr = if is_default(ast) {
                targets.defaults[*target].clone()
            } else {
                targets.check(*target).map_err(|e| e.at(place(ast)))?;
                let expr = self.expr(ast, &mut env)?;
                self.assign(expr, column.data_type, &column.name).map_err(|e| e.at(place(ast)))?
            };
            if in_order {
                out.push(expr);
            } else if let Some(slot) = out.get_mut(*target) {
                *slot = expr;
            }
        }
        Ok(out)
    }

    /// Binds the rows that the parser left in the text, with the same rules and errors as
    /// `inserted_row`.
    fn literal_rows(
        &mut self,
        targets: &Targets<'_>,
        literals: &LiteralRows,
        rows: &mut Vec<Vec<Expr>>,
    ) -> Result<()> {
        let text = self.text;
        let at = |offset: usize| position(literals.place(text, offset));
        let in_order = targets.are_all();
        literals.for_each(text, |row| {
            if row.len() != targets.columns.len() {
                let first = row.first().and_then(|(_, offset)| at(*offset));
                return Err(count_error(targets.columns.len(), row.len()).at(first));
            }
            let mut out =
                if in_order { Vec::with_capacity(row.len()) } else { targets.defaults.clone() };
            for ((literal, offset), target) in row.iter().zip(&targets.columns) {
                let column = &targets.table.columns[*target];
                targets.check(*target).map_err(|e| e.at(at(*offset)))?;
                let expr = match obvious(*literal, column.data_type) {
                    Some(expr) => expr,
                    None => {
                        let expr = self.plain_literal(*literal);
                        let expr =
                            expr.and_then(|expr| self.assign(expr, column.data_type, &column.name));
                        expr.map_err(|e| e.at(at(*offset)))?
                    }
                };
                match in_order {
                    true => out.push(expr),
                    false => out[*target] = expr,
                }
            }
            rows.push(out);
            Ok(())
        })
    }

    fn plain_literal(&mut self, literal: Literal<'_>) -> Result<Expr> {
        let value = match literal {
            Literal::Null => Value::Null,
            Literal::Boolean(v) => Value::Boolean(v),
            Literal::Text(text) => Value::Text(Literal::unquoted(text)),
            Literal::Number { digits, .. } => number(digits)?,
        };
        let data_type = value.natural_type();
        let expr = Expr::literal(value, data_type);
        if let Literal::Number { negative: true, .. } = literal {
            self.negate(expr)
        } else {
            Ok(expr)
        }
    }

    fn insert_query(&mut self, targets: &Targets<'_>, query: &'a ast::Query) -> Result<Plan> {
        let plan = self.query(query)?;
        let fields = plan.fields();
        if fields.len() != targets.columns.len() {
            return Err(count_error(targets.columns.len(), fields.len()));
        }
        let mut exprs = targets.defaults.clone();
        for (at, (field, target)) in fields.iter().zip(&targets.columns).enumerate() {
            targets.check(*target)?;
            let column = &targets.table.columns[*target];
            exprs[*target] =
                self.assign(Expr::column(at, field.data_type), column.data_type, &column.name)?;
        }
        Ok(Plan::Project { input: Box::new(plan), exprs, fields: table_fields(targets.table) })
    }

    /// Binds a `SET` list.
    pub(crate) fn assignments(
        &mut self,
        table: &TableSchema,
        scope: &Scope,
        list: &'a [ast::Assignment],
    ) -> Result<Vec<(usize, Expr)>> {
        let mut assignments: Vec<(usize, Expr)> = Vec::new();
        for (at, value) in single_assignments(table, list)? {
            let column = &table.columns[at];
            let expr = if is_default(value) {
                match column.is_generated() {
                    // It is computed anyway.
                    true => continue,
                    false => rule_of(table, at)?,
                }
            } else {
                check_assignable(table, at).map_err(|e| e.at(place(value)))?;
                let mut env = Env::new(scope, "SET");
                let expr = self.expr(value, &mut env)?;
                self.assign(expr, column.data_type, &column.name).map_err(|e| e.at(place(value)))?
            };
            // The last of several assignments to a column wins.
            assignments.retain(|(known, _)| *known != at);
            assignments.push((at, expr));
        }
        Ok(assignments)
    }

    /// Binds the table whose rows a statement writes or locks, with a scan of all its columns in
    /// table order.
    pub(crate) fn target(
        &mut self,
        factor: &'a ast::TableFactor,
    ) -> Result<(Arc<TableSchema>, Scope, Plan)> {
        let ast::TableFactor::Table { name, alias, args: None, sample, with_ordinality, .. } =
            factor
        else {
            return Err(unsupported("a target that is not a table"));
        };
        refuse_modifiers(factor)?;
        if sample.is_some() {
            return Err(unsupported("TABLESAMPLE of rows to change or to lock"));
        }
        if *with_ordinality {
            return Err(unsupported("WITH ORDINALITY"));
        }
        if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return Err(unsupported("a target with renamed columns"));
        }
        let table = self.table(name)?;
        let shown = alias.as_ref().map_or(table.name.as_str(), |a| a.name.value.as_str());
        let scope = Scope::of(shown, &table_fields(&table));
        let projection = (0..table.columns.len()).collect();
        let plan = Plan::scan(table.clone(), projection);
        Ok((table, scope, plan))
    }

    /// Applies a `WHERE` clause to a plan.
    pub(crate) fn filtered(
        &mut self,
        input: Plan,
        scope: &Scope,
        filter: Option<&'a ast::Expr>,
    ) -> Result<Plan> {
        let Some(filter) = filter else { return Ok(input) };
        let mut env = Env::new(scope, "WHERE");
        let bound = self.expr(filter, &mut env)?;
        let predicate = self.condition(bound, "WHERE").map_err(|e| e.at(place(filter)))?;
        Ok(Plan::Filter { input: Box::new(input), predicate })
    }
}

/// Fast path for most values of a long insert: converts text and integers that fit the column
/// without a cast. `None` leaves the literal to the general path.
fn obvious(literal: Literal<'_>, to: DataType) -> Option<Expr> {
    let value = match literal {
        Literal::Text(text) if to == DataType::TEXT => Value::Text(Literal::unquoted(text)),
        Literal::Number { negative, digits } if to.is_integer() && to != DataType::UInt64 => {
            let size: i64 = digits.parse().ok()?;
            let v = if negative { -size } else { size };
            let (low, high) = to.integer_range()?;
            (low..=high).contains(&i128::from(v)).then_some(Value::Int(v))?
        }
        _ => return None,
    };
    Some(Expr::literal(value, to))
}

fn count_error(columns: usize, values: usize) -> Error {
    Error::syntax(format!("INSERT has {columns} target columns but {values} values"))
}
