//! Reads by name: a table, or a view over the current objects with the columns it had when it was
//! created.

use crate::model::view::Views;
use crate::model::{State, Table};
use crate::op::shape::Shape;
use nacredb::ErrorKind;
use std::rc::Rc;

/// Reads a table by name or, if there is none, a view.
pub fn read(
    name: &'static str,
    tables: &dyn Fn(&str) -> Option<Table>,
    views: &Views,
) -> Result<Table, ErrorKind> {
    read_within(&mut Vec::new(), name, tables, views)
}

/// Like [`read`], inside the views already being expanded.
pub fn read_within(
    inside: &mut Vec<&'static str>,
    name: &'static str,
    tables: &dyn Fn(&str) -> Option<Table>,
    views: &Views,
) -> Result<Table, ErrorKind> {
    if let Some(table) = tables(name) {
        return Ok(table);
    }
    let view = views.get(name).ok_or(ErrorKind::NotFound)?;
    if inside.contains(&name) {
        return Err(ErrorKind::Unsupported);
    }
    inside.push(name);
    let source = read_within(inside, view.from, tables, views)?;
    if !source.shape.knows(&view.rows) {
        return Err(ErrorKind::NotFound);
    }
    if !view.columns.iter().all(|column| source.shape.has(*column)) {
        return Err(ErrorKind::Type);
    }
    let rows = source.rows.iter().filter(|(_, row)| view.rows.holds(row));
    let rows = rows.map(|(id, row)| (*id, row.clone())).collect();
    let shape =
        Shape { columns: view.columns.clone(), indexes: Vec::new(), ..(*source.shape).clone() };
    Ok(Table { rows: Rc::new(rows), shape: Rc::new(shape), ..source })
}

/// All names looked up when one of these is read, including these.
pub fn reached(names: impl Iterator<Item = &'static str>, views: &Views) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = names.collect();
    let mut at = 0;
    while let Some(name) = out.get(at) {
        at += 1;
        if let Some(view) = views.get(name).filter(|view| !out.contains(&view.from)) {
            out.push(view.from);
        }
    }
    out
}

/// Whether a transaction that reads these reads a table that it and another have changed.
pub fn reaches_stale(
    names: impl Iterator<Item = &'static str>,
    view: &State,
    latest: &State,
) -> bool {
    let is_stale = |name: &&str| view.tables.get(*name).is_some_and(|t| t.is_stale(latest));
    reached(names, &view.views).iter().any(is_stale)
}

impl State {
    /// Reads a table or view of this state.
    pub fn read(&self, name: &'static str) -> Result<Table, ErrorKind> {
        read(name, &|name| self.tables.get(name).cloned(), &self.views)
    }
}
