//! The objects of an operation, and the effect of its verdict on the committed state.

use crate::model::verdict::{Answer, Verdict};
use crate::model::{Effect, State, Touch, Txn, unique};
use crate::op::Op;
use nacredb::{ErrorKind, Result};
use std::collections::BTreeSet;

/// Whether the operation is a commit on its own outside a transaction, or ends one.
pub fn is_commit(op: &Op) -> bool {
    op.changes_rows() || op.is_load() || op.is_ddl() || matches!(op, Op::Commit)
}

/// The effect of committing a verdict.
pub fn effect(verdict: &Verdict) -> Effect {
    verdict.catalog.clone().unwrap_or_else(|| Effect::Rows(verdict.writes.clone()))
}

/// The expected result of a `COMMIT`.
pub fn judge_commit(txn: &Txn, latest: &State) -> Verdict {
    // The version that was written to must still be the newest.
    // A table that the transaction has created is in no other state.
    let alive = |table: u64| match txn.versions.get(&table) {
        Some(writable) => latest.by_id(table).is_some_and(|t| *writable == t.writable),
        None => true,
    };
    let mut verdict = Verdict::done();
    verdict.writes = txn.writes.clone();
    if txn.writes.is_empty() && txn.catalog.is_empty() {
        return verdict;
    }
    if !txn.catalog.is_empty() {
        verdict.catalog = Some(txn.effect());
    }
    // Rows of others may break a unique index that was created before they were written. If there is a conflict,
    // too, either may be found first.
    let left = latest.after(&txn.effect());
    let mut altered = txn.view.tables.values().filter(|table| table.touch != Touch::None);
    let is_broken = altered.any(|table| left.by_id(table.id).is_some_and(unique::is_broken));
    let conflict = match is_broken {
        true => Verdict::fails(&[ErrorKind::Conflict, ErrorKind::Constraint]),
        false => Verdict::fails(&[ErrorKind::Conflict]),
    };
    // Of two that change what a name stands for, the first one wins.
    let names: BTreeSet<&str> = txn.catalog.iter().flat_map(Effect::names).collect();
    if names.iter().any(|name| !txn.base.agrees(&txn.view, name) && !txn.base.agrees(latest, name))
    {
        return conflict;
    }
    // So does the first of two that change a table.
    if txn.view.tables.values().any(|table| table.is_stale(latest)) {
        return conflict;
    }
    if !txn.writes.keys().all(|(table, _)| alive(*table)) {
        return conflict;
    }
    let locked: BTreeSet<u64> = txn.locks.iter().map(|(table, _)| *table).collect();
    if !locked.iter().all(|table| alive(*table)) {
        verdict.errors.push(ErrorKind::Conflict);
    }
    if is_broken {
        return Verdict::fails(&[ErrorKind::Constraint]);
    }
    verdict
}

/// The table or view that an operation refers to.
pub fn table_of(op: &Op) -> Option<&'static str> {
    match op {
        Op::Select { table, .. } | Op::Audit { table, .. } | Op::ForUpdate { table, .. } => {
            Some(table)
        }
        Op::First { table, .. } | Op::Join { table, .. } | Op::Fill { table, .. } => Some(table),
        Op::Insert { table, .. } | Op::Add { table, .. } | Op::Text { table, .. } => Some(table),
        Op::Number { table, .. } | Op::Wide { table, .. } => Some(table),
        Op::Rekey { table, .. } | Op::Delete { table, .. } | Op::Bulk { table, .. } => Some(table),
        Op::Upsert { table, .. } | Op::Copy { table, .. } => Some(table),
        Op::CreateAs { table, .. } => Some(table),
        Op::Create { table, .. } | Op::Drop { table } | Op::Optimize { table, .. } => Some(table),
        Op::CreateIndex { table, .. } | Op::DropIndex { table, .. } | Op::Truncate { table } => {
            Some(table)
        }
        Op::AddColumn { table, .. } | Op::DropColumn { table, .. } => Some(table),
        Op::Rename { table, .. } | Op::RenameColumn { table, .. } | Op::Open { table, .. } => {
            Some(table)
        }
        Op::CreateView { view, .. } | Op::DropView { view, .. } => Some(view),
        _ => None,
    }
}

/// All tables and views that it names.
pub fn tables_of(op: &Op) -> impl Iterator<Item = &'static str> {
    let other = match op {
        Op::Join { with: other, .. } => Some(*other),
        Op::Copy { from: other, .. } | Op::CreateAs { from: other, .. } => Some(*other),
        Op::CreateView { from: other, .. } | Op::Rename { to: other, .. } => Some(*other),
        _ => None,
    };
    table_of(op).into_iter().chain(other)
}

/// A result as part of a failure message.
pub fn show(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => {
            let lines: Vec<String> =
                rows.iter().take(40).map(|row| short(&row.join(" "))).collect();
            format!("{} rows {lines:?}", rows.len())
        }
        other => format!("{other:?}"),
    }
}

/// A result as a line of the story.
pub fn told(result: &Result<Answer>) -> String {
    match result {
        Ok(Answer::Rows(rows)) if rows.len() > 6 => format!("{} rows", rows.len()),
        Ok(Answer::Rows(rows)) => {
            let rows: Vec<String> = rows.iter().map(|row| short(&row.join(" "))).collect();
            format!("{rows:?}")
        }
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{}: {}", error.kind().name(), error.message()),
    }
}

/// Truncates a long text, which its beginning identifies.
pub fn short(text: &str) -> String {
    if text.len() > 40 {
        format!("{}…", text.chars().take(40).collect::<String>())
    } else {
        text.to_string()
    }
}
