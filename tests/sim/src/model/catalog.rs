//! The effect of catalog changes on tables, in the model.

use crate::model::read;
use crate::model::unique;
use crate::model::verdict::{Answer, Verdict};
use crate::model::view::View;
use crate::model::{Effect, Model, State, Table, Touch, Txn, UNCOMMITTED};
use crate::op::condition::Where;
use crate::op::row::{Column, Row};
use crate::op::shape::Shape;
use crate::op::{Op, Place};
use nacredb::ErrorKind;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Judges a `CREATE TABLE AS` that commits now and reads the state when it began, after the commit
/// `base_index`.
pub fn judge_create_as(op: &Op, base: &State, base_index: u64, model: &mut Model) -> Verdict {
    let Op::CreateAs { table: name, from, rows, if_missing } = op else { return Verdict::done() };
    // A statement that finds the table at its start is done; otherwise another session may take the
    // name until it ends.
    let exists = base.tables.contains_key(name) || model.latest.tables.contains_key(name);
    let source = base.read(from).and_then(|source| match source.shape.knows(rows) {
        true => Ok(source),
        false => Err(ErrorKind::NotFound),
    });
    let mut errors = Vec::new();
    if exists && !*if_missing || model.latest.views.contains_key(name) {
        errors.push(ErrorKind::AlreadyExists);
    }
    let source = match source {
        Ok(source) if errors.is_empty() => source,
        Ok(_) => return Verdict::fails(&errors),
        Err(kind) => {
            errors.push(kind);
            return Verdict::fails(&errors);
        }
    };
    if exists {
        return Verdict::done();
    }
    let picked = source.rows.values().filter(|row| rows.holds(row));
    let copied: BTreeMap<i64, Row> =
        picked.map(|row| (model.new_row(), Row { w: None, z: None, ..row.clone() })).collect();
    let answer = Answer::Affected(copied.len() as u64);
    let table = Table { rows: Rc::new(copied), ..Table::made(Shape::new(false, &[])) };
    // Another table may have had the name briefly when the statement checked.
    if model.freed_since(name, base_index) && !*if_missing {
        errors.push(ErrorKind::AlreadyExists);
    }
    // A statement that is retried reads a later state, in which a name that leads to its rows may
    // stand for nothing: as if it had begun after the commit that dropped or renamed the table.
    let reached = read::reached(std::iter::once(*from), &base.views);
    if reached.iter().any(|name| model.freed_since(name, base_index)) {
        errors.push(ErrorKind::NotFound);
    }
    Verdict { answer: Some(answer), errors, ..becomes(name, Some(table)) }
}

/// Judges a change of a table or view in an open transaction, which sees it at once. `base` was
/// committed when it began.
pub fn judge_within(op: &Op, name: &str, txn: &Txn, base: &State, model: &mut Model) -> Verdict {
    let mut verdict = match op {
        Op::CreateAs { table: name, from, rows, if_missing } => {
            judge_create_as_within(name, from, rows, *if_missing, txn, model)
        }
        op => judge_ddl(op, &txn.view),
    };
    let is_creation = matches!(
        op,
        Op::Create { .. } | Op::CreateAs { .. } | Op::CreateView { .. } | Op::DropView { .. }
    );
    let Some(known) = txn.view.tables.get(name).filter(|_| !is_creation) else { return verdict };
    if known.since == UNCOMMITTED {
        return verdict;
    }
    // Rows of others are verified, too, but not for the last time, and while others change them.
    let unique = matches!(op, Op::CreateIndex { index, .. } if index.unique);
    let mut breaks = |state: &State| {
        let is_verified = unique && known.touch != Touch::Emptied && verdict.answer.is_some();
        if is_verified && leaves_broken(&judge_change(op, &state.after(&txn.effect()))) {
            verdict.errors.push(ErrorKind::Constraint);
        }
    };
    breaks(base);
    let newest = model.latest.by_id(known.id);
    if newest.is_none_or(|newest| newest.since != known.since) {
        // Another session may have changed it while the statement ran.
        verdict.errors.push(ErrorKind::Conflict);
        return verdict;
    }
    breaks(&model.latest);
    // Rows that seemed to have one key may have been changed when it was looked for again.
    let rows = |state: &State| state.by_id(known.id).map(|table| table.rows.clone());
    if unique && rows(base) != rows(&model.latest) {
        verdict.errors.push(ErrorKind::Conflict);
    }
    verdict
}

/// Whether an operation changes a table, and neither creates nor drops it.
pub fn alters(op: &Op) -> bool {
    matches!(
        op,
        Op::CreateIndex { .. }
            | Op::DropIndex { .. }
            | Op::AddColumn { .. }
            | Op::DropColumn { .. }
            | Op::RenameColumn { .. }
            | Op::Rename { .. }
            | Op::Truncate { .. }
    )
}

fn judge_create_as_within(
    name: &'static str,
    from: &'static str,
    rows: &Where,
    if_missing: bool,
    txn: &Txn,
    model: &mut Model,
) -> Verdict {
    let source = txn.view.read(from).and_then(|source| match source.shape.knows(rows) {
        true => Ok(source),
        false => Err(ErrorKind::NotFound),
    });
    let exists = txn.view.tables.contains_key(name);
    let mut errors = Vec::new();
    if exists && !if_missing || txn.view.views.contains_key(name) {
        errors.push(ErrorKind::AlreadyExists);
    }
    let source = match source {
        Ok(source) if errors.is_empty() => source,
        source => {
            errors.extend(source.err());
            return Verdict::fails(&errors);
        }
    };
    // What the transaction has changed of a table cannot be committed any more.
    if read::reaches_stale(std::iter::once(from), &txn.view, &model.latest) {
        errors.push(ErrorKind::Conflict);
    }
    if exists {
        return Verdict { errors, ..Verdict::done() };
    }
    let picked = source.rows.values().filter(|row| rows.holds(row));
    let copied: BTreeMap<i64, Row> =
        picked.map(|row| (model.new_row(), Row { w: None, z: None, ..row.clone() })).collect();
    let answer = Some(Answer::Affected(copied.len() as u64));
    let table = Table { rows: Rc::new(copied), ..Table::made(Shape::new(false, &[])) };
    Verdict { answer, errors, ..becomes(name, Some(table)) }
}

/// Judges a catalog change that commits now.
pub fn judge_ddl(op: &Op, latest: &State) -> Verdict {
    let verdict = judge_change(op, latest);
    match matches!(op, Op::CreateIndex { .. }) && leaves_broken(&verdict) {
        true => Verdict::fails(&[ErrorKind::Constraint]),
        false => verdict,
    }
}

/// Whether rows break a unique index of the table that a change leaves.
fn leaves_broken(verdict: &Verdict) -> bool {
    matches!(&verdict.catalog, Some(Effect::Table(_, Some(table))) if unique::is_broken(table))
}

/// Judges a catalog change, whatever rows break its unique index: a transaction verifies them again
/// when it commits.
pub fn judge_change(op: &Op, latest: &State) -> Verdict {
    let name = match op {
        Op::Create { table, keyed, indexes, documents, if_missing, .. } => {
            return match latest.tables.contains_key(table) {
                _ if latest.views.contains_key(table) => {
                    Verdict::fails(&[ErrorKind::AlreadyExists])
                }
                true if !*if_missing => Verdict::fails(&[ErrorKind::AlreadyExists]),
                true => Verdict::done(),
                false => {
                    let shape = Shape::new(*keyed, indexes);
                    let shape = if *documents { shape.with_documents() } else { shape };
                    becomes(table, Some(Table::made(shape)))
                }
            };
        }
        Op::Drop { table } | Op::Truncate { table } => *table,
        Op::CreateIndex { table, .. } | Op::DropIndex { table, .. } => *table,
        Op::AddColumn { table, .. } | Op::DropColumn { table, .. } => *table,
        Op::Rename { table, .. } | Op::RenameColumn { table, .. } => *table,
        Op::CreateView { .. } => return judge_create_view(op, latest),
        Op::DropView { view, if_there } => {
            return match latest.views.contains_key(view) {
                true => Verdict { catalog: Some(Effect::View(view, None)), ..Verdict::done() },
                false if *if_there => Verdict::done(),
                false => Verdict::fails(&[ErrorKind::NotFound]),
            };
        }
        _ => return Verdict::done(),
    };
    let Some(table) = latest.tables.get(name) else {
        let view = latest.views.contains_key(name);
        return Verdict::fails(&[if view { ErrorKind::Unsupported } else { ErrorKind::NotFound }]);
    };
    let has_index = |name: &str| table.shape.indexes.iter().any(|index| index.name == name);
    let has_w = table.shape.has(Column::W);
    let changed = match op {
        Op::Drop { .. } => return becomes(name, None),
        Op::Rename { to, .. } => {
            return match latest.tables.contains_key(to) || latest.views.contains_key(to) {
                _ if *to == name => Verdict::done(),
                true => Verdict::fails(&[ErrorKind::AlreadyExists]),
                false => Verdict { catalog: Some(Effect::Rename(name, to)), ..Verdict::done() },
            };
        }
        Op::RenameColumn { from, to, .. } => {
            if !table.shape.has(*from) {
                return Verdict::fails(&[ErrorKind::NotFound]);
            }
            if table.shape.has(*to) {
                return Verdict::fails(&[ErrorKind::AlreadyExists]);
            }
            let changed = table.altered(|shape| {
                shape
                    .columns
                    .iter_mut()
                    .filter(|column| *column == from)
                    .for_each(|column| *column = *to);
                shape.indexes.iter_mut().for_each(|index| *index = index.renamed(*from, *to));
                std::mem::swap(&mut shape.default_w, &mut shape.default_z);
            });
            with(changed, |row| Row { w: row.z, z: row.w, ..row.clone() })
        }
        Op::Truncate { .. } => table.emptied(),
        Op::CreateIndex { index, alter, if_missing, .. } => {
            if has_index(index.name) && *if_missing && !*alter {
                return Verdict::done();
            }
            let mut errors = Vec::new();
            if has_index(index.name) {
                errors.push(ErrorKind::AlreadyExists);
            }
            if !index.columns.iter().all(|column| table.shape.has(*column)) {
                errors.push(ErrorKind::NotFound);
            }
            if !errors.is_empty() {
                return Verdict::fails(&errors);
            }
            table.altered(|shape| shape.indexes.push(*index))
        }
        Op::DropIndex { name, alter, if_there, .. } => match has_index(name) {
            true => table.altered(|shape| shape.indexes.retain(|index| index.name != *name)),
            false if *if_there && !*alter => return Verdict::done(),
            false => return Verdict::fails(&[ErrorKind::NotFound]),
        },
        Op::AddColumn { default, place, if_missing, .. } => match has_w {
            true if *if_missing => return Verdict::done(),
            true => return Verdict::fails(&[ErrorKind::AlreadyExists]),
            false => {
                let changed = table.altered(|shape| {
                    shape.default_w = *default;
                    let at = match place {
                        Place::Last => shape.columns.len(),
                        Place::First => 0,
                        Place::AfterKey => shape
                            .columns
                            .iter()
                            .position(|c| *c == Column::K)
                            .map_or(0, |at| at + 1),
                    };
                    shape.columns.insert(at, Column::W);
                });
                with(changed, |row| Row { w: *default, ..row.clone() })
            }
        },
        Op::DropColumn { column, if_there, .. } => match table.shape.has(*column) {
            false if *if_there => return Verdict::done(),
            false => return Verdict::fails(&[ErrorKind::NotFound]),
            true if table.shape.indexes.iter().any(|index| index.columns.contains(column)) => {
                return Verdict::fails(&[ErrorKind::Constraint]);
            }
            true => {
                let changed = table.altered(|shape| {
                    shape.columns.retain(|other| other != column);
                    *(if *column == Column::W {
                        &mut shape.default_w
                    } else {
                        &mut shape.default_z
                    }) = None;
                });
                let is_w = *column == Column::W;
                let (w, z) = (
                    |row: &Row| if is_w { None } else { row.w },
                    |row: &Row| if is_w { row.z } else { None },
                );
                with(changed, |row| Row { w: w(row), z: z(row), ..row.clone() })
            }
        },
        _ => return Verdict::done(),
    };
    becomes(name, Some(changed))
}

fn becomes(name: &'static str, table: Option<Table>) -> Verdict {
    Verdict { catalog: Some(Effect::Table(name, table)), ..Verdict::done() }
}

/// The table with changed rows.
fn with(table: Table, change: impl Fn(&Row) -> Row) -> Table {
    let rows = table.rows.iter().map(|(id, row)| (*id, change(row))).collect();
    Table { rows: Rc::new(rows), ..table }
}

fn judge_create_view(op: &Op, latest: &State) -> Verdict {
    let Op::CreateView { view: name, from, rows, star, replace, if_missing } = op else {
        return Verdict::done();
    };
    let exists = latest.views.contains_key(name);
    if latest.tables.contains_key(name) || exists && !*replace && !*if_missing {
        return Verdict::fails(&[ErrorKind::AlreadyExists]);
    }
    // A view must not refer to itself.
    let source = read::read_within(
        &mut vec![*name],
        from,
        &|name| latest.tables.get(name).cloned(),
        &latest.views,
    );
    let source = match source {
        Ok(source) if source.shape.knows(rows) => source,
        Ok(_) => return Verdict::fails(&[ErrorKind::NotFound]),
        Err(kind) => return Verdict::fails(&[kind]),
    };
    if exists && !*replace {
        return Verdict::done();
    }
    let columns =
        if *star { source.shape.columns.clone() } else { vec![Column::K, Column::V, Column::S] };
    let made = View { from, rows: rows.clone(), columns, text: op.sql(), since: 0 };
    Verdict { catalog: Some(Effect::View(name, Some(made))), ..Verdict::done() }
}
