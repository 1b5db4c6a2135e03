//! Query expressions: `WITH`, `VALUES`, and `ORDER BY` and `LIMIT` of a query body.

use crate::analysis::volatile::plan_is_volatile;
use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::environment::{Cte, Itself};
use crate::bind::expression::cast::cast;
use crate::bind::names::{place, unsupported};
use crate::bind::query::volatile_keys;
use crate::bind::scope::Scope;
use crate::expr::{Expr, ExprKind};
use crate::parse::position;
use crate::plan::{Field, Plan, SortKey};
use nacre_types::{DataType, Error, Result, Value};
use sqlparser::ast::{self, SetExpr};
use std::sync::Arc;

impl<'a> Binder<'a> {
    /// Returns the plan of a common table expression, which is bound at its first use.
    pub(crate) fn cte(&mut self, at: usize) -> Result<Plan> {
        if let Some(plan) = self.itself(at)? {
            return Ok(plan);
        }
        let (cte, frames, recursive) =
            (self.ctes[at].cte, self.ctes[at].frames, self.ctes[at].recursive);
        if self.ctes[at].bound.is_none() {
            // The body sees the tables declared before it, all tables of its own WITH if that is
            // recursive, and the rows that enclose the WITH, not those that enclose the reference.
            let end = match recursive {
                Some(_) => self
                    .ctes
                    .iter()
                    .rposition(|c| c.recursive == recursive)
                    .map_or(at, |last| last + 1),
                None => at,
            };
            let hidden = self.ctes.split_off(end);
            let inner = self.frames.split_off(frames.min(self.frames.len()));
            let plan = if recursive.is_some() {
                let later = crate::bind::query::recursive::refuse_later(&mut self.ctes[at + 1..]);
                let plan = self.recursive_table(at);
                self.ctes[at..].iter_mut().for_each(|cte| cte.itself = Itself::Elsewhere);
                self.ctes[at + 1..]
                    .iter_mut()
                    .zip(later)
                    .for_each(|(cte, itself)| cte.itself = itself);
                plan
            } else {
                self.query(&cte.query)
            };
            self.ctes.truncate(end);
            self.ctes.extend(hidden);
            self.frames.extend(inner);
            let id = self.fresh();
            self.ctes[at].bound = Some((id, Arc::new(plan?)));
        }
        let (id, input) = match &self.ctes[at].bound {
            Some((id, plan)) => (*id, plan.clone()),
            None => return Err(unsupported("this form of WITH")),
        };
        match cte.materialized {
            Some(ast::CteAsMaterialized::NotMaterialized) if !plan_is_volatile(&input) => {
                Ok((*input).clone())
            }
            _ => Ok(Plan::Shared { id, input }),
        }
    }

    pub(crate) fn query(&mut self, query: &'a ast::Query) -> Result<Plan> {
        if !query.locks.is_empty() {
            return Err(unsupported("FOR UPDATE or FOR SHARE inside a statement"));
        }
        self.query_without_locks(query)
    }

    /// Binds a query and ignores its locking clauses, which the caller handles.
    pub(crate) fn query_without_locks(&mut self, query: &'a ast::Query) -> Result<Plan> {
        self.limits.count_query()?;
        let outer_tables = self.limits.enter_query()?;
        let plan = self.query_inner(query);
        self.limits.leave_query(outer_tables);
        plan
    }

    fn query_inner(&mut self, query: &'a ast::Query) -> Result<Plan> {
        if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
            return Err(unsupported("this clause of a query"));
        }
        if !query.pipe_operators.is_empty() {
            return Err(unsupported("the pipe operator"));
        }
        self.with(query.with.as_ref(), |b| {
            let plan = b.body(&query.body, query.order_by.as_ref())?;
            b.limit(plan, query)
        })
    }

    /// Runs `f` with the tables of a `WITH` in scope. Also binds the tables that `f` does not use,
    /// to report their errors.
    pub(crate) fn with<T>(
        &mut self,
        with: Option<&'a ast::With>,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = self.ctes.len();
        let result = with.map_or(Ok(()), |with| self.declare(with)).and_then(|()| f(self));
        let result = result.and_then(|value| {
            for at in outer..self.ctes.len() {
                if self.ctes[at].bound.is_none() {
                    self.common_table(at)?;
                }
            }
            Ok(value)
        });
        self.ctes.truncate(outer);
        result
    }

    fn declare(&mut self, with: &'a ast::With) -> Result<()> {
        crate::bind::query::recursive::check_names(&with.cte_tables)?;
        let recursive = with.recursive.then(|| self.fresh());
        for cte in &with.cte_tables {
            let frames = self.frames.len();
            self.ctes.push(Cte { cte, frames, bound: None, recursive, itself: Itself::Elsewhere });
        }
        Ok(())
    }

    pub(crate) fn body(
        &mut self,
        body: &'a SetExpr,
        order: Option<&'a ast::OrderBy>,
    ) -> Result<Plan> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::Query(query) => {
                let plan = self.query(query)?;
                self.order_output(plan, order)
            }
            SetExpr::Values(values) => {
                let plan = self.values(values)?;
                self.order_output(plan, order)
            }
            SetExpr::SetOperation { .. } => {
                let plan = self.set_operation(body)?;
                self.order_output(plan, order)
            }
            // The parser drops the token after the name.
            SetExpr::Table(_) => Err(unsupported("TABLE here")),
            _ => Err(unsupported("a data-modifying statement as a query")),
        }
    }

    /// Binds `VALUES` as a query and unifies the type of each column.
    fn values(&mut self, values: &'a ast::Values) -> Result<Plan> {
        let scope = Scope::default();
        let mut env = Env::new(&scope, "VALUES");
        let width = values.rows.first().map_or(0, |r| r.content.len());
        let mut columns: Vec<Vec<Expr>> =
            (0..width).map(|_| Vec::with_capacity(values.rows.len())).collect();
        for row in &values.rows {
            if row.content.len() != width {
                let message = format!(
                    "VALUES rows have different lengths: {width} and {}",
                    row.content.len()
                );
                return Err(Error::syntax(message).at(row.content.first().and_then(place)));
            }
            for (ast, column) in row.content.iter().zip(&mut columns) {
                column.push(self.expr(ast, &mut env)?);
            }
        }
        let mut fields = Vec::with_capacity(width);
        let mut rows: Vec<Vec<Expr>> =
            values.rows.iter().map(|_| Vec::with_capacity(width)).collect();
        for (at, column) in columns.into_iter().enumerate() {
            let (column, data_type) = self.unify_all(column, "VALUES")?;
            let nullable = column.iter().any(|e| crate::analysis::nullable::nullable(e, &|_| true));
            fields.push(Field { name: format!("column{}", at + 1), data_type, nullable });
            for (row, expr) in rows.iter_mut().zip(column) {
                row.push(expr);
            }
        }
        Ok(Plan::Values { fields, rows })
    }

    /// Binds an `ORDER BY` that may use output columns only.
    fn order_output(&mut self, plan: Plan, order: Option<&'a ast::OrderBy>) -> Result<Plan> {
        let Some(order) = order else { return Ok(plan) };
        let fields = plan.fields();
        let scope = Scope::of("", &fields);
        let mut keys = Vec::new();
        if let Some(options) = order_by_all(order) {
            for (at, field) in fields.iter().enumerate() {
                keys.push(key_with(Expr::column(at, field.data_type), options)?);
            }
            return Ok(Plan::Sort { input: Box::new(plan), keys, limit: None });
        }
        for item in order_items(order)? {
            let mut env = Env::new(&scope, "ORDER BY");
            let expr = match output_position(&item.expr, fields.len(), "ORDER BY")? {
                Some(at) => Expr::column(at, fields[at].data_type),
                None => self.typed(&item.expr, &mut env)?,
            };
            keys.push(sort_key(expr, item)?);
        }
        Ok(volatile_keys::sorted(plan, keys))
    }

    pub(crate) fn limit(&mut self, plan: Plan, query: &'a ast::Query) -> Result<Plan> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset { limit: l, offset: o, limit_by }) => {
                if !limit_by.is_empty() {
                    return Err(unsupported("LIMIT BY"));
                }
                limit = l.as_ref();
                offset = o.as_ref().map(|o| &o.value);
            }
            Some(ast::LimitClause::OffsetCommaLimit { offset: o, limit: l }) => {
                limit = Some(l);
                offset = Some(o);
            }
        }
        let one = Expr::literal(Value::Int(1), DataType::Int64);
        let mut limit = limit.map(|e| self.row_count(e, "LIMIT")).transpose()?.flatten();
        if let Some(fetch) = &query.fetch {
            if limit.is_some() {
                return Err(Error::syntax("a query has either LIMIT or FETCH"));
            }
            if fetch.with_ties || fetch.percent {
                return Err(unsupported("FETCH WITH TIES or PERCENT"));
            }
            limit = match &fetch.quantity {
                Some(e) => self.row_count(e, "FETCH")?,
                None => Some(one),
            };
        }
        let offset = offset.map(|e| self.row_count(e, "OFFSET")).transpose()?.flatten();
        if limit.is_none() && offset.is_none() {
            return Ok(plan);
        }
        Ok(Plan::Limit { input: Box::new(plan), offset, limit })
    }

    /// Binds the literal or parameter of `LIMIT`, `OFFSET` or `FETCH`. Returns `None`, no limit,
    /// for `NULL` and `ALL`.
    pub(crate) fn row_count(&mut self, ast: &'a ast::Expr, what: &str) -> Result<Option<Expr>> {
        if matches!(ast, ast::Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("all"))
        {
            return Ok(None);
        }
        let scope = Scope::default();
        let expr = self.expr(ast, &mut Env::new(&scope, "LIMIT"))?;
        let expr = self.decide(expr, DataType::Int64);
        let expr = match expr.kind {
            ExprKind::Literal(Value::Null) => return Ok(None),
            ExprKind::Literal(Value::Int(_)) => cast(expr, DataType::Int64)?,
            ExprKind::Parameter(_) => expr,
            _ => {
                return Err(Error::type_error(format!(
                    "{what} takes a whole number or a parameter"
                ))
                .at(place(ast)));
            }
        };
        match expr.kind {
            ExprKind::Literal(Value::Int(v)) if v < 0 => {
                Err(Error::type_error(format!("{what} must not be negative"))
                    .with_sqlstate("2201W")
                    .at(place(ast)))
            }
            _ => Ok(Some(expr)),
        }
    }
}

/// Returns the items of `ORDER BY`.
pub(crate) fn order_items(order: &ast::OrderBy) -> Result<&[ast::OrderByExpr]> {
    match &order.kind {
        ast::OrderByKind::Expressions(items) if order.interpolate.is_none() => Ok(items),
        _ => Err(unsupported("ORDER BY ALL")),
    }
}

/// Returns the options of `ORDER BY ALL`, which sorts by all outputs, from left to right.
pub(crate) fn order_by_all(order: &ast::OrderBy) -> Option<&ast::OrderByOptions> {
    match &order.kind {
        ast::OrderByKind::All(options) => Some(options),
        ast::OrderByKind::Expressions(_) => None,
    }
}

/// Returns the zero-based position if the expression is an integer, such as the `2` of `ORDER BY
/// 2`.
pub(crate) fn output_position(
    expr: &ast::Expr,
    width: usize,
    clause: &str,
) -> Result<Option<usize>> {
    let ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(text, _), span }) = expr
    else {
        return Ok(None);
    };
    match text.parse::<usize>() {
        Ok(n) if n >= 1 && n <= width => Ok(Some(n - 1)),
        _ => {
            let message = format!("{clause} position {text} is not between 1 and {width}");
            Err(Error::type_error(message).with_sqlstate("42P10").at(position(span.start)))
        }
    }
}

/// Builds a sort key. Without `NULLS FIRST` or `NULLS LAST`, null sorts as the smallest value.
pub(crate) fn sort_key(expr: Expr, item: &ast::OrderByExpr) -> Result<SortKey> {
    key_with(expr, &item.options)
}

/// Builds a sort key from its options.
pub(crate) fn key_with(expr: Expr, options: &ast::OrderByOptions) -> Result<SortKey> {
    let descending = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(_) => return Err(unsupported("ORDER BY … USING")),
    };
    Ok(SortKey { expr, descending, nulls_first: options.nulls_first.unwrap_or(!descending) })
}
