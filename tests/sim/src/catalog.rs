//! What a change of the catalog makes of a table, by the model.

use crate::judge::{Answer, Verdict};
use crate::model::{Model, State, Table};
use crate::op::{Op, Place, Row};
use crate::shape::{Column, Shape};
use crate::unique;
use nacredb::ErrorKind;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Judges a `CREATE TABLE AS` that happens now and reads what was there when it began.
pub fn judge_create_as(op: &Op, base: &State, model: &mut Model) -> Verdict {
    let Op::CreateAs { table: name, from, rows, if_missing } = op else { return Verdict::done() };
    // Whoever finds the table at the start is done; another may take the name until the end.
    let exists = base.tables.contains_key(name) || model.latest.tables.contains_key(name);
    let source = base.tables.get(from).filter(|source| !rows.needs(Column::W) || source.shape.has(Column::W));
    let mut errors = Vec::new();
    if exists && !*if_missing {
        errors.push(ErrorKind::AlreadyExists);
    }
    let Some(source) = source.filter(|_| errors.is_empty()) else {
        if source.is_none() {
            errors.push(ErrorKind::NotFound);
        }
        return Verdict::fails(&errors);
    };
    if exists {
        return Verdict::done();
    }
    let picked = source.rows.values().filter(|row| rows.holds(row));
    let copied: BTreeMap<i64, Row> = picked.map(|row| (model.new_row(), Row { w: None, ..row.clone() })).collect();
    let answer = Answer::Affected(copied.len() as u64);
    let table = Table { rows: Rc::new(copied), ..Table::made(Shape::new(false, &[])) };
    Verdict { answer: Some(answer), ..becomes(name, Some(table)) }
}

/// Judges a change of the catalog that happens now.
pub fn judge_ddl(op: &Op, latest: &State) -> Verdict {
    let name = match op {
        Op::Create { table, keyed, indexes, if_missing, .. } => {
            return match latest.tables.contains_key(table) {
                true if !*if_missing => Verdict::fails(&[ErrorKind::AlreadyExists]),
                true => Verdict::done(),
                false => becomes(table, Some(Table::made(Shape::new(*keyed, indexes)))),
            };
        }
        Op::Drop { table } | Op::Truncate { table } => *table,
        Op::CreateIndex { table, .. } | Op::DropIndex { table, .. } => *table,
        Op::AddColumn { table, .. } | Op::DropColumn { table, .. } => *table,
        _ => return Verdict::done(),
    };
    let Some(table) = latest.tables.get(name) else {
        return Verdict::fails(&[ErrorKind::NotFound]);
    };
    let has_index = |name: &str| table.shape.indexes.iter().any(|index| index.name == name);
    let has_w = table.shape.has(Column::W);
    let changed = match op {
        Op::Drop { .. } => return becomes(name, None),
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
            let changed = table.altered(|shape| shape.indexes.push(*index));
            if unique::is_broken(&changed) {
                return Verdict::fails(&[ErrorKind::Constraint]);
            }
            changed
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
                        Place::AfterKey => shape.columns.iter().position(|c| *c == Column::K).map_or(0, |at| at + 1),
                    };
                    shape.columns.insert(at, Column::W);
                });
                with_w(changed, *default)
            }
        },
        Op::DropColumn { if_there, .. } => match has_w {
            false if *if_there => return Verdict::done(),
            false => return Verdict::fails(&[ErrorKind::NotFound]),
            true if table.shape.indexes.iter().any(|index| index.columns.contains(&Column::W)) => {
                return Verdict::fails(&[ErrorKind::Constraint]);
            }
            true => {
                let changed = table.altered(|shape| {
                    shape.columns.retain(|column| *column != Column::W);
                    shape.default_w = None;
                });
                with_w(changed, None)
            }
        },
        _ => return Verdict::done(),
    };
    becomes(name, Some(changed))
}

fn becomes(name: &'static str, table: Option<Table>) -> Verdict {
    Verdict { table: Some((name, table)), ..Verdict::done() }
}

fn with_w(table: Table, w: Option<i64>) -> Table {
    let rows = table.rows.iter().map(|(id, row)| (*id, Row { w, ..row.clone() })).collect();
    Table { rows: Rc::new(rows), ..table }
}
