//! `CREATE TABLE … AS`: creates the table and its rows in one commit of the store.

use super::row_types::in_table_types;
use crate::execution::Execution;
use crate::result::{ResultKind, StatementResult};
use nacre_exec::build;
use nacre_sql::Plan;
use nacre_table::Transaction;
use nacre_types::{Error, ErrorKind, Result, TableSchema};

/// What happens to a table that has the name.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Exists {
    /// The statement fails.
    Fail,
    /// It stays, and no other is created.
    Keep,
    /// It is dropped in the same commit.
    Replace,
}

/// Creates the table with the rows of `source`. The transaction is only read from.
pub(crate) async fn run(
    transaction: &Transaction,
    schema: &TableSchema,
    exists: Exists,
    source: &Plan,
    execution: &Execution<'_>,
) -> Result<StatementResult> {
    let replaces = exists == Exists::Replace;
    let exists = |error: &Error| exists == Exists::Keep && error.kind() == ErrorKind::AlreadyExists;
    let unchanged =
        || execution.store().settle_catalog().map(|()| StatementResult::new(ResultKind::Ddl));
    let mut load = match execution.store().bulk_create(schema.clone(), replaces) {
        Err(error) if exists(&error) => return unchanged(),
        load => load?,
    };
    let context = execution.context(transaction);
    let mut waits = execution.waits();
    let mut operator = waits.build(|| build(source, &context))?;
    while let Some(batch) = waits.next(&mut *operator, &context).await? {
        load.append(&in_table_types(&batch.compact(), schema))?;
    }
    drop(operator);
    match load.finish() {
        Err(error) if exists(&error) => unchanged(),
        rows => rows.map(StatementResult::written),
    }
}
