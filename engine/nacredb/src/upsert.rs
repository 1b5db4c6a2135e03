//! Inserts that say what becomes of a row whose primary key is taken.
//!
//! Rows go in chunks without a repeated key: what a chunk meets is looked up first, new values are computed for all of
//! its updates at once, then it is written. A later row of the same statement meets what an earlier one left.

use crate::session::Session;
use crate::statement::Settings;
use nacre_column::{Batch, Vector};
use nacre_exec::evaluate;
use nacre_sql::{Expr, OnDuplicateKey};
use nacre_table::{RowLocator, Table, Transaction};
use nacre_types::hash::Set;
use nacre_types::{DataType, Error, Result, TableSchema, Value, key};
use std::sync::Arc;

/// Rows looked up before they are written, at most.
const CHUNK_ROWS: usize = 2_048;

type Row = Vec<Value>;

/// Rows as they were written, if somebody wants them.
struct Written<'a> {
    rows: Option<&'a mut Vec<Row>>,
}

impl Written<'_> {
    fn add(&mut self, row: impl FnOnce() -> Row) {
        if let Some(rows) = &mut self.rows {
            rows.push(row());
        }
    }
}

/// A row to insert, and the one that has its key.
struct Proposed {
    new: Row,
    old: Option<(RowLocator, Row)>,
}

/// Writes the rows, given in table order and types, and answers how many were inserted or changed.
pub(crate) fn run(
    transaction: &mut Transaction,
    schema: &Arc<TableSchema>,
    batches: &[Batch],
    on_duplicate: &OnDuplicateKey,
    settings: &Settings<'_>,
    returned: Option<&mut Vec<Row>>,
) -> Result<u64> {
    let mut written = Written { rows: returned };
    let table = transaction.table_of(schema)?;
    let mut affected = 0;
    let Some(key_columns) = schema.primary_key.as_ref().map(|key| key.columns.as_slice()) else {
        // Nothing can be taken.
        for batch in batches {
            affected += transaction.insert(&table, batch)?;
            for row in 0..batch.rows {
                written.add(|| batch.columns.iter().map(|c| c.value(row)).collect());
            }
        }
        return Ok(affected);
    };
    let mut chunk: Vec<Proposed> = Vec::new();
    let mut keys: Set<Vec<u8>> = Set::default();
    let mut write = |transaction: &mut Transaction, chunk: &mut Vec<Proposed>| -> Result<()> {
        affected += write_chunk(transaction, &table, chunk, on_duplicate, settings, &mut written)?;
        chunk.clear();
        Ok(())
    };
    for batch in batches {
        for row in 0..batch.rows {
            let new: Row = batch.columns.iter().map(|c| c.value(row)).collect();
            schema.check_row(&new)?;
            let key: Row = key_columns.iter().map(|at| new[*at].clone()).collect();
            let mut encoded = Vec::new();
            for (value, at) in key.iter().zip(key_columns) {
                key::encode(&mut encoded, schema.columns[*at].data_type, value)?;
            }
            if chunk.len() == CHUNK_ROWS || keys.contains(&encoded) {
                write(transaction, &mut chunk)?;
                keys.clear();
                if (settings.cancelled)() {
                    return Err(Error::new(nacre_types::ErrorKind::Cancelled, "the statement was cancelled"));
                }
            }
            keys.insert(encoded);
            let old = transaction.locate(&table, &key)?;
            chunk.push(Proposed { new, old });
        }
    }
    write(transaction, &mut chunk)?;
    Ok(affected)
}

fn write_chunk(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    chunk: &mut Vec<Proposed>,
    on_duplicate: &OnDuplicateKey,
    settings: &Settings<'_>,
    written: &mut Written<'_>,
) -> Result<u64> {
    let mut affected = 0;
    let mut taken: Vec<(RowLocator, Row, Row)> = Vec::new();
    for proposed in chunk.drain(..) {
        match proposed.old {
            None => {
                transaction.insert_absent(table, &proposed.new)?;
                written.add(|| proposed.new);
                affected += 1;
            }
            Some((locator, old)) => taken.push((locator, old, proposed.new)),
        }
    }
    if taken.is_empty() {
        return Ok(affected);
    }
    match on_duplicate {
        OnDuplicateKey::Ignore => Ok(affected),
        OnDuplicateKey::Replace => {
            for (locator, _, new) in &taken {
                transaction.update_row(table, locator, new)?;
                written.add(|| new.clone());
            }
            Ok(affected + taken.len() as u64)
        }
        OnDuplicateKey::Update { assignments, filter } => {
            Ok(affected + update(transaction, table, &taken, assignments, filter.as_ref(), settings, written)?)
        }
    }
}

/// Changes the rows that were there.
fn update(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    taken: &[(RowLocator, Row, Row)],
    assignments: &[(usize, Expr)],
    filter: Option<&Expr>,
    settings: &Settings<'_>,
    written: &mut Written<'_>,
) -> Result<u64> {
    let schema = table.schema().clone();
    let mut chosen: Vec<usize> = (0..taken.len()).collect();
    if let Some(filter) = filter {
        let passed =
            evaluate(filter, &both(&schema.types(), taken, &chosen), &Session::context(transaction, settings))?;
        chosen.retain(|row| passed.value(*row) == Value::Boolean(true));
    }
    if chosen.is_empty() {
        return Ok(0);
    }
    let rows = both(&schema.types(), taken, &chosen);
    let context = Session::context(transaction, settings);
    let values = assignments.iter().map(|(at, expr)| Ok((*at, evaluate(expr, &rows, &context)?)));
    let values: Vec<(usize, Vector)> = values.collect::<Result<_>>()?;
    let is_key = |at: &usize| schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(at));
    let rekeys = assignments.iter().any(|(at, _)| is_key(at));
    let mut rekeyed = Vec::new();
    for (position, taken_row) in chosen.iter().enumerate() {
        let (locator, old, _) = &taken[*taken_row];
        let mut row = old.clone();
        for (at, vector) in &values {
            row[*at] = vector.value(position);
        }
        written.add(|| row.clone());
        if rekeys {
            // All old keys go before any new one comes.
            schema.check_row(&row)?;
            transaction.delete(table, std::slice::from_ref(locator))?;
            rekeyed.push(row);
        } else {
            transaction.update_row(table, locator, &row)?;
        }
    }
    for row in &rekeyed {
        transaction.insert_row(table, row)?;
    }
    Ok(chosen.len() as u64)
}

/// Old columns, then new columns, of some rows.
fn both(types: &[DataType], taken: &[(RowLocator, Row, Row)], chosen: &[usize]) -> Batch {
    let old = (types.iter().enumerate())
        .map(|(at, t)| Arc::new(Vector::from_values(*t, chosen.iter().map(|row| &taken[*row].1[at]))));
    let new = (types.iter().enumerate())
        .map(|(at, t)| Arc::new(Vector::from_values(*t, chosen.iter().map(|row| &taken[*row].2[at]))));
    Batch::new(old.chain(new).collect(), chosen.len())
}
