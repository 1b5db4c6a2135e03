//! `CREATE TABLE … AS`: creates the table and its rows in one commit of the store, or in the open
//! transaction.

use super::insert::{self, Insert};
use super::load;
use super::row_types::in_table_types;
use crate::execution::{Execution, InsertPath};
use crate::result::{ResultKind, StatementResult};
use nacre_exec::build;
use nacre_operator::tables_of;
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

/// Creates the table with the rows of `source`. Outside an open transaction, the statement's own is
/// only read from.
pub(crate) async fn run(
    transaction: &mut Transaction,
    schema: &TableSchema,
    exists: Exists,
    source: &Plan,
    execution: &Execution<'_>,
) -> Result<StatementResult> {
    let replaced = transaction.table(&schema.name).filter(|_| exists == Exists::Replace);
    if replaced.is_some_and(|table| table.schema().has_references()) {
        let what = "CREATE OR REPLACE TABLE … AS of a table with foreign keys";
        return Err(Error::unsupported(what).with_hint("drop it first"));
    }
    if execution.insert_path() == InsertPath::Open || schema.is_temporary() {
        return in_transaction(transaction, schema, exists, source, execution).await;
    }
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
    let mut operator = waits.call(|| build(source, &context)).await?;
    while let Some(batch) = waits.next(&mut *operator, &context).await? {
        execution.steps(|| load.write(false)).await?;
        load.append(&in_table_types(&batch.compact(), schema))?;
    }
    drop(operator);
    match load::finish(&mut load, execution).await {
        Err(error) if exists(&error) => unchanged(),
        rows => rows.map(StatementResult::written),
    }
}

async fn in_transaction(
    transaction: &mut Transaction,
    schema: &TableSchema,
    exists: Exists,
    source: &Plan,
    execution: &Execution<'_>,
) -> Result<StatementResult> {
    // The query may read the table that is replaced.
    let tables = tables_of(source, transaction)?;
    let table = match transaction.create_table(schema.clone(), exists == Exists::Replace) {
        Err(error) if exists == Exists::Keep && error.kind() == ErrorKind::AlreadyExists => {
            return Ok(StatementResult::new(ResultKind::Ddl));
        }
        table => table?,
    };
    let execution = execution.keeping(&tables);
    let insert = Insert { table: table.schema(), source, conflicts: None };
    let rows = insert::run(transaction, insert, &execution, None).await?;
    Ok(StatementResult::written(rows))
}
