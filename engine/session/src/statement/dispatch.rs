//! Runs a bound statement's plans inside a transaction.
//!
//! A statement that reads what it writes sees rows as of its start: it collects everything it reads
//! before the first write.

use super::create_table_as::{self, Exists};
use super::held::HeldRows;
use super::lock;
use super::plan::query;
use super::profile;
use super::returning;
use super::write;
use crate::execution::Execution;
use crate::result::{ResultKind, StatementResult};
use nacre_column::{Batch, Vector};
use nacre_sql::{Output, RowStatement, Statement, explain};
use nacre_table::Transaction;
use nacre_types::{DataType, Result, Value};
use std::sync::Arc;

/// Runs the statement.
pub(crate) async fn run(
    transaction: &mut Transaction,
    statement: &RowStatement,
    execution: &Execution<'_>,
) -> Result<StatementResult> {
    match statement {
        RowStatement::Query(plan) => {
            query(plan, &execution.context(transaction), execution.waits()).await
        }
        RowStatement::Lock { table, input, rows, if_locked } => {
            lock::run(transaction, (table, input), rows, *if_locked, execution).await
        }
        RowStatement::Write(write) => {
            write::run(transaction, write, execution, None).await.map(StatementResult::written)
        }
        RowStatement::Returning { write, exprs, fields } => {
            let mut rows = HeldRows::default();
            let rows_affected = write::run(transaction, write, execution, Some(&mut rows)).await?;
            let batches = returning::project(&rows, exprs, &execution.context(transaction))?;
            let columns = fields.clone();
            let result = StatementResult::new(ResultKind::Query);
            Ok(StatementResult { columns, batches, rows_affected, ..result })
        }
        RowStatement::CreateTableAs { schema, replace, if_not_exists, source } => {
            let exists = if *if_not_exists { Exists::Keep } else { Exists::Fail };
            let exists = if *replace { Exists::Replace } else { exists };
            create_table_as::run(transaction, schema, exists, source, execution).await
        }
        RowStatement::Explain(inner) => Ok(explained(inner)),
        RowStatement::Profile(inner) => {
            let store = execution.store();
            let run = async |execution: &Execution<'_>| {
                Box::pin(run(transaction, inner, execution)).await
            };
            profile::run(store, inner, execution, run).await
        }
    }
}

fn explained(statement: &Statement) -> StatementResult {
    let lines: Vec<Value> = explain(statement).into_iter().map(Value::Text).collect();
    let column = Arc::new(Vector::from_values(DataType::TEXT, &lines));
    let batches = vec![Batch::new(vec![column], lines.len())];
    let columns = Output::Explanation.fields();
    StatementResult { columns, batches, ..StatementResult::new(ResultKind::Query) }
}
