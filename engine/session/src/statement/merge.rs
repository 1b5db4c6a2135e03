//! `MERGE`: deletes, updates and inserts rows by the clauses that apply to the rows of a join. All of
//! it is read before the first write.

use super::changed_rows::{delete, matches_of};
use super::held::{HeldRows, LocatedRows};
use super::insert;
use super::plan::locate;
use super::row_types::in_table_types;
use super::target_rows::TargetRows;
use super::update::Update;
use crate::execution::Execution;
use nacre_column::{Batch, Vector};
use nacre_operator::Context;
use nacre_sql::{MergeAction, WriteStatement};
use nacre_table::{Table, Transaction};
use nacre_types::{Error, Result, TableSchema, Value, invariant};
use std::sync::Arc;

/// Columns of a match before those of the table: the number of a row, the number of a clause, and a
/// message.
const BEFORE: usize = 3;

/// A row of the join that changes a row of the target.
#[derive(Clone, Copy)]
struct Change {
    /// The number of the target's row.
    number: usize,
    action: MergeAction,
    /// Its batch, and its row in it.
    batch: usize,
    row: usize,
}

/// The rows of the join to which clauses apply.
struct Matched<'a> {
    table: &'a TableSchema,
    target: &'a Table,
    batches: &'a [Batch],
    /// Ascending by number, each number once.
    changes: Vec<Change>,
    /// The rows of each batch that are new.
    inserts: Vec<Vec<u32>>,
}

/// Runs the statement and returns the number of rows. Collects the rows in `returned` if set, each
/// followed by what was done and the columns of the source.
pub(super) async fn run(
    transaction: &mut Transaction,
    merge: &WriteStatement,
    execution: &Execution<'_>,
    mut returned: Option<&mut HeldRows>,
) -> Result<u64> {
    let WriteStatement::Merge { table, target, rows, matches, actions, assigned } = merge else {
        return Ok(0);
    };
    let context = execution.context(transaction);
    context.memory.share_among(matches, 4);
    let found = locate(target, &context, execution.waits()).await?;
    let batches = matches_of(&found, *rows, matches, &context, execution.waits()).await?;
    let target = transaction.table_of(table)?;
    let matched = Matched::new(table, &target, &batches, actions)?;
    let new = matched.inserted(&context, returned.as_deref_mut())?;
    // It may assign nothing: `SET` of a generated column to `DEFAULT`.
    let mut update = match actions.contains(&MergeAction::Update) {
        true => Some(Update::new(transaction, table, assigned.clone(), execution)?),
        false => None,
    };
    let mut gone = TargetRows::default();
    let mut start = 0;
    for LocatedRows { rows, locators } in found.iter() {
        for action in [MergeAction::Update, MergeAction::Delete] {
            let changes = matched.of(start..start + rows.rows, action);
            let Some(now) = matched.changed(&changes, &context, returned.as_deref_mut())? else {
                continue;
            };
            let places = changes.iter().map(|change| locators[change.number - start].clone());
            match &mut update {
                Some(update) if action == MergeAction::Update => {
                    let locators = places.collect();
                    let selection =
                        Some(changes.iter().map(|change| (change.number - start) as u32).collect());
                    update.note(&Batch { selection, ..rows.clone() }.compact(), &now);
                    update.add(transaction, LocatedRows { rows: now, locators }).await?;
                }
                _ => {
                    invariant!(action == MergeAction::Delete, "a row is updated by no clause");
                    gone.add(places, &context)?;
                }
            }
        }
        start += rows.rows;
    }
    let mut affected = 0;
    // Keys that rows give up are free for others.
    if gone.len() > 0 {
        affected += delete(transaction, table, &gone, execution).await?;
    }
    if let Some(update) = update {
        affected += update.write(transaction).await?;
    }
    affected += insert::beside(transaction, &target, &new, execution).await?;
    Ok(affected)
}

impl<'a> Matched<'a> {
    /// Sorts rows by what is done.
    ///
    /// # Errors
    /// `constraint` if a row of the target is changed twice, or a clause says so.
    fn new(
        table: &'a TableSchema,
        target: &'a Table,
        batches: &'a [Batch],
        actions: &[MergeAction],
    ) -> Result<Matched<'a>> {
        let (mut changes, mut inserts) = (Vec::new(), Vec::new());
        for (batch, rows) in batches.iter().enumerate() {
            let mut new = Vec::new();
            for row in 0..rows.rows {
                let at = |column: usize| rows.columns[column].value(row);
                let Value::Int(clause) = at(1) else {
                    invariant!(false, "a row of a join is merged by no clause");
                    continue;
                };
                let action = actions[clause as usize];
                match (action, at(0)) {
                    (MergeAction::Fail, _) => return Err(raised(table, at(2))),
                    (MergeAction::Insert, _) => new.push(row as u32),
                    (_, Value::Int(number)) => {
                        changes.push(Change { number: number as usize, action, batch, row });
                    }
                    (action, none) => {
                        invariant!(false, "{action:?} of a row with the number {none:?}");
                    }
                }
            }
            inserts.push(new);
        }
        changes.sort_by_key(|change| change.number);
        if changes.windows(2).any(|pair| pair[0].number == pair[1].number) {
            return Err(Error::constraint(format!(
                "MERGE cannot affect the same target row more than once: two rows of the source match \
                 a row of table {}",
                table.name
            ))
            .with_sqlstate("21000")
            .with_table(table.name.clone()));
        }
        Ok(Matched { table, target, batches, changes, inserts })
    }

    /// The changes of some rows of the target.
    fn of(&self, numbers: std::ops::Range<usize>, action: MergeAction) -> Vec<Change> {
        let from = self.changes.partition_point(|change| change.number < numbers.start);
        let to = self.changes.partition_point(|change| change.number < numbers.end);
        debug_assert!(from <= to, "changes {from}..{to} of rows {numbers:?}");
        let some = self.changes[from..to].iter().copied();
        some.filter(|change| change.action == action).collect()
    }

    /// The rows after changes, or as they were before they are deleted; `None` for none.
    fn changed(
        &self,
        changes: &[Change],
        context: &Context<'_>,
        returned: Option<&mut HeldRows>,
    ) -> Result<Option<Batch>> {
        let Some(first) = changes.first() else { return Ok(None) };
        let column = |at: usize| {
            let value = |change: &Change| self.batches[change.batch].columns[at].value(change.row);
            let values: Vec<Value> = changes.iter().map(value).collect();
            let data_type = self.batches[first.batch].columns[at].data_type();
            Arc::new(Vector::from_values(data_type, &values))
        };
        let (width, all) = (self.table.columns.len(), self.batches[first.batch].columns.len());
        let columns = (BEFORE..BEFORE + width).map(column).collect();
        let rows = in_table_types(&Batch::new(columns, changes.len()), self.table);
        let rows = match first.action {
            MergeAction::Update => self.target.complete(rows)?,
            _ => rows,
        };
        if let Some(returned) = returned {
            let extra = (BEFORE + width..all).map(column);
            let columns = rows.columns.iter().cloned().chain(extra).collect();
            returned.push(Batch::new(columns, rows.rows), "the returned rows", context)?;
        }
        Ok(Some(rows))
    }

    /// The new rows.
    fn inserted(
        &self,
        context: &Context<'_>,
        mut returned: Option<&mut HeldRows>,
    ) -> Result<HeldRows> {
        let width = self.table.columns.len();
        let mut batches = HeldRows::default();
        for (all, new) in self.batches.iter().zip(&self.inserts) {
            if new.is_empty() {
                continue;
            }
            let some = Batch { selection: Some(new.clone()), ..all.clone() }.compact();
            let own = Batch::new(some.columns[BEFORE..BEFORE + width].to_vec(), some.rows);
            let rows = self.target.complete(in_table_types(&own, self.table))?;
            debug_assert!(rows.rows == new.len(), "{} of {} rows are new", rows.rows, new.len());
            if let Some(returned) = &mut returned {
                let extra = some.columns[BEFORE + width..].iter();
                let columns = rows.columns.iter().chain(extra).cloned().collect();
                returned.push(Batch::new(columns, rows.rows), "the returned rows", context)?;
            }
            batches.push(rows, "the statement's rows", context)?;
        }
        Ok(batches)
    }
}

/// The error that a clause asks for.
fn raised(table: &TableSchema, message: Value) -> Error {
    let message = match message {
        Value::Text(text) => text.to_string(),
        _ => format!("a clause of MERGE INTO {} is an ERROR", table.name),
    };
    Error::constraint(message).with_sqlstate("P0001").with_table(table.name.clone())
}
