//! The tables and views that a database shows, compared with those of the model.

use crate::model::verdict::Answer;
use crate::model::view::View;
use crate::model::{State, Table};
use crate::op::row::Row;
use crate::op::shape::Shape;
use crate::subject::short;
use nacredb::ErrorKind;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A table found in the database.
pub struct Found {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Names of its indexes.
    pub indexes: Vec<String>,
    /// Its rows, printed and sorted.
    pub rows: Vec<Vec<String>>,
}

impl Found {
    /// Whether it has the columns and indexes of the model's table.
    fn has_shape(&self, table: &Table) -> bool {
        let (columns, indexes) = table.shape.names();
        self.columns == columns && self.indexes == indexes
    }
}

/// Identifies unchanged rows and the format they are printed in.
type PrintedAs = (*const BTreeMap<i64, Row>, *const Shape);

/// A cache of printed tables, which the possible states mostly share.
#[derive(Default)]
pub struct Printed(BTreeMap<PrintedAs, Vec<Vec<String>>>);

impl Printed {
    /// Whether these are the tables of a state.
    pub fn fits(&mut self, state: &State, found: &[Found]) -> bool {
        let same = |(name, table): (&&'static str, &Table), there: &Found| {
            **name == there.name && table.rows.len() == there.rows.len() && there.has_shape(table)
        };
        state.tables.len() == found.len()
            && state.tables.iter().zip(found).all(|(table, there)| same(table, there))
            && state.tables.values().zip(found).all(|(table, there)| {
                let known = self.0.entry((Rc::as_ptr(&table.rows), Rc::as_ptr(&table.shape)));
                *known.or_insert_with(|| table.printed()) == there.rows
            })
    }
}

/// A view found in the database.
#[derive(Debug)]
pub struct FoundView {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub text: String,
    /// What it shows.
    pub shown: Result<Answer, ErrorKind>,
}

/// Whether these are the views of a state, with the expected rows.
pub fn fits(state: &State, views: &[FoundView]) -> bool {
    let shows = |name: &'static str| state.read(name).map(|table| Answer::Rows(table.printed()));
    let same = |((name, view), found): ((&&'static str, &View), &FoundView)| {
        **name == found.name && view.text == found.text && shows(name) == found.shown
    };
    state.views.len() == views.len() && state.views.iter().zip(views).all(same)
}

/// Describes missing and unexpected rows.
pub fn difference(expected: &State, found: &[Found]) -> String {
    let mut out = Vec::new();
    for (name, table) in &expected.tables {
        let Some(there) = found.iter().find(|there| there.name == *name) else {
            out.push(format!("table {name} is missing"));
            continue;
        };
        if !there.has_shape(table) {
            out.push(format!(
                "{name}: has columns {:?}, indexes {:?}",
                there.columns, there.indexes
            ));
        }
        let (rows, there) = (table.printed(), &there.rows);
        let line = |row: &Vec<String>| short(&row.join(" "));
        let lost: Vec<String> =
            rows.iter().filter(|r| !there.contains(r)).map(line).take(5).collect();
        let extra: Vec<String> =
            there.iter().filter(|r| !rows.contains(r)).map(line).take(5).collect();
        if !lost.is_empty() || !extra.is_empty() || rows.len() != there.len() {
            out.push(format!("{name}: missing {lost:?}, unexpected {extra:?}"));
        }
    }
    for there in found.iter().filter(|there| !expected.tables.contains_key(there.name.as_str())) {
        out.push(format!("table {} should not be there", there.name));
    }
    out.join("; ")
}
