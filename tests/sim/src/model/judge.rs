//! The model's verdict on statements. Snapshot isolation: a statement sees its transaction's
//! snapshot and own changes, and may change a row only if no other transaction has changed it since
//! the snapshot.

use crate::model::unique;
use crate::model::verdict::{Answer, Sight, Verdict};
use crate::model::{Model, Table, Touch, UNCOMMITTED, Writes};
use crate::op::condition::Where;
use crate::op::row::{Column, Row};
use crate::op::{Op, filled};
use nacredb::{ErrorKind, OnDuplicate};
use std::collections::BTreeMap;

/// Judges a statement that reads or writes rows of one table.
pub fn judge(op: &Op, sight: &mut Sight<'_>) -> Verdict {
    let (name, rows) = match op {
        Op::Select { table, rows } | Op::Audit { table, rows } | Op::ForUpdate { table, rows } => {
            (*table, rows)
        }
        Op::Open { table, rows } => (*table, rows),
        Op::First { table, rows, .. } | Op::Join { table, rows, .. } => (*table, rows),
        Op::Add { table, rows, .. } | Op::Text { table, rows, .. } => (*table, rows),
        Op::Number { table, rows, .. } | Op::Wide { table, rows, .. } => (*table, rows),
        Op::Rekey { table, rows, .. } | Op::Delete { table, rows } => (*table, rows),
        Op::Insert { table, .. } | Op::Upsert { table, .. } | Op::Copy { table, .. } => {
            (*table, &Where::All)
        }
        _ => return Verdict::done(),
    };
    let reads = matches!(
        op,
        Op::Select { .. } | Op::Open { .. } | Op::Audit { .. } | Op::First { .. } | Op::Join { .. }
    );
    let is_view = sight.view.views.contains_key(name);
    let missing = if is_view { ErrorKind::Unsupported } else { ErrorKind::NotFound };
    let table = match reads {
        true => sight.read(name),
        false => sight.view.tables.get(name).cloned().ok_or(missing),
    };
    let table = match table {
        Ok(table) => table,
        Err(kind) => return Verdict::fails(&[kind]),
    };
    if !table.shape.knows(rows) || matches!(op, Op::Wide { .. }) && !table.shape.has(Column::W) {
        return Verdict::fails(&[ErrorKind::NotFound]);
    }
    let found: BTreeMap<i64, Row> = table
        .rows
        .iter()
        .filter(|(_, row)| rows.holds(row))
        .map(|(id, row)| (*id, row.clone()))
        .collect();
    let mut verdict = judge_rows(op, &table, &found, sight);
    if op.changes_rows() {
        unique::check(&table, sight, &mut verdict);
    }
    // A transaction that sees an older version of the table, or one that was dropped since, must not
    // write.
    let newest = sight.model.latest.by_id(table.id);
    let is_superseded = newest.is_none_or(|newest| newest.writable > table.since);
    let is_own = table.since == UNCOMMITTED || table.touch != Touch::None;
    let is_old = !is_own && is_superseded;
    if op.locks_rows() && is_old {
        if verdict.locks.is_empty() {
            verdict.errors.push(ErrorKind::Conflict);
        } else {
            verdict = Verdict::fails(&[ErrorKind::Conflict]);
        }
    }
    verdict
}

fn judge_rows(
    op: &Op,
    table: &Table,
    found: &BTreeMap<i64, Row>,
    sight: &mut Sight<'_>,
) -> Verdict {
    match op {
        Op::Select { .. } | Op::Open { .. } => Verdict::answer(printed(table, found)),
        Op::Audit { .. } => {
            let sum = match found.is_empty() {
                true => "NULL".to_string(),
                false => found.values().map(|r| r.v).sum::<i64>().to_string(),
            };
            Verdict::answer(Answer::Rows(vec![vec![found.len().to_string(), sum]]))
        }
        Op::First { limit, down, .. } => {
            let mut numbers: Vec<i64> = found.values().map(|row| row.v).collect();
            numbers.sort_unstable();
            if *down {
                numbers.reverse();
            }
            numbers.truncate(*limit);
            let mut rows: Vec<Vec<String>> = numbers.iter().map(|v| vec![v.to_string()]).collect();
            rows.sort();
            Verdict::answer(Answer::Rows(rows))
        }
        Op::Join { with, .. } => match sight.read(with) {
            Ok(right) => Verdict::answer(join(found, &right)),
            Err(kind) => Verdict::fails(&[kind]),
        },
        Op::ForUpdate { .. } => lock(table, found, sight, printed(table, found)),
        Op::Add { add, .. } => {
            change(table, found, sight, |row| Some(Row { v: row.v + add, ..row.clone() }))
        }
        Op::Number { v, .. } => {
            change(table, found, sight, |row| Some(Row { v: *v, ..row.clone() }))
        }
        Op::Wide { w, .. } => change(table, found, sight, |row| Some(Row { w: *w, ..row.clone() })),
        Op::Text { text, .. } => {
            change(table, found, sight, |row| Some(Row { s: text.clone(), ..row.clone() }))
        }
        Op::Delete { .. } => change(table, found, sight, |_| None),
        Op::Rekey { by, .. } if !table.shape.keyed => {
            change(table, found, sight, |row| Some(Row { k: row.k + by, ..row.clone() }))
        }
        Op::Rekey { by, .. } => {
            let mut verdict = change(table, found, sight, |_| None);
            if verdict.answer.is_some() {
                let moved: Vec<Row> =
                    found.values().map(|row| Row { k: row.k + by, ..row.clone() }).collect();
                insert(table, &moved, sight, &mut verdict);
                if verdict.answer.is_none() {
                    // Which of several rows fails first depends on the scan order.
                    verdict.errors = vec![ErrorKind::Constraint, ErrorKind::Conflict];
                }
            }
            verdict
        }
        Op::Insert { rows, .. } => {
            let mut verdict = Verdict::answer(Answer::Affected(rows.len() as u64));
            let rows: Vec<Row> = rows.iter().map(|row| table.shape.row(row.k, row)).collect();
            insert(table, &rows, sight, &mut verdict);
            verdict
        }
        Op::Upsert { rows, how, .. } => unique::upsert(table, rows, *how, sight),
        Op::Copy { from, rows, by, .. } => {
            let source = match sight.read(from) {
                Ok(source) => source,
                Err(kind) => return Verdict::fails(&[kind]),
            };
            if !source.shape.knows(rows) {
                return Verdict::fails(&[ErrorKind::NotFound]);
            }
            let picked = source.rows.values().filter(|row| rows.holds(row));
            let copies: Vec<Row> = picked.map(|row| table.shape.row(row.k + by, row)).collect();
            let mut verdict = Verdict::answer(Answer::Affected(copies.len() as u64));
            insert(table, &copies, sight, &mut verdict);
            if verdict.answer.is_none() {
                // Which of several rows fails first depends on the scan order.
                verdict.errors = vec![ErrorKind::Constraint, ErrorKind::Conflict];
            }
            verdict
        }
        _ => Verdict::done(),
    }
}

fn printed(table: &Table, found: &BTreeMap<i64, Row>) -> Answer {
    let mut rows: Vec<Vec<String>> = found.values().map(|row| table.shape.printed(row)).collect();
    rows.sort();
    Answer::Rows(rows)
}

fn join(left: &BTreeMap<i64, Row>, right: &Table) -> Answer {
    let mut by_number: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for row in right.rows.values() {
        let (count, keys) = by_number.entry(row.v).or_default();
        (*count, *keys) = (*count + 1, *keys + row.k);
    }
    let (mut pairs, mut lefts, mut rights) = (0, 0, 0);
    for row in left.values() {
        if let Some((count, keys)) = by_number.get(&row.v) {
            (pairs, lefts, rights) = (pairs + count, lefts + row.k * count, rights + keys);
        }
    }
    let sum = |sum: i64| if pairs == 0 { "NULL".to_string() } else { sum.to_string() };
    Answer::Rows(vec![vec![pairs.to_string(), sum(lefts), sum(rights)]])
}

/// Locks the rows found, unless another transaction has changed one since the snapshot.
fn lock(table: &Table, found: &BTreeMap<i64, Row>, sight: &Sight<'_>, answer: Answer) -> Verdict {
    if found.keys().any(|id| sight.is_changed((table.id, *id))) {
        return Verdict::fails(&[ErrorKind::Conflict]);
    }
    let mut verdict = Verdict::answer(answer);
    verdict.locks = found.keys().map(|id| (table.id, *id)).collect();
    verdict
}

fn change(
    table: &Table,
    found: &BTreeMap<i64, Row>,
    sight: &Sight<'_>,
    new: impl Fn(&Row) -> Option<Row>,
) -> Verdict {
    let mut verdict = lock(table, found, sight, Answer::Affected(found.len() as u64));
    if verdict.answer.is_some() {
        verdict.writes = found.iter().map(|(id, row)| ((table.id, *id), new(row))).collect();
    }
    verdict
}

/// Adds rows to the verdict's changes.
fn insert(table: &Table, rows: &[Row], sight: &mut Sight<'_>, verdict: &mut Verdict) {
    for row in rows {
        if !table.shape.keyed {
            let id = (table.id, sight.model.new_row());
            verdict.writes.insert(id, Some(row.clone()));
            verdict.locks.insert(id);
            continue;
        }
        let id = (table.id, row.k);
        let seen = match verdict.writes.get(&id) {
            Some(written) => written.is_some(),
            None => table.rows.contains_key(&row.k),
        };
        let changed = table.touch != Touch::Emptied && sight.is_changed(id);
        let is_forgotten = !seen && changed && sight.model.may_forget(id, sight.snapshot);
        if is_forgotten {
            verdict.errors.push(ErrorKind::Conflict);
            let may_stand = sight.model.may_be_deleted(id);
            verdict.errors.extend(may_stand.then_some(ErrorKind::Constraint));
        }
        if !seen && !changed || is_forgotten {
            verdict.writes.insert(id, Some(row.clone()));
            verdict.locks.insert(id);
            continue;
        }
        // Another row with the key exists, or the visible one was removed.
        let newest = sight.model.latest.tables.values().find(|t| t.id == table.id);
        let newest = newest.filter(|_| table.touch != Touch::Emptied);
        let stands = seen && !changed || newest.is_some_and(|t| t.rows.contains_key(&row.k));
        let errors = [(stands, ErrorKind::Constraint), (changed, ErrorKind::Conflict)];
        let errors: Vec<ErrorKind> =
            errors.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
        *verdict = Verdict::fails(&[errors, std::mem::take(&mut verdict.errors)].concat());
        return;
    }
}

/// Judges a bulk load that publishes now into the table version it was started on.
pub fn judge_bulk(
    model: &mut Model,
    (id, since): (u64, u64),
    policy: OnDuplicate,
    rows: &[&Row],
) -> Verdict {
    // Errors before its end refer to the version it started on.
    let Some(table) = model.latest.by_id(id).cloned() else {
        // The table may have been altered before it was dropped.
        return Verdict::fails(&[ErrorKind::NotFound, ErrorKind::Constraint, ErrorKind::Conflict]);
    };
    if table.since != since {
        return Verdict::fails(&[ErrorKind::Conflict, ErrorKind::Constraint]);
    }
    let one_by_one = policy != OnDuplicate::Error && table.shape.unique().next().is_some();
    let mut verdict = Verdict::answer(Answer::Done);
    let loaded = if one_by_one {
        let (writes, loaded) = unique::load(&table, policy, rows, || model.new_row());
        verdict.writes = writes;
        loaded
    } else {
        let mut writes = Writes::new();
        for row in rows {
            if !table.shape.keyed {
                writes.insert((table.id, model.new_row()), Some((*row).clone()));
                continue;
            }
            let id = (table.id, row.k);
            let there = table.rows.contains_key(&row.k) || writes.contains_key(&id);
            match policy {
                OnDuplicate::Error if there => return Verdict::fails(&[ErrorKind::Constraint]),
                OnDuplicate::Skip if there => {}
                _ => {
                    writes.insert(id, Some((*row).clone()));
                }
            }
        }
        verdict.writes = writes;
        verdict.writes.len() as u64
    };
    verdict.answer = Some(Answer::Affected(loaded));
    verdict.locks = verdict.writes.keys().copied().collect();
    if policy == OnDuplicate::Error {
        let (own, view) = (Writes::new(), model.latest.clone());
        let snapshot = model.index;
        let sight = Sight { model, view: &view, snapshot, own: &own, catalog: &[] };
        unique::check(&table, &sight, &mut verdict);
    }
    verdict
}

/// Judges an [`Op::Fill`] that publishes now.
pub fn judge_fill(model: &mut Model, name: &str, policy: OnDuplicate, rows: i64) -> Verdict {
    let Some(table) = model.latest.tables.get(name) else {
        return Verdict::fails(&[ErrorKind::NotFound]);
    };
    let place = (table.id, table.since);
    let rows: Vec<Row> = filled(rows).map(|row| table.shape.row(row.k, &row)).collect();
    let mut verdict = judge_bulk(model, place, policy, &rows.iter().collect::<Vec<_>>());
    // A statement counts rows that give way to later ones.
    if policy == OnDuplicate::Replace && matches!(verdict.answer, Some(Answer::Affected(_))) {
        verdict.answer = Some(Answer::Affected(rows.len() as u64));
    }
    verdict
}
