//! Point statements: rows found by equal values of a key (the whole primary key, a unique key, or the first columns of
//! other indexes), and rows given one by one: read, inserted, upserted, updated or deleted. They are recognised when a
//! statement is bound and run without plan or operator.
//!
//! Recognition ([`recognise`]) is conservative: what is not obviously a point statement takes the general way, and so
//! does an execution whose key value the column could not hold, or that finds more rows than a point should. Both ways
//! answer the same.

mod find;
mod recognise;
mod slot;

use crate::statement::Settings;
use crate::upsert;
use find::{Find, Located};
use nacre_column::Batch;
use nacre_sql::OnDuplicateKey;
use nacre_table::{Store, Table, Transaction};
use nacre_types::{IndexId, Result, Value};
use slot::{Assigned, Slot};
use std::sync::Arc;

/// A recognised point statement.
pub(crate) struct Point {
    table: Arc<Table>,
    action: Action,
}

enum Action {
    Select { find: Find, projection: Vec<usize> },
    Insert { rows: Vec<Vec<Slot>> },
    Upsert { rows: Vec<Vec<Slot>>, keys: Vec<Option<IndexId>>, on_duplicate: OnDuplicateKey },
    Update { find: Find, assignments: Vec<(usize, Assigned)> },
    Delete { find: Find },
}

impl Outcome {
    /// The row of a read that finds at most one; none when the execution needs the general way.
    pub fn single(self) -> Option<Option<Vec<Value>>> {
        match self {
            Outcome::Row(row) => Some(row),
            Outcome::Rows(batches) => Some(
                batches
                    .first()
                    .map(|batch| batch.columns.iter().map(|column| column.value(0)).collect()),
            ),
            Outcome::Written(_) | Outcome::General => None,
        }
    }
}

/// What a point statement did.
pub(crate) enum Outcome {
    /// A read's row, if there is one.
    Row(Option<Vec<Value>>),
    /// A read's rows.
    Rows(Vec<Batch>),
    /// Rows written.
    Written(u64),
    /// This execution needs the general way.
    General,
}

impl Point {
    /// Whether it only reads, and finds no more than one row.
    pub fn reads(&self) -> bool {
        matches!(&self.action, Action::Select { find, .. } if find.is_single())
    }

    /// Reads what is committed now: what a transaction of its own would read that begins now. `General`: this
    /// execution, or this statement, needs a transaction.
    pub fn read_newest(&self, store: &Arc<Store>, parameters: &[Value]) -> Result<Outcome> {
        let Action::Select { find, projection } = &self.action else { return Ok(Outcome::General) };
        find.newest(&self.table, store, projection, parameters)
    }

    /// Reads inside a transaction the one row there may be. `None` when this is no such read, or this execution needs
    /// the general way.
    pub fn read(
        &self,
        transaction: &Transaction,
        parameters: &[Value],
    ) -> Result<Option<Option<Vec<Value>>>> {
        let Action::Select { find, projection } = &self.action else { return Ok(None) };
        if !self.table.serves(transaction.snapshot()) {
            return Ok(None);
        }
        find.single(&self.table, transaction, projection, parameters)
    }

    /// Runs inside a transaction.
    pub fn run(&self, transaction: &mut Transaction, settings: &Settings<'_>) -> Result<Outcome> {
        let (table, parameters) = (&self.table, settings.parameters);
        if !table.serves(transaction.snapshot()) {
            return Ok(Outcome::General);
        }
        match &self.action {
            Action::Select { find, projection } => {
                find.seen(table, transaction, projection, settings)
            }
            Action::Insert { rows } => {
                for row in rows {
                    transaction.insert_row(table, &slot::values(row, parameters)?)?;
                }
                Ok(Outcome::Written(rows.len() as u64))
            }
            Action::Upsert { rows, keys, on_duplicate } => {
                let mut rows = rows.iter().map(|row| slot::values(row, parameters));
                let how = (keys.as_slice(), on_duplicate);
                upsert::run(transaction, table.schema(), &mut rows, how, settings, None)
                    .map(Outcome::Written)
            }
            Action::Delete { find } => {
                let Some(found) = find.locate(table, transaction, settings)? else {
                    return Ok(Outcome::General);
                };
                let Located { locators, .. } = found;
                transaction.delete(table, &locators).map(Outcome::Written)
            }
            Action::Update { find, assignments } => {
                let Some(found) = find.locate(table, transaction, settings)? else {
                    return Ok(Outcome::General);
                };
                let mut changed = Vec::with_capacity(found.rows.len());
                for row in &found.rows {
                    let mut new = row.clone();
                    for (position, assigned) in assignments {
                        new[*position] =
                            assigned.value(table.schema(), row, transaction, settings)?;
                    }
                    changed.push(new);
                }
                let seen: Vec<&[Value]> = found.rows.iter().map(Vec::as_slice).collect();
                transaction
                    .update_seen(table, &found.locators, &seen, changed)
                    .map(Outcome::Written)
            }
        }
    }
}
