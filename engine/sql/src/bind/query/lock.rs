//! `SELECT … FOR UPDATE`: finds the rows that a query locks.
//!
//! A plan of its own finds the rows to lock: the query's `WHERE` over whole rows, located like
//! those of an `UPDATE`. The query must therefore read one plain table, and each output row must
//! stand for one row: no grouping. With a limit, or if locked rows are skipped, the query reads the rows
//! that were found, and says which row each of its rows is.

use crate::bind::binder::Binder;
use crate::bind::names::{table_name, unsupported};
use crate::expr::Expr;
use crate::plan::{Field, IfLocked, LockedRows, Plan, RowStatement, Statement};
use nacre_types::{DataType, Error, Result};
use sqlparser::ast;

impl<'a> Binder<'a> {
    pub(crate) fn locking_query(&mut self, query: &'a ast::Query) -> Result<Statement> {
        if let Some(feature) = unsupported_lock(query) {
            return Err(unsupported(feature));
        }
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return Err(unsupported("FOR UPDATE on anything but a plain SELECT"));
        };
        let relation = match select.from.as_slice() {
            [from] if from.joins.is_empty() => &from.relation,
            [] => return Err(unsupported("FOR UPDATE without a table")),
            _ => return Err(unsupported("FOR UPDATE on a join")),
        };
        match relation {
            ast::TableFactor::Table { args: None, .. } => {}
            _ => return Err(unsupported("FOR UPDATE on anything but a table")),
        }
        let output = self.query_without_locks(query)?;
        if groups(&output) {
            return Err(unsupported("FOR UPDATE with DISTINCT, GROUP BY or aggregates"));
        }
        let (table, scope, input) = self.target(relation)?;
        check_named(query, &scope.columns[0].table)?;
        let input = self.filtered(input, &scope, select.selection.as_ref())?;
        let if_locked = if_locked(query)?;
        let rows = match if_locked == IfLocked::Skip || matches!(output, Plan::Limit { .. }) {
            true => first(output, self.fresh())?,
            false => LockedRows::All(output),
        };
        Ok(RowStatement::Lock { table, input, rows, if_locked }.into())
    }
}

fn unsupported_lock(query: &ast::Query) -> Option<&'static str> {
    let is_share = |lock: &ast::LockClause| lock.lock_type == ast::LockType::Share;
    if query.locks.iter().any(is_share) {
        return Some("FOR SHARE");
    }
    query.with.is_some().then_some("FOR UPDATE with WITH")
}

/// What is done about locked rows, by clauses that agree.
fn if_locked(query: &ast::Query) -> Result<IfLocked> {
    let mut all = query.locks.iter().map(|lock| match lock.nonblock {
        None => IfLocked::Wait,
        Some(ast::NonBlock::Nowait) => IfLocked::Fail,
        Some(ast::NonBlock::SkipLocked) => IfLocked::Skip,
    });
    let first = all.next().unwrap_or(IfLocked::Wait);
    match all.all(|other| other == first) {
        true => Ok(first),
        false => Err(unsupported("FOR UPDATE twice, and not alike,")),
    }
}

/// Checks that what `OF` names is the table that the query shows.
fn check_named(query: &ast::Query, shown: &str) -> Result<()> {
    for name in query.locks.iter().filter_map(|lock| lock.of.as_ref()) {
        let (named, at) = table_name(name)?;
        if !named.eq_ignore_ascii_case(shown) {
            let message = format!("FOR UPDATE OF names `{named}`, and FROM has `{shown}`");
            return Err(Error::not_found(message).with_sqlstate("42P01").at(at));
        }
    }
    Ok(())
}

/// Whether an output row may stand for several input rows.
fn groups(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { .. } => true,
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Limit { input, .. } => groups(input),
        // Window functions and set operations look at other rows, `DISTINCT ON` passes one row for several.
        Plan::Node(_) => true,
        _ => false,
    }
}

/// The first rows of a query over the rows `id`.
fn first(query: Plan, id: u32) -> Result<LockedRows> {
    let fields = query.fields();
    let (query, offset, limit) = match query {
        Plan::Limit { input, offset, limit } => (*input, offset, limit),
        query => (query, None, None),
    };
    let (plan, row) = carried(query, id)?;
    let mut exprs: Vec<Expr> =
        fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type)).collect();
    let mut all = fields.clone();
    add_row(&mut exprs, &mut all, row);
    let plan = Plan::Project { input: Box::new(plan), exprs, fields: all };
    Ok(LockedRows::First { rows: id, plan, fields, offset, limit })
}

/// Makes a query read the rows `id`, and carry the number of each. Returns which of its columns that is.
fn carried(plan: Plan, id: u32) -> Result<(Plan, usize)> {
    let below = |input: Box<Plan>| carried(*input, id).map(|(input, row)| (Box::new(input), row));
    match plan {
        Plan::Scan { ref table, ref projection, .. }
            if projection.iter().copied().eq(0..table.columns.len()) =>
        {
            let mut fields = plan.fields();
            let row = fields.len();
            add_row(&mut Vec::new(), &mut fields, row);
            Ok((Plan::Given { id, fields }, row))
        }
        // The rows that are given have passed.
        Plan::Filter { input, .. } if matches!(*input, Plan::Scan { .. }) => carried(*input, id),
        Plan::Filter { input, predicate } => {
            let (input, row) = below(input)?;
            Ok((Plan::Filter { input, predicate }, row))
        }
        Plan::Sort { input, keys, limit } => {
            let (input, row) = below(input)?;
            Ok((Plan::Sort { input, keys, limit }, row))
        }
        Plan::Project { input, mut exprs, mut fields } => {
            let (input, row) = below(input)?;
            let carried = exprs.len();
            add_row(&mut exprs, &mut fields, row);
            Ok((Plan::Project { input, exprs, fields }, carried))
        }
        _ => Err(unsupported("FOR UPDATE with LIMIT or SKIP LOCKED on this query")),
    }
}

/// Adds the number of the row, which is a column of the input.
fn add_row(exprs: &mut Vec<Expr>, fields: &mut Vec<Field>, row: usize) {
    exprs.push(Expr::column(row, DataType::Int64));
    fields.push(Field { name: "row".into(), data_type: DataType::Int64, nullable: false });
}
