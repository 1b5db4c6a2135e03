//! Statements that write rows. They finish reading before the first write.

use super::changed_rows::{delete, matches_of};
use super::held::{HeldRows, HeldTargets, LocatedRows};
use super::insert::{self, Insert};
use super::merge;
use super::plan::{find_targets, locate};
use super::target_rows::TargetRows;
use super::update::Update;
use crate::execution::Execution;
use nacre_column::{Batch, Vector};
use nacre_operator::{Context, Reservation};
use nacre_sql::{Field, WriteStatement};
use nacre_table::{Table, Transaction};
use nacre_types::{DataType, Result, Value, invariant};
use std::sync::Arc;

/// Runs a write and returns the number of rows. Collects the rows in `returned` if set.
pub(crate) async fn run(
    transaction: &mut Transaction,
    write: &WriteStatement,
    execution: &Execution<'_>,
    returned: Option<&mut HeldRows>,
) -> Result<u64> {
    match write {
        WriteStatement::Insert { table, source } => {
            let insert = Insert { table, source, conflicts: None };
            insert::run(transaction, insert, execution, returned).await
        }
        WriteStatement::Upsert { table, source, keys, on_duplicate } => {
            let insert = Insert { table, source, conflicts: Some((keys, on_duplicate)) };
            insert::run(transaction, insert, execution, returned).await
        }
        WriteStatement::Update { table, input, assignments } => {
            let columns = assignments.iter().map(|(at, _)| *at).collect();
            let mut update = Update::new(transaction, table, columns, execution)?;
            update.read(transaction, input, assignments, returned).await?;
            update.write(transaction).await
        }
        WriteStatement::Delete { table, input } => {
            let targets = {
                let context = execution.context(transaction);
                find_targets(input, &context, execution.waits(), returned).await?
            };
            delete(transaction, table, &targets, execution).await
        }
        WriteStatement::Merge { .. } => merge::run(transaction, write, execution, returned).await,
        WriteStatement::Change { table, target, rows, matches, columns } => {
            let context = execution.context(transaction);
            context.memory.share_among(matches, 4);
            let found = locate(target, &context, execution.waits()).await?;
            let matched = matches_of(&found, *rows, matches, &context, execution.waits()).await?;
            let target = transaction.table_of(table)?;
            let fields = matches.fields();
            let change = Change { target: &target, columns: columns.as_deref(), fields: &fields };
            match columns {
                Some(columns) => {
                    let mut update = Update::new(transaction, table, columns.clone(), execution)?;
                    let note = &mut |old: &Batch, new: &Batch| update.note(old, new);
                    let mut changes = change.rows(&found, &matched, &context, returned, note)?;
                    drop((found, matched));
                    for change in changes.take() {
                        update.add(transaction, change).await?;
                    }
                    update.write(transaction).await
                }
                None => {
                    let mut targets = TargetRows::default();
                    let mut changes =
                        change.rows(&found, &matched, &context, returned, &mut |_, _| ())?;
                    drop((found, matched));
                    for LocatedRows { locators, .. } in changes.take() {
                        targets.add(locators, &context)?;
                    }
                    delete(transaction, table, &targets, execution).await
                }
            }
        }
    }
}

/// Computes changed rows from matches.
struct Change<'a> {
    target: &'a Table,
    /// Columns with new values; `None` for a delete.
    columns: Option<&'a [usize]>,
    /// Columns of a match.
    fields: &'a [Field],
}

/// A row to change, and the match that determines its values.
struct Pick {
    /// Number of the row.
    number: usize,
    /// Batch of matches, and the row in it.
    batch: usize,
    row: usize,
}

impl Change<'_> {
    /// The new rows, or the rows to delete; each once, by its first match. Calls `note` with old and new rows.
    fn rows(
        &self,
        found: &[LocatedRows],
        matched: &[Batch],
        context: &Context<'_>,
        mut returned: Option<&mut HeldRows>,
        note: &mut dyn FnMut(&Batch, &Batch),
    ) -> Result<HeldTargets> {
        let mut picks: Vec<Pick> = Vec::new();
        let mut held = Reservation::default();
        for (batch, rows) in matched.iter().enumerate() {
            let bytes = (picks.len() + rows.rows) * size_of::<Pick>();
            context.reserve(&mut held, "the statement's rows", bytes)?;
            for row in 0..rows.rows {
                let number = rows.columns.first().map(|column| column.value(row));
                let Some(Value::Int(number)) = number else {
                    invariant!(false, "a match begins with {number:?}, not the number of its row");
                    continue;
                };
                picks.push(Pick { number: number as usize, batch, row });
            }
        }
        picks.sort_by_key(|pick| pick.number);
        picks.dedup_by_key(|pick| pick.number);
        let column = |picks: &[Pick], at: usize, data_type: DataType| {
            let value = |pick: &Pick| matched[pick.batch].columns[at].value(pick.row);
            let values: Vec<Value> = picks.iter().map(value).collect();
            Arc::new(Vector::from_values(data_type, &values))
        };
        let mut changes = HeldTargets::default();
        let mut start = 0;
        for LocatedRows { rows: batch, locators } in found {
            debug_assert!(
                batch.rows == locators.len(),
                "{} rows, {} places",
                batch.rows,
                locators.len()
            );
            let here = picks.partition_point(|pick| pick.number < start)
                ..picks.partition_point(|pick| pick.number < start + batch.rows);
            let picks = &picks[here];
            let rows: Vec<u32> = picks.iter().map(|pick| (pick.number - start) as u32).collect();
            start += batch.rows;
            if picks.is_empty() {
                continue;
            }
            let locators = rows.iter().map(|row| locators[*row as usize].clone()).collect();
            let before = Batch { selection: Some(rows), ..batch.clone() }.compact();
            let mut now = before.clone();
            for (n, at) in self.columns.into_iter().flatten().enumerate() {
                now.columns[*at] =
                    column(picks, n + 1, self.target.schema().columns[*at].data_type);
            }
            if self.columns.is_some() {
                now = self.target.complete(now)?;
                note(&before, &now);
            }
            if let Some(returned) = &mut returned {
                let mut seen = now.clone();
                for (at, field) in
                    self.fields.iter().enumerate().skip(1 + self.columns.map_or(0, <[usize]>::len))
                {
                    seen.columns.push(column(picks, at, field.data_type));
                }
                returned.push(seen, "the returned rows", context)?;
            }
            changes.push(LocatedRows { rows: now, locators }, context)?;
        }
        Ok(changes)
    }
}
