//! What each statement must answer, by the model. Snapshot isolation: a statement sees its transaction's snapshot and
//! own changes; it may change a row only if nobody else has since the snapshot.

use crate::model::{Model, RowId, State, Table, Writes};
use crate::op::{Op, Row, Upsert, Where};
use nacredb::{ErrorKind, OnDuplicate};
use std::collections::{BTreeMap, BTreeSet};

/// What a statement answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows as text, sorted.
    Rows(Vec<Vec<String>>),
    /// Rows changed.
    Affected(u64),
    /// Nothing to compare.
    Done,
}

/// What the model says of a statement.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The answer, if it may succeed.
    pub answer: Option<Answer>,
    /// Its errors, if it may fail for reasons that the model knows.
    pub errors: Vec<ErrorKind>,
    /// What it changes.
    pub writes: Writes,
    /// What it locks.
    pub locks: BTreeSet<RowId>,
}

impl Verdict {
    fn answer(answer: Answer) -> Verdict {
        Verdict { answer: Some(answer), errors: Vec::new(), writes: Writes::new(), locks: BTreeSet::new() }
    }

    /// Succeeds with nothing to compare.
    pub fn done() -> Verdict {
        Verdict::answer(Answer::Done)
    }

    /// Answers with no rows.
    pub fn nothing_found() -> Verdict {
        Verdict::answer(Answer::Rows(Vec::new()))
    }

    /// Must fail, in one of these ways.
    pub fn fails(errors: &[ErrorKind]) -> Verdict {
        Verdict { answer: None, errors: errors.to_vec(), writes: Writes::new(), locks: BTreeSet::new() }
    }
}

/// What a statement sees.
pub struct Sight<'a> {
    /// The committed states.
    pub model: &'a mut Model,
    /// The snapshot with own changes.
    pub view: &'a State,
    /// The snapshot's commit.
    pub snapshot: u64,
}

/// Judges a statement that reads or writes rows of one table.
pub fn judge(op: &Op, sight: &mut Sight<'_>) -> Verdict {
    let (name, rows) = match op {
        Op::Select { table, rows } | Op::Audit { table, rows } | Op::ForUpdate { table, rows } => (*table, rows),
        Op::Add { table, rows, .. } | Op::Text { table, rows, .. } => (*table, rows),
        Op::Rekey { table, rows, .. } | Op::Delete { table, rows } => (*table, rows),
        Op::Insert { table, .. } | Op::Upsert { table, .. } | Op::Copy { table, .. } => (*table, &Where::All),
        _ => return Verdict::done(),
    };
    let Some(table) = sight.view.table(&sight.model.latest, name) else {
        return Verdict::fails(&[ErrorKind::NotFound]);
    };
    let found: BTreeMap<i64, Row> =
        table.rows.iter().filter(|(_, row)| rows.holds(row)).map(|(id, row)| (*id, row.clone())).collect();
    match op {
        Op::Select { .. } => Verdict::answer(printed(&found)),
        Op::Audit { .. } => {
            let sum = match found.is_empty() {
                true => "NULL".to_string(),
                false => found.values().map(|r| r.v).sum::<i64>().to_string(),
            };
            Verdict::answer(Answer::Rows(vec![vec![found.len().to_string(), sum]]))
        }
        Op::ForUpdate { .. } => lock(&table, &found, sight, printed(&found)),
        Op::Add { add, .. } => change(&table, &found, sight, |row| Some(Row { v: row.v + add, ..row.clone() })),
        Op::Text { text, .. } => change(&table, &found, sight, |row| Some(Row { s: text.clone(), ..row.clone() })),
        Op::Delete { .. } => change(&table, &found, sight, |_| None),
        Op::Rekey { by, .. } if !table.keyed => {
            change(&table, &found, sight, |row| Some(Row { k: row.k + by, ..row.clone() }))
        }
        Op::Rekey { by, .. } => {
            let mut verdict = change(&table, &found, sight, |_| None);
            if verdict.answer.is_some() {
                let moved: Vec<Row> = found.values().map(|row| Row { k: row.k + by, ..row.clone() }).collect();
                insert(&table, &moved, sight, &mut verdict);
            }
            verdict
        }
        Op::Insert { rows, .. } => {
            let mut verdict = Verdict::answer(Answer::Affected(rows.len() as u64));
            insert(&table, rows, sight, &mut verdict);
            verdict
        }
        Op::Upsert { rows, how, .. } => upsert(&table, rows, *how, sight),
        Op::Copy { from, rows, by, .. } => {
            let Some(source) = sight.view.table(&sight.model.latest, from) else {
                return Verdict::fails(&[ErrorKind::NotFound]);
            };
            let picked = source.rows.values().filter(|row| rows.holds(row));
            let copies: Vec<Row> = picked.map(|row| Row { k: row.k + by, ..row.clone() }).collect();
            let mut verdict = Verdict::answer(Answer::Affected(copies.len() as u64));
            insert(&table, &copies, sight, &mut verdict);
            if verdict.answer.is_none() {
                // Which of several rows fails first depends on the order of the scan.
                verdict.errors = vec![ErrorKind::Constraint, ErrorKind::Conflict];
            }
            verdict
        }
        _ => Verdict::done(),
    }
}

/// Rows of a keyed table one after the other; a later one meets what an earlier one left.
fn upsert(table: &Table, rows: &[Row], how: Upsert, sight: &mut Sight<'_>) -> Verdict {
    let mut verdict = Verdict::answer(Answer::Affected(0));
    let mut affected = 0;
    for row in rows {
        let id = (table.id, row.k);
        let old = match verdict.writes.get(&id) {
            Some(written) => written.clone(),
            None => table.rows.get(&row.k).cloned(),
        };
        let skips = matches!(how, Upsert::Ignore | Upsert::Nothing);
        if skips && old.is_some() {
            // What is only looked at is looked at in the snapshot.
            continue;
        }
        if sight.model.changed_since(id, sight.snapshot) {
            return Verdict::fails(&[ErrorKind::Constraint, ErrorKind::Conflict]);
        }
        let new = match (old, how) {
            (Some(old), Upsert::Update | Upsert::Duplicate) => Row { v: old.v + row.v, ..old },
            _ => row.clone(),
        };
        affected += 1;
        verdict.writes.insert(id, Some(new));
        verdict.locks.insert(id);
    }
    verdict.answer = Some(Answer::Affected(affected));
    verdict
}

fn printed(found: &BTreeMap<i64, Row>) -> Answer {
    let mut rows: Vec<Vec<String>> = found.values().map(Row::printed).collect();
    rows.sort();
    Answer::Rows(rows)
}

/// Rows that were seen are locked, unless somebody has changed one since.
fn lock(table: &Table, found: &BTreeMap<i64, Row>, sight: &Sight<'_>, answer: Answer) -> Verdict {
    if found.keys().any(|id| sight.model.changed_since((table.id, *id), sight.snapshot)) {
        return Verdict::fails(&[ErrorKind::Conflict]);
    }
    let mut verdict = Verdict::answer(answer);
    verdict.locks = found.keys().map(|id| (table.id, *id)).collect();
    verdict
}

fn change(table: &Table, found: &BTreeMap<i64, Row>, sight: &Sight<'_>, new: impl Fn(&Row) -> Option<Row>) -> Verdict {
    let mut verdict = lock(table, found, sight, Answer::Affected(found.len() as u64));
    if verdict.answer.is_some() {
        verdict.writes = found.iter().map(|(id, row)| ((table.id, *id), new(row))).collect();
    }
    verdict
}

/// Adds rows on top of what the verdict changes already.
fn insert(table: &Table, rows: &[Row], sight: &mut Sight<'_>, verdict: &mut Verdict) {
    for row in rows {
        if !table.keyed {
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
        let changed = sight.model.changed_since(id, sight.snapshot);
        if !seen && !changed {
            verdict.writes.insert(id, Some(row.clone()));
            verdict.locks.insert(id);
            continue;
        }
        // Somebody else's row stands in the way, or somebody removed the one that was seen.
        let newest = sight.model.latest.tables.values().find(|t| t.id == table.id);
        let stands = seen && !changed || newest.is_some_and(|t| t.rows.contains_key(&row.k));
        let errors = [(stands, ErrorKind::Constraint), (changed, ErrorKind::Conflict)];
        let errors: Vec<ErrorKind> = errors.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
        *verdict = Verdict::fails(&errors);
        return;
    }
}

/// Judges a bulk load that publishes now into the table that it was started on.
pub fn judge_bulk(model: &mut Model, table: u64, policy: OnDuplicate, batches: &[Vec<Row>]) -> Verdict {
    let Some(table) = model.latest.tables.values().find(|t| t.id == table).cloned() else {
        return Verdict::fails(&[ErrorKind::NotFound]);
    };
    let mut writes = Writes::new();
    for row in batches.iter().flatten() {
        if !table.keyed {
            writes.insert((table.id, model.new_row()), Some(row.clone()));
            continue;
        }
        let id = (table.id, row.k);
        let there = table.rows.contains_key(&row.k) || writes.contains_key(&id);
        match policy {
            OnDuplicate::Error if there => return Verdict::fails(&[ErrorKind::Constraint]),
            OnDuplicate::Skip if there => {}
            _ => {
                writes.insert(id, Some(row.clone()));
            }
        }
    }
    let mut verdict = Verdict::answer(Answer::Affected(writes.len() as u64));
    verdict.locks = writes.keys().copied().collect();
    verdict.writes = writes;
    verdict
}
