//! Finds the rows of a point statement, in a transaction or as committed now.

use super::outcome::Outcome;
use super::slot::{Computed, Slot};
use crate::execution::Execution;
use nacre_column::{Batch, Vector};
use nacre_table::{Equal, FoundRows, Misses, RowLocator, Store, Table, Transaction};
use nacre_types::{IndexId, Result, TableSchema, Value};
use std::sync::Arc;

/// Maximum rows of a point statement. For more, the general path accounts for memory, can be
/// cancelled, and may scan.
const MOST_ROWS: usize = 4_096;

/// How to find the rows.
pub(super) enum Way {
    /// By the whole primary key, whose values come first in [`Find::equal`], in key order.
    Key,
    /// By several values of a single-column primary key.
    Keys(Vec<Slot>),
    /// By values of leading columns of some indexes, or of a whole unique index.
    Indexes { indexes: Vec<(IndexId, usize)>, unique: bool },
}

/// The rows that a statement reads or changes.
pub(super) struct Find {
    way: Way,
    /// Conditions `column = value`.
    equal: Vec<(usize, Slot)>,
    /// Number of primary key columns.
    key_columns: usize,
    /// Further conditions on a row.
    rest: Vec<Computed>,
}

/// Whole rows of a table as a transaction sees them, and their locators.
#[derive(Default)]
pub(super) struct Located {
    pub locators: Vec<RowLocator>,
    pub rows: Vec<Vec<Value>>,
}

/// The values of the columns that a statement fixes.
enum Known {
    Some(Vec<(usize, Value)>),
    /// A value is null, which equals nothing: no row matches.
    Null,
    /// A value is out of its column's range: the general path compares it row by row.
    Odd,
}

/// The values of a whole primary key.
enum Key {
    Some(Vec<Value>),
    /// A value is null, which equals nothing: no row matches.
    Null,
    /// A value is out of its column's range: the general path compares it row by row.
    Odd,
}

/// Some columns of all rows.
fn batches_of(found: &[FoundRows], projection: &[usize]) -> Result<Vec<Batch>> {
    let mut batches = Vec::with_capacity(found.len());
    Misses::each(found, |rows| rows.batch(projection).map(|batch| batches.push(batch)))?;
    debug_assert!(batches.len() == found.len(), "rows without their values");
    Ok(batches)
}

impl Find {
    pub fn new(
        schema: &TableSchema,
        way: Way,
        equal: Vec<(usize, Slot)>,
        rest: Vec<Computed>,
    ) -> Find {
        let key = schema.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
        debug_assert!(
            !matches!(way, Way::Key)
                || equal.iter().map(|(column, _)| column).zip(key).filter(|(a, b)| a == b).count()
                    == key.len(),
            "the key of {} does not come first, in its order",
            schema.name
        );
        Find { way, equal, key_columns: key.len(), rest }
    }

    /// Whether it finds at most one row.
    pub fn is_single(&self) -> bool {
        matches!(self.way, Way::Key | Way::Indexes { unique: true, .. })
    }

    fn known(&self, schema: &TableSchema, parameters: &[Value]) -> Result<Known> {
        let mut values = Vec::with_capacity(self.equal.len());
        for (column, slot) in &self.equal {
            let value = slot.value(parameters)?;
            if value.is_null() {
                return Ok(Known::Null);
            }
            if schema.key_column(*column).check(&value).is_err() {
                return Ok(Known::Odd);
            }
            values.push((*column, value));
        }
        Ok(Known::Some(values))
    }

    /// The primary key values, for a statement without further conditions.
    fn key_alone(&self, schema: &TableSchema, parameters: &[Value]) -> Result<Key> {
        let mut key = Vec::with_capacity(self.key_columns);
        for (column, slot) in &self.equal {
            let value = slot.value(parameters)?;
            if value.is_null() {
                return Ok(Key::Null);
            }
            if schema.key_column(*column).check(&value).is_err() {
                return Ok(Key::Odd);
            }
            key.push(value);
        }
        Ok(Key::Some(key))
    }

    fn is_key_alone(&self) -> bool {
        matches!(self.way, Way::Key) && self.rest.is_empty() && self.equal.len() == self.key_columns
    }

    /// Splits the values into those of the key and further conditions.
    fn split(&self, mut values: Vec<(usize, Value)>) -> (Vec<Value>, Vec<(usize, Value)>) {
        debug_assert!(values.len() >= self.key_columns, "{} values of a key", values.len());
        let others = values.split_off(self.key_columns);
        (values.into_iter().map(|(_, value)| value).collect(), others)
    }

    /// Reads the newest committed rows, projected.
    pub fn newest(
        &self,
        table: &Arc<Table>,
        store: &Arc<Store>,
        projection: &[usize],
        parameters: &[Value],
    ) -> Result<Outcome> {
        if self.is_key_alone() {
            return match self.key_alone(table.schema(), parameters)? {
                Key::Some(key) => store.get(table, &key, projection).map(Outcome::Row),
                Key::Null => Ok(Outcome::Row(None)),
                Key::Odd => Ok(Outcome::General),
            };
        }
        // Further conditions and multiple lookups need one snapshot for all rows.
        if !self.rest.is_empty() || matches!(self.way, Way::Keys(_)) {
            return Ok(Outcome::General);
        }
        let values = match self.known(table.schema(), parameters)? {
            Known::Some(values) => values,
            Known::Odd => return Ok(Outcome::General),
            Known::Null => return Ok(self.nothing()),
        };
        let Way::Indexes { indexes, unique } = &self.way else { return Ok(Outcome::General) };
        let mut batches = Vec::new();
        let equal = Equal { values: &values, indexes, unique: *unique, most: MOST_ROWS };
        let found = store.with_equal(table, &equal, &mut |found| {
            batches = batches_of(&found, projection)?;
            Ok(())
        })?;
        Ok(if found { Outcome::Rows(batches) } else { Outcome::General })
    }

    fn nothing(&self) -> Outcome {
        if let Way::Key = self.way { Outcome::Row(None) } else { Outcome::Rows(Vec::new()) }
    }

    /// Reads the row visible to a transaction, projected, if the statement's only condition is a
    /// key. `None` for other statements, and if this execution takes the general path.
    pub fn single(
        &self,
        table: &Arc<Table>,
        transaction: &Transaction,
        projection: &[usize],
        parameters: &[Value],
    ) -> Result<Option<Option<Vec<Value>>>> {
        if self.is_key_alone() {
            return match self.key_alone(table.schema(), parameters)? {
                Key::Some(key) => transaction.get(table, &key, projection).map(Some),
                Key::Null => Ok(Some(None)),
                Key::Odd => Ok(None),
            };
        }
        if !self.rest.is_empty() {
            return Ok(None);
        }
        let values = match self.known(table.schema(), parameters)? {
            Known::Some(values) => values,
            Known::Null => return Ok(Some(None)),
            Known::Odd => return Ok(None),
        };
        match &self.way {
            Way::Indexes { indexes, unique: true } => {
                let equal = Equal { values: &values, indexes, unique: true, most: MOST_ROWS };
                let Some(found) = transaction.equal(table, &equal)? else { return Ok(None) };
                found.first().map(|rows| rows.row(0, projection)).transpose().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reads the rows visible to a transaction, projected.
    pub fn seen(
        &self,
        table: &Arc<Table>,
        transaction: &Transaction,
        projection: &[usize],
        execution: &Execution<'_>,
    ) -> Result<Outcome> {
        if let Way::Indexes { .. } = self.way {
            let Some(found) = self.indexed(table, transaction, execution)? else {
                return Ok(Outcome::General);
            };
            return Ok(Outcome::Rows(batches_of(&found, projection)?));
        }
        if let Way::Key = self.way
            && let Some(row) =
                self.single(table, transaction, projection, execution.parameters())?
        {
            return Ok(Outcome::Row(row));
        }
        let Some(found) = self.locate(table, transaction, execution)? else {
            return Ok(Outcome::General);
        };
        let column = |at: &usize| {
            let data_type = table.schema().columns[*at].data_type;
            Arc::new(Vector::from_values(data_type, found.rows.iter().map(|row| &row[*at])))
        };
        if let Way::Key = self.way {
            let project = |row: Vec<Value>| projection.iter().map(|at| row[*at].clone()).collect();
            return Ok(Outcome::Row(found.rows.into_iter().next().map(project)));
        }
        let batch = Batch::new(projection.iter().map(column).collect(), found.rows.len());
        Ok(Outcome::Rows(if found.rows.is_empty() { Vec::new() } else { vec![batch] }))
    }

    /// The whole rows visible to a transaction, and their locators; `None` if this execution takes
    /// the general path.
    pub fn locate(
        &self,
        table: &Arc<Table>,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Option<Located>> {
        let (schema, parameters) = (table.schema(), execution.parameters());
        let mut located = Located::default();
        match &self.way {
            Way::Indexes { .. } => {
                let Some(found) = self.indexed(table, transaction, execution)? else {
                    return Ok(None);
                };
                let all: Vec<usize> = (0..schema.columns.len()).collect();
                for rows in &found {
                    for at in 0..rows.count() {
                        located.add(rows.locator(at), rows.row(at, &all)?);
                    }
                }
                return Ok(Some(located));
            }
            Way::Key => {
                let values = match self.known(schema, parameters)? {
                    Known::Some(values) => values,
                    Known::Null => return Ok(Some(located)),
                    Known::Odd => return Ok(None),
                };
                let (key, others) = self.split(values);
                if let Some((locator, row)) = transaction.locate(table, &key)? {
                    let equals = |(column, value): &(usize, Value)| same(&row[*column], value);
                    if others.iter().all(equals) {
                        located.add(locator, row);
                    }
                }
            }
            Way::Keys(slots) => {
                let column = schema.primary_key.as_ref().and_then(|key| key.columns.first());
                let Some(column) = column.and_then(|at| schema.columns.get(*at)) else {
                    return Ok(None);
                };
                let mut keys: Vec<Value> = Vec::with_capacity(slots.len());
                for slot in slots {
                    let value = slot.value(parameters)?;
                    if !value.is_null() && column.check(&value).is_err() {
                        return Ok(None);
                    }
                    if !value.is_null() && !keys.iter().any(|known| same(known, &value)) {
                        keys.push(value);
                    }
                }
                for key in keys {
                    if let Some((locator, row)) = transaction.locate(table, &[key])? {
                        located.add(locator, row);
                    }
                }
            }
        }
        for computed in &self.rest {
            let column = |at: &usize| {
                let data_type = schema.columns[*at].data_type;
                Arc::new(Vector::from_values(data_type, located.rows.iter().map(|row| &row[*at])))
            };
            let batch =
                Batch::new(computed.columns.iter().map(column).collect(), located.rows.len());
            located.keep(&passing(computed, &batch, transaction, execution)?);
        }
        Ok(Some(located))
    }

    /// The rows found by indexes; `None` if this execution takes the general path.
    fn indexed(
        &self,
        table: &Arc<Table>,
        transaction: &Transaction,
        execution: &Execution<'_>,
    ) -> Result<Option<Vec<FoundRows>>> {
        let Way::Indexes { indexes, unique } = &self.way else { return Ok(None) };
        let values = match self.known(table.schema(), execution.parameters())? {
            Known::Some(values) => values,
            Known::Null => return Ok(Some(Vec::new())),
            Known::Odd => return Ok(None),
        };
        let equal = Equal { values: &values, indexes, unique: *unique, most: MOST_ROWS };
        let Some(mut found) = transaction.equal(table, &equal)? else { return Ok(None) };
        for computed in &self.rest {
            for rows in &mut found {
                rows.keep(&passing(
                    computed,
                    &rows.batch(&computed.columns)?,
                    transaction,
                    execution,
                )?);
            }
            found.retain(|rows| rows.count() > 0);
        }
        Ok(Some(found))
    }
}

impl Located {
    fn add(&mut self, locator: RowLocator, row: Vec<Value>) {
        self.locators.push(locator);
        self.rows.push(row);
    }

    fn keep(&mut self, positions: &[u32]) {
        self.locators = positions.iter().map(|at| self.locators[*at as usize].clone()).collect();
        self.rows =
            positions.iter().map(|at| std::mem::take(&mut self.rows[*at as usize])).collect();
    }
}

/// Whether two values of one column are equal as keys.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            nacre_types::key::order_f64(*a) == nacre_types::key::order_f64(*b)
        }
        _ => a == b,
    }
}

/// Positions of the rows that satisfy a condition.
fn passing(
    computed: &Computed,
    batch: &Batch,
    transaction: &Transaction,
    execution: &Execution<'_>,
) -> Result<Vec<u32>> {
    if batch.rows == 0 {
        return Ok(Vec::new());
    }
    let passed = computed.evaluate(batch, transaction, execution)?;
    Ok((0..batch.rows as u32)
        .filter(|at| passed.value(*at as usize) == Value::Boolean(true))
        .collect())
}
