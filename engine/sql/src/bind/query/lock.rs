//! `SELECT … FOR UPDATE`: finds the rows that a query locks.
//!
//! A plan of its own finds the rows to lock: the query's `WHERE` over whole rows, located like
//! those of an `UPDATE`. The query must therefore read one plain table, and each output row must
//! stand for one row: no grouping.

use crate::bind::binder::Binder;
use crate::bind::names::unsupported;
use crate::plan::{Plan, RowStatement, Statement};
use nacre_types::Result;
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
            ast::TableFactor::Table { args: None, alias, .. } => {
                if alias.as_ref().is_some_and(|a| !a.columns.is_empty()) {
                    return Err(unsupported("FOR UPDATE on a table with renamed columns"));
                }
            }
            _ => return Err(unsupported("FOR UPDATE on anything but a table")),
        }
        let output = self.query_without_locks(query)?;
        if groups(&output) {
            return Err(unsupported("FOR UPDATE with DISTINCT, GROUP BY or aggregates"));
        }
        let (table, scope, input) = self.target(relation)?;
        let input = self.filtered(input, &scope, select.selection.as_ref())?;
        Ok(RowStatement::Lock { table, input, output }.into())
    }
}

fn unsupported_lock(query: &ast::Query) -> Option<&'static str> {
    for lock in &query.locks {
        let feature = match (&lock.lock_type, &lock.of, &lock.nonblock) {
            (ast::LockType::Share, ..) => "FOR SHARE",
            (_, Some(_), _) => "FOR UPDATE OF",
            (_, _, Some(ast::NonBlock::Nowait)) => "FOR UPDATE NOWAIT",
            (_, _, Some(ast::NonBlock::SkipLocked)) => "FOR UPDATE SKIP LOCKED",
            _ => continue,
        };
        return Some(feature);
    }
    query.with.is_some().then_some("FOR UPDATE with WITH")
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
