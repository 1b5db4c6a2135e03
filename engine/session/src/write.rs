//! Statements that write rows: what they read is collected before the first write.

use crate::result::{ResultKind, StatementResult};
use crate::session::Connection;
use crate::statement::{Settings, collect, locate};
use crate::upsert;
use nacre_column::{Batch, Values, Vector};
use nacre_exec::{Context, Reservation, SuppliedRows, build, evaluate};
use nacre_sql::{Expr, Field, Plan, Statement};
use nacre_table::{OnDuplicate, RowLocator, Table, Transaction};
use nacre_types::{DataType, Error, ErrorKind, Result, TableSchema, Value};
use std::sync::Arc;

/// Rows of one statement that are moved out of segments in one commit, about.
const MOVED_TOGETHER: usize = 1 << 16;
/// An `INSERT` of its own transaction that has so many rows writes segments, not the rowstore.
const DIRECT_ROWS: usize = 1 << 16;

/// Rows a statement is to answer: as they were written, or deleted, and what else `RETURNING` sees of each.
pub(crate) type Returned = Vec<Batch>;

/// Runs a statement that writes; answers how many rows, and with `returned` which.
pub(crate) fn run(
    transaction: &mut Transaction,
    statement: &Statement,
    settings: &Settings<'_>,
    returned: Option<&mut Returned>,
) -> Result<u64> {
    match statement {
        Statement::Insert { table, source } => {
            insert(transaction, table, source, settings, returned)
        }
        Statement::Upsert { table, source, keys, on_duplicate } => {
            let batches = collect(source, &Connection::context(transaction, settings))?;
            let batches: Vec<Batch> =
                batches.iter().map(|batch| in_table_types(batch, table)).collect();
            let mut rows = Vec::new();
            let wanted = returned.is_some().then_some(&mut rows);
            let mut proposed = batches.iter().flat_map(|batch| {
                (0..batch.rows).map(|row| Ok(batch.columns.iter().map(|c| c.value(row)).collect()))
            });
            let affected = upsert::run(
                transaction,
                table,
                &mut proposed,
                (keys, on_duplicate),
                settings,
                wanted,
            )?;
            if let Some(returned) = returned {
                returned.extend(in_batches(table, &rows));
            }
            Ok(affected)
        }
        Statement::Update { table, input, assignments } => {
            let context = Connection::context(transaction, settings);
            let mut changes = Vec::new();
            for (batch, locators) in locate(input, &context)? {
                let mut columns = batch.columns.clone();
                for (position, expr) in assignments {
                    columns[*position] = Arc::new(evaluate(expr, &batch, &context)?);
                }
                let rows = batch.rows;
                changes.push((in_table_types(&Batch::new(columns, rows), table), locators));
            }
            if let Some(returned) = returned {
                returned.extend(changes.iter().map(|(batch, _)| batch.clone()));
            }
            update(transaction, table, &changes, assignments.iter().map(|(at, _)| *at))
        }
        Statement::Delete { table, input } => {
            let found = locate(input, &Connection::context(transaction, settings))?;
            if let Some(returned) = returned {
                returned.extend(found.iter().map(|(batch, _)| batch.clone()));
            }
            delete(transaction, table, &found)
        }
        Statement::Change { table, target, rows, matches, columns } => {
            let context = Connection::context(transaction, settings);
            let found = locate(target, &context)?;
            let matched = matches_of(&found, *rows, matches, &context)?;
            let change = Change { table, columns: columns.as_deref(), fields: &matches.fields() };
            let changes = change.rows(&found, &matched, returned);
            match columns {
                Some(columns) => update(transaction, table, &changes, columns.iter().copied()),
                None => delete(transaction, table, &changes),
            }
        }
        _ => Err(Error::unsupported("RETURNING of this statement")),
    }
}

/// Few rows go into the rowstore, under locks; many go straight into segments, which is a bulk load with its rules.
fn insert(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    source: &Plan,
    settings: &Settings<'_>,
    returned: Option<&mut Returned>,
) -> Result<u64> {
    let direct = settings.direct && returned.is_none();
    let target = transaction.table_of(table)?;
    let context = Connection::context(transaction, settings);
    let mut operator = build(source, &context)?;
    let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0usize);
    let mut held = Reservation::default();
    let mut load = None;
    loop {
        let batch = match operator.next(&context)? {
            Some(batch) => in_table_types(&batch.compact(), table),
            None => break,
        };
        rows += batch.rows;
        bytes += batch.memory_bytes(batches.last());
        batches.push(batch);
        if direct && rows >= DIRECT_ROWS {
            let begin = || transaction.store().bulk_load(&target, OnDuplicate::Error);
            let load = load.get_or_insert_with(begin);
            batches.drain(..).try_for_each(|batch| load.append(&batch))?;
            bytes = 0;
        }
        context.reserve(&mut held, "the statement's rows", bytes)?;
    }
    drop(operator);
    if let Some(load) = load {
        return load.finish();
    }
    let mut affected = 0;
    for batch in &batches {
        affected += transaction.insert(&target, batch)?;
    }
    if let Some(returned) = returned {
        *returned = batches;
    }
    Ok(affected)
}

/// The table and its rows, in one commit of the store: the transaction only reads.
pub(crate) fn create_table_as(
    transaction: &Transaction,
    schema: &TableSchema,
    if_not_exists: bool,
    source: &Plan,
    settings: &Settings<'_>,
) -> Result<StatementResult> {
    let is_there = |error: &Error| if_not_exists && error.kind() == ErrorKind::AlreadyExists;
    let nothing =
        || transaction.store().settle_catalog().map(|()| StatementResult::new(ResultKind::Ddl));
    let mut load = match transaction.store().bulk_create(schema.clone()) {
        Err(error) if is_there(&error) => return nothing(),
        load => load?,
    };
    let context = Connection::context(transaction, settings);
    let mut operator = build(source, &context)?;
    loop {
        match operator.next(&context)? {
            Some(batch) => load.append(&in_table_types(&batch.compact(), schema))?,
            None => break,
        }
    }
    drop(operator);
    match load.finish() {
        Err(error) if is_there(&error) => nothing(),
        rows => rows.map(crate::statement::written),
    }
}

/// Vectors under the table's own column types: a text column's limit, say, is not part of an expression's type.
fn in_table_types(batch: &Batch, table: &TableSchema) -> Batch {
    let columns = batch.columns.iter().zip(&table.columns);
    let columns = columns
        .map(|(vector, column)| {
            let same = vector.data_type() == column.data_type;
            let fits = vector.data_type().physical() == column.data_type.physical();
            if same || !fits {
                vector.clone()
            } else {
                Arc::new((**vector).clone().with_type(column.data_type))
            }
        })
        .collect();
    Batch { columns, rows: batch.rows, selection: batch.selection.clone() }
}

/// Rows of values as batches.
fn in_batches(table: &TableSchema, rows: &[Vec<Value>]) -> Vec<Batch> {
    let batch = |rows: &[Vec<Value>]| {
        let vector = |(at, t): (usize, DataType)| {
            Arc::new(Vector::from_values(t, rows.iter().map(|row| &row[at])))
        };
        Batch::new(table.types().into_iter().enumerate().map(vector).collect(), rows.len())
    };
    rows.chunks(nacre_types::limits::VECTOR_ROWS).map(batch).collect()
}

/// Locks the rows of several batches at once, so that those in segments are moved in few commits.
fn lock_together(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    batches: &[(Batch, Vec<RowLocator>)],
) -> Result<()> {
    if batches.len() < 2 {
        return Ok(());
    }
    let mut together: Vec<RowLocator> = Vec::new();
    for (at, (_, locators)) in batches.iter().enumerate() {
        together.extend_from_slice(locators);
        if together.len() >= MOVED_TOGETHER || at + 1 == batches.len() {
            transaction.lock(table, &together)?;
            together.clear();
        }
    }
    Ok(())
}

/// Puts new rows in the place of old ones.
fn update(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    changes: &[(Batch, Vec<RowLocator>)],
    columns: impl Iterator<Item = usize>,
) -> Result<u64> {
    let target = transaction.table_of(table)?;
    lock_together(transaction, &target, changes)?;
    let key = table.primary_key.as_ref();
    let columns: Vec<usize> = columns.collect();
    let rekeys =
        key.is_some_and(|key| columns.iter().any(|position| key.columns.contains(position)));
    // The same goes for unique values; inside one batch storage sees to it.
    let is_written =
        |id: &u32| table.column_position(*id).is_some_and(|position| columns.contains(&position));
    let repeats =
        table.indexes.iter().any(|index| index.unique && index.columns.iter().any(is_written));
    let rekeys = rekeys || (repeats && changes.len() > 1);
    let mut affected = 0;
    if rekeys {
        // Every old key goes before the first new one comes, so that `set id = id + 1` works.
        for (_, locators) in changes {
            transaction.delete(&target, locators)?;
        }
        for (rows, _) in changes {
            affected += transaction.insert(&target, rows)?;
        }
    } else {
        for (rows, locators) in changes {
            affected += transaction.update(&target, locators, rows)?;
        }
    }
    Ok(affected)
}

fn delete(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    rows: &[(Batch, Vec<RowLocator>)],
) -> Result<u64> {
    let target = transaction.table_of(table)?;
    lock_together(transaction, &target, rows)?;
    let mut affected = 0;
    for (_, locators) in rows {
        affected += transaction.delete(&target, locators)?;
    }
    Ok(affected)
}

/// The rows of `matches`, which is given the rows found, numbered from zero.
fn matches_of(
    found: &[(Batch, Vec<RowLocator>)],
    id: u32,
    matches: &Plan,
    context: &Context<'_>,
) -> Result<Vec<Batch>> {
    let mut batches = Vec::with_capacity(found.len());
    let (mut next, mut bytes) = (0i64, 0);
    for (batch, locators) in found {
        let rows = batch.rows as i64;
        let numbers = Values::I64((next..next + rows).collect());
        next += rows;
        let mut columns = batch.columns.clone();
        bytes += columns.iter().map(|c| c.memory_bytes()).sum::<usize>() + locators.len() * 32;
        columns.push(Arc::new(Vector::new(DataType::Int64, numbers, None)));
        batches.push(Batch::new(columns, batch.rows));
    }
    let mut held = Reservation::default();
    context.reserve(&mut held, "the statement's rows", bytes)?;
    let given = SuppliedRows { id, batches: &batches, others: None };
    let mut inner = *context;
    inner.supplied = Some(&given);
    collect(matches, &inner)
}

/// From matches to the rows that change.
struct Change<'a> {
    table: &'a TableSchema,
    /// Columns with new values; none for a deletion.
    columns: Option<&'a [usize]>,
    /// Of a match.
    fields: &'a [Field],
}

impl Change<'_> {
    /// The rows as they will be, or as they are before they go; each once, as its first match says.
    fn rows(
        &self,
        found: &[(Batch, Vec<RowLocator>)],
        matched: &[Batch],
        mut returned: Option<&mut Returned>,
    ) -> Vec<(Batch, Vec<RowLocator>)> {
        // The number of a row, and the match that it was first in.
        let mut picks: Vec<(usize, usize, usize)> = Vec::new();
        for (at, batch) in matched.iter().enumerate() {
            for row in 0..batch.rows {
                if let Some(Value::Int(number)) = batch.columns.first().map(|c| c.value(row)) {
                    picks.push((number as usize, at, row));
                }
            }
        }
        picks.sort_by_key(|pick| pick.0);
        picks.dedup_by_key(|pick| pick.0);
        let column = |picks: &[(usize, usize, usize)], at: usize, data_type: DataType| {
            let values: Vec<Value> = picks
                .iter()
                .map(|(_, batch, row)| matched[*batch].columns[at].value(*row))
                .collect();
            Arc::new(Vector::from_values(data_type, &values))
        };
        let mut changes = Vec::new();
        let mut start = 0;
        for (batch, locators) in found {
            let here = picks.partition_point(|pick| pick.0 < start)
                ..picks.partition_point(|pick| pick.0 < start + batch.rows);
            let picks = &picks[here];
            let rows: Vec<u32> = picks.iter().map(|pick| (pick.0 - start) as u32).collect();
            start += batch.rows;
            if picks.is_empty() {
                continue;
            }
            let locators = rows.iter().map(|row| locators[*row as usize].clone()).collect();
            let mut now = Batch { selection: Some(rows), ..batch.clone() }.compact();
            for (n, at) in self.columns.unwrap_or_default().iter().enumerate() {
                now.columns[*at] = column(picks, n + 1, self.table.columns[*at].data_type);
            }
            if let Some(returned) = &mut returned {
                let mut seen = now.clone();
                for (at, field) in
                    self.fields.iter().enumerate().skip(1 + self.columns.map_or(0, <[usize]>::len))
                {
                    seen.columns.push(column(picks, at, field.data_type));
                }
                returned.push(seen);
            }
            changes.push((now, locators));
        }
        changes
    }
}

/// What `RETURNING` makes of the rows.
pub(crate) fn project(
    rows: &Returned,
    exprs: &[Expr],
    context: &Context<'_>,
) -> Result<Vec<Batch>> {
    let project = |batch: &Batch| {
        let columns = exprs.iter().map(|e| Ok(Arc::new(evaluate(e, batch, context)?)));
        Ok(Batch::new(columns.collect::<Result<_>>()?, batch.rows))
    };
    rows.iter().filter(|batch| batch.rows > 0).map(project).collect()
}
