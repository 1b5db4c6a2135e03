//! `UPDATE` and `DELETE`, including those that read more than the row they change: `FROM`, `USING`,
//! joins, subqueries, `ORDER BY` and `LIMIT`. For these, the conditions on the target table alone
//! find candidate rows, which are numbered; an ordinary plan over the candidates and the other
//! tables then yields the rows that change and their new values.

use crate::analysis::columns::{conjuncts, only};
use crate::analysis::conditions::filter;
use crate::analysis::subqueries::has_subquery;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::names::{place, unsupported};
use crate::bind::query::query_expression::sort_key;
use crate::bind::query::volatile_keys;
use crate::bind::scope::{ROW_NUMBER, Scope, ScopeColumn};
use crate::bind::statement::assignment::table_fields;
use crate::expr::Expr;
use crate::plan::{Field, Plan, RowStatement, Statement, WriteStatement};
use nacre_types::{DataType, Error, Result, TableSchema};
use sqlparser::ast;

/// The parts of an `UPDATE` or `DELETE`, independent of the SQL dialect it is written in.
pub(crate) struct Change<'a> {
    /// The table whose rows change.
    pub relation: &'a ast::TableFactor,
    /// Joins of the target table.
    pub joins: &'a [ast::Join],
    /// Tables cross joined to the target: those of `FROM` and `USING`.
    pub others: &'a [ast::TableWithJoins],
    pub selection: Option<&'a ast::Expr>,
    /// Assignments of an `UPDATE`; `None` for a `DELETE`.
    pub assignments: Option<&'a [ast::Assignment]>,
    pub order_by: &'a [ast::OrderByExpr],
    pub limit: Option<&'a ast::Expr>,
    pub returning: Option<&'a [ast::SelectItem]>,
}

impl<'a> Binder<'a> {
    pub(crate) fn change(&mut self, parts: Change<'a>) -> Result<Statement> {
        let (table, mut scope, scan) = self.target(parts.relation)?;
        let width = scope.columns.len();
        let joined = !parts.joins.is_empty() || !parts.others.is_empty();
        if joined && (!parts.order_by.is_empty() || parts.limit.is_some()) {
            return Err(unsupported("UPDATE or DELETE of a join with ORDER BY or LIMIT"));
        }
        let shown = scope.columns[0].table.clone();
        parts.assignments.unwrap_or_default().iter().try_for_each(|a| check_owner(a, &shown))?;
        let id = self.fresh();
        let mut fields = table_fields(&table);
        fields.push(Field { name: "row".into(), data_type: DataType::Int64, nullable: false });
        let mut rows = Plan::Given { id, fields };
        // The row number comes right after the target's columns; columns of other tables follow it.
        scope.columns.push(ScopeColumn {
            table: String::new(),
            name: ROW_NUMBER.into(),
            data_type: DataType::Int64,
            nullable: false,
        });
        if joined {
            let keeps = |join: &ast::Join| {
                use ast::JoinOperator as J;
                !matches!(join.join_operator, J::Right(_) | J::RightOuter(_) | J::FullOuter(_))
            };
            if !parts.joins.iter().all(keeps) {
                return Err(unsupported("UPDATE or DELETE of a RIGHT or FULL JOIN"));
            }
            (rows, scope) = self.joined((rows, scope), parts.joins)?;
            let all = self.beside(Some((rows, scope)), parts.others)?;
            (rows, scope) = all.ok_or_else(|| unsupported("this form of FROM"))?;
        }
        let mut predicate = None;
        if let Some(filter) = parts.selection {
            let mut env = Env::new(&scope, "WHERE");
            let bound = self.expr(filter, &mut env)?;
            predicate = Some(self.condition(bound, "WHERE").map_err(|e| e.at(place(filter)))?);
        }
        let assignments = match parts.assignments {
            Some(list) => Some(self.assignments(&table, &scope, list)?),
            None => None,
        };
        let returning = match parts.returning {
            Some(items) => Some(self.returned(items, &scope)?),
            None => None,
        };
        let values = assignments.iter().flatten().map(|(_, e)| e);
        let plain = !joined
            && parts.order_by.is_empty()
            && parts.limit.is_none()
            && !predicate.iter().chain(values).any(has_subquery);
        let write = if plain {
            let input = filter(scan, predicate.into_iter().collect());
            match assignments {
                Some(assignments) => WriteStatement::Update { table, input, assignments },
                None => WriteStatement::Delete { table, input },
            }
        } else {
            let mut conditions = Vec::new();
            predicate.into_iter().for_each(|p| conjuncts(p, &mut conditions));
            let (own, others): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|c| !has_subquery(c) && only(c, &|at| at < width));
            rows = filter(rows, others);
            rows = self.first_rows(rows, &scope, parts.order_by, parts.limit)?;
            let extra = returning.is_some().then_some(width..scope.columns.len());
            let (matches, columns) = picked(rows, width, assignments, extra);
            WriteStatement::Change { table, target: filter(scan, own), rows: id, matches, columns }
        };
        Ok(match returning {
            Some((exprs, fields)) => RowStatement::Returning { write, exprs, fields },
            None => RowStatement::Write(write),
        }
        .into())
    }

    /// Applies MySQL's `ORDER BY` and `LIMIT` to the rows to change.
    fn first_rows(
        &mut self,
        rows: Plan,
        scope: &Scope,
        order: &'a [ast::OrderByExpr],
        limit: Option<&'a ast::Expr>,
    ) -> Result<Plan> {
        let mut keys = Vec::new();
        for item in order {
            let mut env = Env::new(scope, "ORDER BY");
            let expr = self.typed(&item.expr, &mut env)?;
            keys.push(sort_key(expr, item)?);
        }
        let limit = limit.map(|e| self.row_count(e, "LIMIT")).transpose()?.flatten();
        let rows = match keys.is_empty() {
            true => rows,
            false => volatile_keys::sorted(rows, keys),
        };
        Ok(match limit {
            None => rows,
            limit => Plan::Limit { input: Box::new(rows), offset: None, limit },
        })
    }

    /// Binds the expressions of `RETURNING`, which are computed over each written row.
    pub(crate) fn returned(
        &mut self,
        items: &'a [ast::SelectItem],
        scope: &Scope,
    ) -> Result<(Vec<Expr>, Vec<Field>)> {
        let mut env = Env::new(scope, "RETURNING");
        let outputs = self.outputs(items, &mut env)?;
        let is_null = |at: usize| scope.columns.get(at).is_none_or(|c| c.nullable);
        let mut fields = Vec::with_capacity(outputs.len());
        let mut exprs = Vec::with_capacity(outputs.len());
        for output in outputs {
            if has_subquery(&output.expr) {
                return Err(unsupported("a subquery in RETURNING"));
            }
            let nullable = crate::analysis::nullable::nullable(&output.expr, &is_null);
            fields.push(Field { name: output.name, data_type: output.expr.data_type, nullable });
            exprs.push(output.expr);
        }
        Ok((exprs, fields))
    }

    /// Builds the statement of a write, with the rows of `RETURNING` if there is one.
    pub(crate) fn with_returning(
        &mut self,
        write: WriteStatement,
        items: Option<&'a Vec<ast::SelectItem>>,
        table: &TableSchema,
    ) -> Result<Statement> {
        let Some(items) = items else { return Ok(write.into()) };
        let (exprs, fields) =
            self.returned(items, &Scope::of(&table.name, &table_fields(table)))?;
        Ok(RowStatement::Returning { write, exprs, fields }.into())
    }

    /// Binds `DELETE` in the forms of PostgreSQL, MySQL and SQLite.
    pub(crate) fn delete(&mut self, delete: &'a ast::Delete) -> Result<Statement> {
        refuse_output(delete.output.as_ref())?;
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &delete.from;
        let Some(first) = from.first() else {
            return Err(Error::syntax("DELETE requires a table"));
        };
        let mut parts = Change {
            relation: &first.relation,
            joins: &first.joins,
            others: &from[1..],
            selection: delete.selection.as_ref(),
            assignments: None,
            order_by: &delete.order_by,
            limit: delete.limit.as_ref(),
            returning: delete.returning.as_deref(),
        };
        match (delete.tables.as_slice(), delete.using.as_deref()) {
            ([], None) if from.len() > 1 || !first.joins.is_empty() => {
                return Err(unsupported("DELETE of a join that does not name the target table"));
            }
            ([], None) => {}
            // `DELETE t FROM t JOIN u …`
            ([name], None) => {
                if !is_named(&first.relation, name) {
                    return Err(unsupported(
                        "DELETE from a table other than the first of its join",
                    ));
                }
            }
            ([], Some(using)) if from.len() == 1 && first.joins.is_empty() => {
                parts.others = using;
                // MySQL repeats the target in USING: `DELETE FROM t USING t JOIN u …`.
                if let ([again, rest @ ..], ast::TableFactor::Table { name, alias: None, .. }) =
                    (using, parts.relation)
                    && is_named(&again.relation, name)
                {
                    (parts.relation, parts.joins, parts.others) =
                        (&again.relation, &again.joins, rest);
                }
            }
            _ => return Err(unsupported("DELETE from several tables")),
        }
        self.change(parts)
    }

    /// Binds `UPDATE`.
    pub(crate) fn update(&mut self, update: &'a ast::Update) -> Result<Statement> {
        if update.or.is_some() {
            return Err(unsupported("UPDATE OR …"));
        }
        refuse_output(update.output.as_ref())?;
        let others: &'a [ast::TableWithJoins] = match &update.from {
            None => &[],
            Some(
                ast::UpdateTableFromKind::BeforeSet(list)
                | ast::UpdateTableFromKind::AfterSet(list),
            ) => list,
        };
        self.change(Change {
            relation: &update.table.relation,
            joins: &update.table.joins,
            others,
            selection: update.selection.as_ref(),
            assignments: Some(&update.assignments),
            order_by: &update.order_by,
            limit: update.limit.as_ref(),
            returning: update.returning.as_deref(),
        })
    }
}

/// Refuses SQL Server's spelling of `RETURNING`.
fn refuse_output(output: Option<&ast::OutputClause>) -> Result<()> {
    match output {
        Some(_) => Err(unsupported("OUTPUT")),
        None => Ok(()),
    }
}

/// Projects matches to the number of the row, its new values, and the columns of other tables that
/// `RETURNING` may use (`extra`). Also returns the columns that an `UPDATE` assigns.
fn picked(
    rows: Plan,
    width: usize,
    assignments: Option<Vec<(usize, Expr)>>,
    extra: Option<std::ops::Range<usize>>,
) -> (Plan, Option<Vec<usize>>) {
    let inputs = rows.fields();
    let mut exprs = vec![Expr::column(width, DataType::Int64)];
    let mut fields =
        vec![Field { name: "row".into(), data_type: DataType::Int64, nullable: false }];
    let columns = assignments.map(|list| {
        let mut columns = Vec::with_capacity(list.len());
        for (at, expr) in list {
            let name = inputs[at].name.clone();
            fields.push(Field { name, data_type: expr.data_type, nullable: true });
            exprs.push(expr);
            columns.push(at);
        }
        columns
    });
    for at in extra.into_iter().flatten() {
        if let Some(field) = inputs.get(at) {
            exprs.push(Expr::column(at, field.data_type));
            fields.push(field.clone());
        }
    }
    (Plan::Project { input: Box::new(rows), exprs, fields }, columns)
}

/// Whether a table has this name or alias in `FROM`.
fn is_named(factor: &ast::TableFactor, wanted: &ast::ObjectName) -> bool {
    let ast::TableFactor::Table { name, alias, .. } = factor else { return false };
    let last = |name: &ast::ObjectName| match name.0.last() {
        Some(ast::ObjectNamePart::Identifier(ident)) => ident.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let own = alias.as_ref().map_or_else(|| last(name), |a| a.name.value.to_ascii_lowercase());
    own == last(wanted)
}

/// Returns an error if a qualified name in `SET` refers to a table other than the target.
fn check_owner(assignment: &ast::Assignment, shown: &str) -> Result<()> {
    let ast::AssignmentTarget::ColumnName(name) = &assignment.target else { return Ok(()) };
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(table), _] if !table.value.eq_ignore_ascii_case(shown) => {
            let at = crate::parse::position(table.span.start);
            Err(unsupported(&format!(
                "SET of a column of {}, which is not the target table {shown},",
                table.value
            ))
            .at(at))
        }
        _ => Ok(()),
    }
}
