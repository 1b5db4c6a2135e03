//! A recognised point statement, and its execution.

use super::find::{Find, Located};
use super::outcome::Outcome;
use super::slot::{self, Assigned, Slot};
use crate::execution::Execution;
use crate::statement::upsert::{self, Upsert};
use nacre_sql::OnDuplicateKey;
use nacre_table::{Store, Table, Transaction};
use nacre_types::{IndexId, Result, Value};
use std::sync::Arc;

/// A recognised point statement.
pub(crate) struct Point {
    table: Arc<Table>,
    action: Action,
}

/// The action of a point statement.
pub(super) enum Action {
    Select { find: Find, projection: Vec<usize> },
    Insert { rows: Vec<Vec<Slot>> },
    Upsert { rows: Vec<Vec<Slot>>, keys: Vec<Option<IndexId>>, on_duplicate: OnDuplicateKey },
    Update { find: Find, assignments: Vec<(usize, Assigned)> },
    Delete { find: Find },
}

impl Point {
    pub(super) fn new(table: Arc<Table>, action: Action) -> Point {
        Point { table, action }
    }

    /// Whether it only reads, and at most one row.
    pub fn reads_one_row(&self) -> bool {
        matches!(&self.action, Action::Select { find, .. } if find.is_single())
    }

    /// Reads the newest committed rows, as a transaction beginning now would. [`Outcome::General`]
    /// if the statement, or this execution of it, needs a transaction.
    pub fn read_newest(&self, store: &Arc<Store>, parameters: &[Value]) -> Result<Outcome> {
        let Action::Select { find, projection } = &self.action else { return Ok(Outcome::General) };
        find.newest(&self.table, store, projection, parameters)
    }

    /// Reads at most one row inside a transaction. `None` if the statement is not such a read, or
    /// this execution takes the general path.
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

    /// Runs the statement inside a transaction.
    pub fn run(&self, transaction: &mut Transaction, execution: &Execution<'_>) -> Result<Outcome> {
        let (table, parameters) = (&self.table, execution.parameters());
        if !table.serves(transaction.snapshot()) {
            return Ok(Outcome::General);
        }
        match &self.action {
            Action::Select { find, projection } => {
                find.seen(table, transaction, projection, execution)
            }
            Action::Insert { rows } => {
                for row in rows {
                    let row = table.complete_row(slot::values(row, parameters)?)?;
                    transaction.insert_row(table, &row)?;
                }
                Ok(Outcome::Written(rows.len() as u64))
            }
            Action::Upsert { rows, keys, on_duplicate } => {
                let whole = |row: &Vec<Slot>| table.complete_row(slot::values(row, parameters)?);
                let mut rows = rows.iter().map(whole);
                let upsert = Upsert { table: table.schema(), keys, on_duplicate };
                upsert::run(transaction, upsert, &mut rows, execution, None).map(Outcome::Written)
            }
            Action::Delete { find } => {
                let Some(found) = find.locate(table, transaction, execution)? else {
                    return Ok(Outcome::General);
                };
                let Located { locators, .. } = found;
                transaction.delete(table, &locators).map(Outcome::Written)
            }
            Action::Update { find, assignments } => {
                let Some(found) = find.locate(table, transaction, execution)? else {
                    return Ok(Outcome::General);
                };
                let mut changed = Vec::with_capacity(found.rows.len());
                for row in &found.rows {
                    let mut new = row.clone();
                    for (position, assigned) in assignments {
                        new[*position] =
                            assigned.value(table.schema(), row, transaction, execution)?;
                    }
                    changed.push(new);
                }
                table.complete_rows(&mut changed)?;
                let seen: Vec<&[Value]> = found.rows.iter().map(Vec::as_slice).collect();
                upsert::note_rekeyed(transaction, table, &seen, &changed);
                transaction
                    .update_seen(table, &found.locators, &seen, changed)
                    .map(Outcome::Written)
            }
        }
    }
}
