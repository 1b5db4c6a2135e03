//! Inserts that specify how to handle an existing row with the same unique key.
//!
//! Rows are written in chunks without duplicate keys: the existing rows of a chunk are looked up
//! first, the new values of all its updates are computed together, then the chunk is written. A
//! later row of the statement sees what an earlier one wrote. If only the primary key matters and
//! no update changes it, the storage locks a chunk's keys before looking them up
//! ([`by_primary_key`]).

use crate::execution::Execution;
use nacre_column::{Batch, Vector};
use nacre_operator::evaluate;
use nacre_sql::expr::ExprKind;
use nacre_sql::{Expr, OnDuplicateKey};
use nacre_table::{Rekeyed, RowKey, RowLocator, Table, Transaction};
use nacre_types::hash::Set;
use nacre_types::{DataType, ErrorKind, IndexId, Result, TableSchema, Value, key};
use std::sync::Arc;

/// Maximum rows of a chunk.
const CHUNK_ROWS: usize = 2_048;

type Row = Vec<Value>;

/// Collects written rows for `RETURNING`.
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

/// A row to insert, and the existing rows with one of its keys.
struct Proposed {
    new: Row,
    olds: Vec<(RowLocator, Row)>,
}

/// A unique key to check.
struct UniqueKey {
    /// Its index; `None` for the primary key.
    index: Option<IndexId>,
    columns: Vec<usize>,
}

impl UniqueKey {
    fn values(&self, table: &Table, row: &[Value]) -> Result<Row> {
        table.key_values(&self.columns, row)
    }

    /// The existing row with this key.
    fn locate(
        &self,
        transaction: &Transaction,
        table: &Arc<Table>,
        key: &[Value],
    ) -> Result<Option<(RowLocator, Row)>> {
        match self.index {
            None => transaction.locate(table, key),
            Some(index) => transaction.locate_unique(table, index, key),
        }
    }
}

/// The keys of a schema with these ids.
fn unique_keys(schema: &TableSchema, keys: &[Option<IndexId>]) -> Vec<UniqueKey> {
    let columns = |index: &Option<IndexId>| match index {
        None => schema.primary_key.as_ref().map(|key| key.columns.clone()),
        Some(id) => schema.index_by_id(*id).and_then(|index| schema.index_positions(index)),
    };
    keys.iter()
        .filter_map(|index| Some(UniqueKey { index: *index, columns: columns(index)? }))
        .collect()
}

/// Whether an update may change a unique key.
fn may_rekey(table: &Table, on_duplicate: &OnDuplicateKey) -> Result<bool> {
    let OnDuplicateKey::Update { assignments, .. } = on_duplicate else { return Ok(false) };
    let schema = table.schema();
    // Generated columns follow.
    let generated = (0..schema.columns.len()).filter(|at| schema.columns[*at].is_generated());
    let columns: Vec<usize> = assignments.iter().map(|(at, _)| *at).chain(generated).collect();
    let key = schema.primary_key.as_ref();
    Ok(key.is_some_and(|key| columns.iter().any(|at| key.columns.contains(at)))
        || table.may_change_unique(&columns)?)
}

/// The parameters of an upsert.
#[derive(Clone, Copy)]
pub(crate) struct Upsert<'a> {
    /// The target table.
    pub table: &'a Arc<TableSchema>,
    /// Unique keys to check: indexes, and `None` for the primary key.
    pub keys: &'a [Option<IndexId>],
    /// How to handle an existing row.
    pub on_duplicate: &'a OnDuplicateKey,
}

/// Writes rows given in table order and types. Returns how many were inserted or changed.
pub(crate) fn run(
    transaction: &mut Transaction,
    upsert: Upsert<'_>,
    rows: &mut dyn Iterator<Item = Result<Row>>,
    execution: &Execution<'_>,
    returned: Option<&mut Vec<Row>>,
) -> Result<u64> {
    let Upsert { table: schema, keys, on_duplicate } = upsert;
    let mut written = Written { rows: returned };
    let table = transaction.table_of(schema)?;
    let mut affected = 0;
    let unique = unique_keys(schema, keys);
    if unique.is_empty() {
        // No key can conflict.
        for row in rows {
            let row = row?;
            transaction.insert_row(&table, &row)?;
            affected += 1;
            written.add(|| row);
        }
        return Ok(affected);
    }
    let rekeys = may_rekey(&table, on_duplicate)?;
    if let (
        [UniqueKey { index: None, .. }],
        false,
        OnDuplicateKey::Update { .. } | OnDuplicateKey::Replace,
    ) = (&unique[..], rekeys, on_duplicate)
    {
        return by_primary_key(transaction, &table, rows, on_duplicate, execution, &mut written);
    }
    let chunk_rows = if rekeys { 1 } else { CHUNK_ROWS };
    let mut chunk: Vec<Proposed> = Vec::new();
    // Keys of the chunk's rows, and locators of the existing ones: each may occur only once per
    // chunk.
    let mut seen: Set<Vec<u8>> = Set::default();
    for new in rows {
        let new = new?;
        table.check_row(&new)?;
        let mut own = encoded_keys(&table, &unique, &new)?;
        let mut full = chunk.len() >= chunk_rows || own.iter().any(|key| seen.contains(key));
        let olds = loop {
            if full {
                affected += write_chunk(
                    transaction,
                    &table,
                    &unique,
                    &mut chunk,
                    on_duplicate,
                    execution,
                    &mut written,
                )?;
                seen.clear();
                execution.check_cancelled()?;
            }
            let olds = met(transaction, &table, &unique, &new)?;
            // With a single key, rows with different keys have different existing rows.
            if unique.len() > 1 {
                let places: Vec<Vec<u8>> = olds.iter().map(|(locator, _)| place(locator)).collect();
                full = places.iter().any(|place| seen.contains(place));
                if full {
                    continue;
                }
                own.extend(places);
            }
            break olds;
        };
        seen.extend(own);
        chunk.push(Proposed { new, olds });
    }
    Ok(affected
        + write_chunk(
            transaction,
            &table,
            &unique,
            &mut chunk,
            on_duplicate,
            execution,
            &mut written,
        )?)
}

/// The common case: rows are matched by primary key and keep it.
fn by_primary_key(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    rows: &mut dyn Iterator<Item = Result<Row>>,
    on_duplicate: &OnDuplicateKey,
    execution: &Execution<'_>,
    written: &mut Written<'_>,
) -> Result<u64> {
    let mut affected = 0;
    let (mut keys, mut news): (Vec<RowKey>, Vec<Row>) = Default::default();
    // A hash collision only makes the chunk smaller.
    let mut seen: Set<u64> = Set::default();
    let mut write = |keys: &mut Vec<RowKey>, news: &mut Vec<Row>| -> Result<()> {
        let decide = |transaction: &Transaction, olds: &[Option<Row>]| {
            let rows: Vec<Option<Row>> = match on_duplicate {
                OnDuplicateKey::Update { assignments, filter } => {
                    let taken: Vec<(&Row, &Row)> = olds
                        .iter()
                        .zip(&*news)
                        .filter_map(|(old, new)| Some((old.as_ref()?, new)))
                        .collect();
                    let mut changed = changed(
                        transaction,
                        table,
                        &taken,
                        assignments,
                        filter.as_ref(),
                        execution,
                    )?
                    .into_iter();
                    let news = olds.iter().zip(news.drain(..));
                    news.map(
                        |(old, new)| {
                            if old.is_none() { Some(new) } else { changed.next().flatten() }
                        },
                    )
                    .collect()
                }
                _ => news.drain(..).map(Some).collect(),
            };
            for row in rows.iter().flatten() {
                affected += 1;
                written.add(|| row.clone());
            }
            Ok(rows)
        };
        transaction.write_keys(table, keys, decide)?;
        keys.clear();
        Ok(())
    };
    for new in rows {
        let new = new?;
        let key = table.row_key(&new)?;
        if keys.len() >= CHUNK_ROWS || !seen.insert(key.hash()) {
            write(&mut keys, &mut news)?;
            execution.check_cancelled()?;
            seen.clear();
            seen.insert(key.hash());
        }
        keys.push(key);
        news.push(new);
    }
    write(&mut keys, &mut news)?;
    Ok(affected)
}

/// The unique keys of a row, encoded. A key with a null never conflicts and is omitted.
fn encoded_keys(table: &Table, unique: &[UniqueKey], row: &[Value]) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::with_capacity(unique.len());
    for (number, key) in unique.iter().enumerate() {
        let values = key.values(table, row)?;
        if values.iter().any(Value::is_null) {
            continue;
        }
        let mut encoded = vec![0, number as u8];
        for (at, value) in key.columns.iter().zip(&values) {
            key::append(&mut encoded, table.schema().key_column(*at).data_type, value)?;
        }
        keys.push(encoded);
    }
    Ok(keys)
}

/// The existing rows that have one of a new row's keys, each once, in key order.
fn met(
    transaction: &Transaction,
    table: &Arc<Table>,
    unique: &[UniqueKey],
    new: &[Value],
) -> Result<Vec<(RowLocator, Row)>> {
    let mut olds: Vec<(RowLocator, Row)> = Vec::new();
    for key in unique {
        if let Some((locator, old)) = key.locate(transaction, table, &key.values(table, new)?)?
            && olds.iter().all(|(known, _)| *known != locator)
        {
            olds.push((locator, old));
        }
    }
    Ok(olds)
}

/// A row's location, as bytes distinct from every encoded key.
fn place(locator: &RowLocator) -> Vec<u8> {
    let mut out = vec![1];
    match locator {
        RowLocator::Memory { partition, key } => {
            out.extend_from_slice(&partition.to_le_bytes());
            out.extend_from_slice(key);
        }
        RowLocator::Segment { partition, segment, row } => {
            out[0] = 2;
            out.extend_from_slice(&partition.to_le_bytes());
            out.extend_from_slice(&segment.to_le_bytes());
            out.extend_from_slice(&row.to_le_bytes());
        }
    }
    out
}

fn write_chunk(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    unique: &[UniqueKey],
    chunk: &mut Vec<Proposed>,
    on_duplicate: &OnDuplicateKey,
    execution: &Execution<'_>,
    written: &mut Written<'_>,
) -> Result<u64> {
    let mut affected = 0;
    let mut taken: Vec<(RowLocator, Row, Row)> = Vec::new();
    for Proposed { new, olds } in chunk.drain(..) {
        if matches!(on_duplicate, OnDuplicateKey::Replace) && !olds.is_empty() {
            replace(transaction, table, &olds, &new)?;
            written.add(|| new);
            affected += 1;
            continue;
        }
        // Update the row with the first conflicting key.
        match olds.into_iter().next() {
            Some((locator, old)) => taken.push((locator, old, new)),
            None => {
                insert(transaction, table, unique, &new)?;
                written.add(|| new);
                affected += 1;
            }
        }
    }
    match on_duplicate {
        OnDuplicateKey::Update { assignments, filter } if !taken.is_empty() => Ok(affected
            + update(
                transaction,
                table,
                &taken,
                assignments,
                filter.as_ref(),
                execution,
                written,
            )?),
        _ => Ok(affected),
    }
}

/// Inserts a row whose checked keys are free. A conflict on another key is a `constraint` error.
fn insert(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    unique: &[UniqueKey],
    new: &Row,
) -> Result<()> {
    let done = transaction.insert_absent(table, new);
    let counts = unique.iter().any(|key| key.index.is_none());
    match (&done, table.schema().primary_key.as_ref().filter(|_| !counts)) {
        (Err(error), Some(key)) if error.kind() == ErrorKind::Conflict => {
            let key: Row = key.columns.iter().map(|at| new[*at].clone()).collect();
            if transaction.locate(table, &key)?.is_some() {
                transaction.insert_row(table, new)
            } else {
                done
            }
        }
        _ => done,
    }
}

/// Replaces all existing rows that conflict with the new row.
fn replace(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    olds: &[(RowLocator, Row)],
    new: &Row,
) -> Result<()> {
    if let ([(locator, old)], Some(key)) = (olds, table.schema().primary_key.as_ref())
        && key.columns.iter().all(|at| old[*at] == new[*at])
    {
        return transaction.update_row(table, locator, new);
    }
    let locators: Vec<RowLocator> = olds.iter().map(|(locator, _)| locator.clone()).collect();
    transaction.delete(table, &locators)?;
    transaction.insert_absent(table, new)
}

/// Updates existing rows.
fn update(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    taken: &[(RowLocator, Row, Row)],
    assignments: &[(usize, Expr)],
    filter: Option<&Expr>,
    execution: &Execution<'_>,
    written: &mut Written<'_>,
) -> Result<u64> {
    let schema = table.schema().clone();
    let pairs: Vec<(&Row, &Row)> = taken.iter().map(|(_, old, new)| (old, new)).collect();
    let changed = changed(transaction, table, &pairs, assignments, filter, execution)?;
    let is_key =
        |at: &usize| schema.primary_key.as_ref().is_some_and(|key| key.columns.contains(at));
    let rekeys = assignments.iter().any(|(at, _)| is_key(at));
    let (mut locators, mut olds, mut news) = (Vec::new(), Vec::new(), Vec::new());
    for ((locator, old, _), row) in taken.iter().zip(changed) {
        let Some(row) = row else { continue };
        written.add(|| row.clone());
        locators.push(locator.clone());
        olds.push(old.as_slice());
        news.push(row);
    }
    let affected = news.len() as u64;
    note_rekeyed(transaction, table, &olds, &news);
    if rekeys {
        // Delete all old keys before inserting new ones.
        news.iter().try_for_each(|row| table.check_row(row))?;
        transaction.delete(table, &locators)?;
        news.iter().try_for_each(|row| transaction.insert_row(table, row))?;
    } else if !news.is_empty() {
        transaction.update_seen(table, &locators, &olds, news)?;
    }
    Ok(affected)
}

/// Notes rows that get other keys, if other rows may refer to those.
pub(crate) fn note_rekeyed(
    transaction: &mut Transaction,
    table: &Table,
    olds: &[&[Value]],
    news: &[Row],
) {
    if !table.schema().is_referred_to() {
        return;
    }
    let unique: Vec<usize> = table.schema().unique_sets(false).flatten().collect();
    let pairs = olds.iter().zip(news);
    let changed = pairs.filter(|(old, new)| unique.iter().any(|at| old[*at] != new[*at]));
    let rows: Vec<Rekeyed> =
        changed.map(|(old, new)| Rekeyed { old: old.to_vec(), new: new.clone() }).collect();
    if !rows.is_empty() {
        transaction.note_rekeyed(table, rows);
    }
}

/// Computes new values of existing rows, each paired with its proposed row; `None` for rows that
/// the filter leaves unchanged.
fn changed(
    transaction: &Transaction,
    table: &Table,
    taken: &[(&Row, &Row)],
    assignments: &[(usize, Expr)],
    filter: Option<&Expr>,
    execution: &Execution<'_>,
) -> Result<Vec<Option<Row>>> {
    let (schema, context) = (table.schema(), execution.context(transaction));
    let mut chosen: Vec<usize> = (0..taken.len()).collect();
    if let (Some(filter), false) = (filter, taken.is_empty()) {
        let passed = evaluate(filter, &both(&schema.types(), taken, &chosen), &context)?;
        chosen.retain(|row| passed.value(*row) == Value::Boolean(true));
    }
    let mut out = vec![None; taken.len()];
    if chosen.is_empty() {
        return Ok(out);
    }
    let mut batch = None;
    let mut values: Vec<(usize, Source)> = Vec::with_capacity(assignments.len());
    for (at, expr) in assignments {
        let source = match expr.kind {
            // Most assignments copy the proposed value.
            ExprKind::Column(from) if schema.columns[*at].data_type == expr.data_type => {
                Source::Column(from)
            }
            _ => {
                let rows = batch.get_or_insert_with(|| both(&schema.types(), taken, &chosen));
                Source::Vector(evaluate(expr, rows, &context)?)
            }
        };
        values.push((*at, source));
    }
    let width = schema.columns.len();
    for (position, taken_row) in chosen.into_iter().enumerate() {
        let (old, new) = taken[taken_row];
        let mut row = old.clone();
        for (at, source) in &values {
            row[*at] = match source {
                Source::Column(from) if *from < width => old[*from].clone(),
                Source::Column(from) => new[*from - width].clone(),
                Source::Vector(vector) => vector.value(position),
            };
        }
        out[taken_row] = Some(table.complete_row(row)?);
    }
    Ok(out)
}

/// The source of a new value.
enum Source {
    /// A column of the old row or, numbered after those, of the new row.
    Column(usize),
    Vector(Vector),
}

/// Old columns, then new columns, of some rows.
fn both(types: &[DataType], taken: &[(&Row, &Row)], chosen: &[usize]) -> Batch {
    let old = (types.iter().enumerate()).map(|(at, t)| {
        Arc::new(Vector::from_values(*t, chosen.iter().map(|row| &taken[*row].0[at])))
    });
    let new = (types.iter().enumerate()).map(|(at, t)| {
        Arc::new(Vector::from_values(*t, chosen.iter().map(|row| &taken[*row].1[at])))
    });
    Batch::new(old.chain(new).collect(), chosen.len())
}
