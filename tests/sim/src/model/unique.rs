//! The effect of unique indexes on a statement, in the model.
//!
//! A row may have a value if no other row has it now, according to the newest commits and the
//! statement's own transaction, and no other row has it in the snapshot, in which there would
//! otherwise be two. The first case is a duplicate, the second a conflict. Only the state after the
//! whole statement counts, so that values may be exchanged; upserts and loads that skip or replace
//! are checked row by row.

use crate::model::verdict::{Answer, Sight, Verdict};
use crate::model::{Effect, RowId, State, Table, Touch, Writes};
use crate::op::Upsert;
use crate::op::row::Row;
use crate::op::shape::Index;
use nacredb::{ErrorKind, OnDuplicate, Value};
use std::collections::BTreeMap;

/// The number of a unique index, and values as text.
type Key = (usize, Vec<String>);
/// The rows that have each unique value.
type Holders = BTreeMap<Key, Vec<i64>>;

fn keys(table: &Table, row: &Row) -> Vec<Key> {
    let text = |values: Vec<Value>| values.iter().map(|value| format!("{value:?}")).collect();
    let indexes = table.shape.unique().enumerate();
    indexes.filter_map(|(at, index)| index.unique_key(row).map(|key| (at, text(key)))).collect()
}

fn holders<'a>(table: &Table, rows: impl Iterator<Item = (i64, &'a Row)>) -> Holders {
    let mut holders = Holders::new();
    for (id, row) in rows {
        for key in keys(table, row) {
            holders.entry(key).or_default().push(id);
        }
    }
    holders
}

/// Rows with changes applied.
fn overlaid<'a>(
    table: &Table,
    rows: &'a BTreeMap<i64, Row>,
    layers: &[&'a Writes],
) -> BTreeMap<i64, &'a Row> {
    let mut out: BTreeMap<i64, &Row> = rows.iter().map(|(id, row)| (*id, row)).collect();
    for layer in layers {
        for ((_, id), row) in layer.range((table.id, i64::MIN)..=(table.id, i64::MAX)) {
            match row {
                Some(row) => out.insert(*id, row),
                None => out.remove(id),
            };
        }
    }
    out
}

/// Rejects a statement that violates a unique index.
pub fn check(table: &Table, sight: &Sight<'_>, verdict: &mut Verdict) {
    if table.shape.unique().next().is_none() {
        return;
    }
    if verdict.answer.is_none() {
        // Which of several errors is reported depends on the order of rows.
        if verdict
            .errors
            .iter()
            .any(|kind| matches!(kind, ErrorKind::Constraint | ErrorKind::Conflict))
        {
            verdict.errors = vec![ErrorKind::Constraint, ErrorKind::Conflict];
        }
        return;
    }
    let Clashes { certain: mut errors, dropped } = clashes(table, sight, &verdict.writes);
    verdict.errors.extend(dropped);
    if !errors.is_empty() && table.touch == Touch::Altered && !clashes_in_view(table, verdict) {
        // A new index may not have rows that others have written since. The commit finds them.
        verdict.errors.append(&mut errors);
    }
    if !errors.is_empty() {
        // A key that came and went may be told of first.
        errors.append(&mut verdict.errors);
        *verdict = Verdict::fails(&errors);
    }
}

/// Whether rows that the transaction sees have the same value after a statement.
fn clashes_in_view(table: &Table, verdict: &Verdict) -> bool {
    let rows = overlaid(table, &table.rows, &[&verdict.writes]);
    holders(table, rows.into_iter()).values().any(|ids| ids.len() > 1)
}

/// Errors of a statement that breaks unique indexes.
#[derive(Default)]
struct Clashes {
    certain: Vec<ErrorKind>,
    /// Under an index that another session has dropped, which has the rows from before.
    dropped: Vec<ErrorKind>,
}

fn clashes(table: &Table, sight: &Sight<'_>, writes: &Writes) -> Clashes {
    let mut clashes = Clashes::default();
    let empty = BTreeMap::new();
    let altered: State;
    let latest = match table.touch {
        // Rows of others have the new columns, too.
        Touch::Altered => {
            let catalog = Effect::Transaction(sight.catalog.to_vec(), Writes::new());
            altered = sight.model.latest.after(&catalog);
            &altered
        }
        _ => &sight.model.latest,
    };
    let newest = latest.by_id(table.id).filter(|_| table.touch != Touch::Emptied);
    let unique: Vec<&Index> = table.shape.unique().collect();
    let is_dropped =
        |at: usize| newest.is_some_and(|newest| !newest.shape.indexes.contains(unique[at]));
    let newest = newest.map_or(&empty, |newest| &newest.rows);
    let now = holders(table, overlaid(table, newest, &[sight.own, writes]).into_iter());
    let seen = holders(table, table.rows.iter().map(|(id, row)| (*id, row)));
    for ((_, id), row) in writes.iter().filter(|((of, _), _)| *of == table.id) {
        let Some(row) = row else { continue };
        let before = table.rows.get(id).map(|row| keys(table, row)).unwrap_or_default();
        for key in keys(table, row).into_iter().filter(|key| !before.contains(key)) {
            let errors = match is_dropped(key.0) {
                true => &mut clashes.dropped,
                false => &mut clashes.certain,
            };
            if now.get(&key).is_some_and(|ids| ids.iter().any(|other| other != id)) {
                errors.push(ErrorKind::Constraint);
            }
            let is_conflict = |other: &i64| {
                let row: RowId = (table.id, *other);
                other != id
                    && table.touch != Touch::Emptied
                    && !writes.contains_key(&row)
                    && sight.is_changed(row)
            };
            if seen.get(&key).is_some_and(|ids| ids.iter().any(is_conflict)) {
                errors.push(ErrorKind::Conflict);
            }
        }
    }
    clashes
}

/// Whether two rows of a table conflict under a unique index.
pub fn is_broken(table: &Table) -> bool {
    holders(table, table.rows.iter().map(|(id, row)| (*id, row))).values().any(|ids| ids.len() > 1)
}

/// The rows of a state, with changes applied, that have one of a row's keys: the primary key first,
/// then indexes in order.
fn met(table: &Table, writes: &Writes, row: &Row, indexes: bool) -> Vec<i64> {
    let mut met: Vec<i64> = Vec::new();
    let rows = overlaid(table, &table.rows, &[writes]);
    if table.shape.keyed && rows.contains_key(&row.k) {
        met.push(row.k);
    }
    for key in keys(table, row).into_iter().filter(|_| indexes) {
        let holder = rows.iter().find(|(_, other)| keys(table, other).contains(&key));
        met.extend(holder.map(|(id, _)| *id).filter(|id| !met.contains(id)));
    }
    met
}

/// Upserts rows one by one; each sees what earlier ones wrote.
pub fn upsert(table: &Table, rows: &[Row], how: Upsert, sight: &mut Sight<'_>) -> Verdict {
    if how == Upsert::Update && !table.shape.keyed {
        // There is no key on `k`.
        return Verdict::fails(&[ErrorKind::NotFound]);
    }
    let refused = Verdict::fails(&[ErrorKind::Constraint, ErrorKind::Conflict]);
    let mut verdict = Verdict::answer(Answer::Affected(0));
    let mut affected = 0;
    for row in rows {
        let new = table.shape.row(row.k, row);
        let met = met(table, &verdict.writes, &new, how != Upsert::Update);
        if matches!(how, Upsert::Ignore | Upsert::Nothing) && !met.is_empty() {
            // Rows that are only looked up are looked up in the snapshot.
            continue;
        }
        let own = if table.shape.keyed { row.k } else { sight.model.new_row() };
        // The first matching row is changed; others are only looked up, in the snapshot.
        let touched = match (how, met.first()) {
            (Upsert::Update | Upsert::Duplicate, Some(first)) => vec![*first],
            _ => met.iter().copied().chain([own]).collect(),
        };
        for id in touched.iter().map(|id| (table.id, *id)) {
            let is_changed = sight.is_changed(id);
            let is_free = !table.rows.contains_key(&id.1);
            if is_changed && is_free && sight.model.may_forget(id, sight.snapshot) {
                verdict.errors.push(ErrorKind::Conflict);
                let may_stand = sight.model.may_be_deleted(id);
                verdict.errors.extend(may_stand.then_some(ErrorKind::Constraint));
            } else if is_changed {
                return refused;
            }
        }
        match (how, met.first()) {
            (Upsert::Update | Upsert::Duplicate, Some(id)) => {
                let id = (table.id, *id);
                let old = verdict
                    .writes
                    .get(&id)
                    .cloned()
                    .flatten()
                    .or_else(|| table.rows.get(&id.1).cloned());
                let old = old.unwrap_or_else(|| new.clone());
                verdict.writes.insert(id, Some(Row { v: old.v + row.v, ..old }));
                verdict.locks.insert(id);
            }
            _ => {
                for id in met {
                    verdict.writes.insert((table.id, id), None);
                    verdict.locks.insert((table.id, id));
                }
                verdict.writes.insert((table.id, own), Some(new));
                verdict.locks.insert((table.id, own));
            }
        }
        if table.shape.unique().next().is_some() {
            let Clashes { certain, dropped } = clashes(table, sight, &verdict.writes);
            if !certain.is_empty() {
                return refused;
            }
            verdict.errors.extend(dropped);
        }
        affected += 1;
    }
    verdict.answer = Some(Answer::Affected(affected));
    verdict
}

/// Loads rows one by one, skipping or replacing duplicates, based on the newest state. Returns how
/// many rows of the load are there afterwards.
pub fn load(
    table: &Table,
    policy: OnDuplicate,
    rows: &[&Row],
    new_row: impl FnMut() -> i64,
) -> (Writes, u64) {
    let (mut writes, mut new_row) = (Writes::new(), new_row);
    for row in rows {
        let met = met(table, &writes, row, true);
        if policy == OnDuplicate::Skip && !met.is_empty() {
            continue;
        }
        for id in met {
            writes.insert((table.id, id), None);
        }
        let own = if table.shape.keyed { row.k } else { new_row() };
        writes.insert((table.id, own), Some((*row).clone()));
    }
    let loaded = writes.values().flatten().count() as u64;
    // A row that the load replaces itself has never been there.
    writes.retain(|(_, id), row| row.is_some() || table.rows.contains_key(id));
    (writes, loaded)
}
