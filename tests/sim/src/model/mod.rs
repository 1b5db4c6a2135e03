//! The model of the database: the committed state after every commit, which part of it is durable,
//! and what each open transaction sees. It knows nothing about the engine's implementation.

pub mod catalog;
pub mod judge;
pub mod read;
pub mod unique;
pub mod verdict;
pub mod view;

use crate::model::view::View;
use crate::op::row::{Column, Row};
use crate::op::shape::{Index, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What a change of the catalog makes of a state; `None` if it cannot be made there.
type Change = Rc<dyn Fn(&State) -> Option<Effect>>;

/// Distinguishes a table from a later one with the same name.
pub type TableId = u64;
/// In place of the commit that created a table: its transaction has not committed.
pub const UNCOMMITTED: u64 = u64::MAX;
/// Identifies a row by its key or, in a table without one, by a number of the model.
pub type RowId = (TableId, i64);

/// One version of a table, and its rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// See [`TableId`].
    pub id: TableId,
    /// The commit that created this version. A transaction that began earlier may read an older
    /// version but not write.
    pub since: u64,
    /// The commit of the oldest version whose writers can still commit: since then, only indexes
    /// were changed, and no new one is unique.
    pub writable: u64,
    /// Columns and indexes.
    pub shape: Rc<Shape>,
    /// The rows.
    pub rows: Rc<BTreeMap<i64, Row>>,
    /// What a transaction has done to a table that it did not create.
    pub touch: Touch,
}

/// What a transaction has done to a table that it did not create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Touch {
    /// Nothing but changing rows.
    #[default]
    None,
    /// Other columns, indexes or another name.
    Altered,
    /// `TRUNCATE`: rows of others are not among its rows any more.
    Emptied,
}

impl Table {
    /// A table about to be created, without an id yet.
    pub fn made(shape: Shape) -> Table {
        Table {
            id: 0,
            since: 0,
            writable: 0,
            shape: Rc::new(shape),
            rows: Rc::default(),
            touch: Touch::None,
        }
    }

    /// Whether a transaction has changed the table, and another has changed it since.
    pub fn is_stale(&self, latest: &State) -> bool {
        self.touch != Touch::None
            && latest.by_id(self.id).is_none_or(|newest| newest.since != self.since)
    }

    /// The table without rows.
    pub fn emptied(&self) -> Table {
        Table { rows: Rc::default(), ..self.clone() }
    }

    /// The table with other columns or indexes.
    pub fn altered(&self, change: impl FnOnce(&mut Shape)) -> Table {
        let mut shape = (*self.shape).clone();
        change(&mut shape);
        Table { shape: Rc::new(shape), ..self.clone() }
    }

    /// Whether rows written to another version are rows of this one: nothing but indexes was changed,
    /// and no new one is unique or computes what may fail. Rows that were removed with the change were not.
    fn keeps_writers(&self, before: &Table) -> bool {
        let may_fail = |index: &Index| index.columns.contains(&Column::DNumber);
        let is_known = |index: &Index| {
            before.shape.indexes.contains(index)
                || !index.unique && (!may_fail(index) || before.shape.indexes.iter().any(may_fail))
        };
        self.id == before.id
            && self.shape.columns == before.shape.columns
            && self.shape.indexes != before.shape.indexes
            && self.shape.indexes.iter().all(is_known)
    }

    /// The output of a scan, sorted.
    pub fn printed(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> =
            self.rows.values().map(|row| self.shape.printed(row)).collect();
        rows.sort();
        rows
    }
}

/// All tables at one moment.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By name.
    pub tables: BTreeMap<&'static str, Table>,
    /// Views by name.
    pub views: BTreeMap<&'static str, View>,
}

/// A change of rows.
pub type Writes = BTreeMap<RowId, Option<Row>>;

impl State {
    /// Applies the changes. Changes of missing tables are ignored.
    pub fn apply(&mut self, writes: &Writes) {
        for ((table, id), row) in writes {
            let mut tables = self.tables.values_mut();
            let Some(table) = tables.find(|t| t.id == *table) else { continue };
            let rows = Rc::make_mut(&mut table.rows);
            match row {
                Some(row) => rows.insert(*id, row.clone()),
                None => rows.remove(id),
            };
        }
    }

    /// Applies the effect of a commit.
    fn change(&mut self, effect: &Effect, since: u64) {
        match effect {
            Effect::Rows(writes) => self.apply(writes),
            Effect::Table(name, Some(table)) => {
                let before = self.tables.get(name).filter(|before| table.keeps_writers(before));
                let writable = before.map_or(since, |before| before.writable);
                self.tables.insert(name, Table { since, writable, ..table.clone() });
            }
            Effect::Table(name, None) => {
                self.tables.remove(name);
            }
            Effect::Rename(from, to) => {
                if let Some(table) = self.tables.remove(from) {
                    self.tables.insert(to, Table { since, writable: since, ..table });
                }
            }
            Effect::View(name, Some(view)) => {
                self.views.insert(name, View { since, ..view.clone() });
            }
            Effect::View(name, None) => {
                self.views.remove(name);
            }
            Effect::Redone(redone) => {
                if let Some(effect) = (redone.change)(self) {
                    self.change(&effect, since);
                }
            }
            Effect::Transaction(changes, writes) => {
                changes.iter().for_each(|effect| self.change(effect, since));
                self.apply(writes);
            }
        }
    }

    /// The state after a commit.
    pub fn after(&self, effect: &Effect) -> State {
        let mut state = self.clone();
        state.change(effect, 0);
        state
    }

    /// Whether a name stands for the same object in another state, unchanged, or for nothing in both.
    pub fn agrees(&self, other: &State, name: &str) -> bool {
        let of = |state: &State| {
            let table = state.tables.get(name).map(|table| (table.id, table.since));
            (table, state.views.get(name).map(|view| view.since))
        };
        of(self) == of(other)
    }

    /// A table by its id.
    pub fn by_id(&self, id: TableId) -> Option<&Table> {
        self.tables.values().find(|table| table.id == id)
    }
}

/// The effect of a commit.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Changes rows.
    Rows(Writes),
    /// Sets a table's version, creates it, or drops it.
    Table(&'static str, Option<Table>),
    /// Renames a table.
    Rename(&'static str, &'static str),
    /// Creates or drops a view.
    View(&'static str, Option<View>),
    /// A change of a table that a transaction did not create, applied to what the table is then.
    Redone(Redone),
    /// Changes the catalog, in this order, and then rows.
    Transaction(Vec<Effect>, Writes),
}

/// A change of the catalog, as a function of what it is applied to.
#[derive(Clone)]
pub struct Redone {
    names: Vec<&'static str>,
    change: Change,
}

impl std::fmt::Debug for Redone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "change of {:?}", self.names)
    }
}

impl Effect {
    /// Tables and views whose catalog entries it changes.
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            Effect::Rows(_) => Vec::new(),
            Effect::Table(name, _) | Effect::View(name, _) => vec![name],
            Effect::Rename(from, to) => vec![from, to],
            Effect::Redone(redone) => redone.names.clone(),
            Effect::Transaction(changes, _) => changes.iter().flat_map(Effect::names).collect(),
        }
    }
}

/// An open transaction.
#[derive(Clone, Debug)]
pub struct Txn {
    /// The commit of its snapshot.
    pub snapshot: u64,
    /// The snapshot with its own changes.
    pub view: State,
    /// Its own changes.
    pub writes: Writes,
    /// Rows it has locked.
    pub locks: BTreeSet<RowId>,
    /// The version of each table it has written to or locked.
    pub versions: BTreeMap<TableId, u64>,
    /// The snapshot.
    pub base: State,
    /// Its changes of the catalog, in order.
    pub catalog: Vec<Effect>,
    savepoints: Vec<Savepoint>,
}

/// A transaction at a savepoint.
#[derive(Clone, Debug)]
struct Savepoint {
    name: &'static str,
    view: State,
    writes: Writes,
    locks: BTreeSet<RowId>,
    catalog: Vec<Effect>,
}

impl Txn {
    /// Adds a statement's changes.
    pub fn write(&mut self, model: &State, writes: Writes, locks: BTreeSet<RowId>) {
        for (table, _) in writes.keys().chain(&locks) {
            if let Some(known) = model.by_id(*table) {
                self.versions.insert(*table, known.writable);
            }
        }
        self.view.apply(&writes);
        self.writes.extend(writes);
        self.locks.extend(locks);
    }

    /// Forgets that the transaction has created the table or view of a name, which it drops or
    /// renames now: the commit has no trace of it. Returns whether it had.
    fn uncreate(&mut self, name: &str) -> bool {
        let is_own = |since: u64| since == UNCOMMITTED;
        let table = self.view.tables.get(name).filter(|table| is_own(table.since));
        let id = table.map(|table| table.id);
        let view = self.view.views.get(name).is_some_and(|view| is_own(view.since));
        let before = self.catalog.len();
        self.catalog.retain(|effect| match effect {
            Effect::Table(_, Some(made)) => Some(made.id) != id,
            Effect::View(of, Some(_)) => !view || *of != name,
            _ => true,
        });
        self.catalog.len() < before
    }

    /// Changes or truncates a table that the transaction did not create. `change` says what becomes of
    /// any state.
    pub fn alter(&mut self, effect: &Effect, truncates: bool, change: Change) {
        let (from, to) = match effect {
            Effect::Rename(from, to) => (*from, *to),
            Effect::Table(name, _) => (*name, *name),
            _ => return,
        };
        let Some(known) = self.view.tables.remove(from) else { return };
        let table = match effect {
            Effect::Table(_, Some(table)) => table.clone(),
            _ => known.clone(),
        };
        let is_emptied = truncates || known.touch == Touch::Emptied;
        let touch = if is_emptied { Touch::Emptied } else { Touch::Altered };
        self.writes.retain(|(of, _), _| !truncates || *of != table.id);
        for ((of, row), content) in &mut self.writes {
            if *of == table.id && content.is_some() {
                *content = table.rows.get(row).cloned();
            }
        }
        let Table { since, writable, .. } = known;
        self.view.tables.insert(to, Table { since, writable, touch, ..table });
        self.catalog.push(Effect::Redone(Redone { names: vec![from, to], change }));
    }

    /// Changes the catalog for the transaction. `next` is the id of a new table.
    pub fn change_catalog(&mut self, effect: Effect, next: TableId) {
        let is_undone = match &effect {
            Effect::Table(name, None) | Effect::View(name, None) => self.uncreate(name),
            _ => false,
        };
        if is_undone {
            self.view.change(&effect, UNCOMMITTED);
            return;
        }
        if let Effect::Rename(from, to) = effect
            && self.uncreate(from)
        {
            // Created under its last name: a table that another commit made under the first one stays.
            self.view.change(&effect, UNCOMMITTED);
            let made = self.view.tables.get(to).cloned();
            self.catalog.push(Effect::Table(to, made));
            return;
        }
        let effect = match effect {
            Effect::Table(name, Some(table)) => {
                let id = if table.id == 0 { next } else { table.id };
                let made = Table { id, since: UNCOMMITTED, ..table };
                // All rows of the table are the transaction's.
                self.writes.retain(|(of, _), _| *of != id);
                let rows =
                    made.rows.iter().map(|(row, content)| ((id, *row), Some(content.clone())));
                self.writes.extend(rows);
                self.view.tables.insert(name, made.clone());
                Effect::Table(name, Some(made))
            }
            effect => {
                if let Effect::View(name, Some(_)) = &effect
                    && self.view.views.get(name).is_some_and(|old| old.since != UNCOMMITTED)
                {
                    self.catalog.push(Effect::View(name, None));
                }
                self.view.change(&effect, UNCOMMITTED);
                effect
            }
        };
        self.catalog.push(effect);
    }

    /// The effect of its commit.
    pub fn effect(&self) -> Effect {
        match self.catalog.is_empty() {
            true => Effect::Rows(self.writes.clone()),
            false => Effect::Transaction(self.catalog.clone(), self.writes.clone()),
        }
    }

    /// Whether there is a savepoint with this name.
    pub fn knows(&self, name: &str) -> bool {
        self.savepoints.iter().any(|s| s.name == name)
    }

    /// `SAVEPOINT`.
    pub fn savepoint(&mut self, name: &'static str) {
        let (view, writes, locks) = (self.view.clone(), self.writes.clone(), self.locks.clone());
        let catalog = self.catalog.clone();
        self.savepoints.push(Savepoint { name, view, writes, locks, catalog });
    }

    /// `ROLLBACK TO`. Returns `false` if there is no such savepoint.
    pub fn rollback_to(&mut self, name: &str) -> bool {
        let Some(at) = self.savepoints.iter().rposition(|s| s.name == name) else { return false };
        self.savepoints.truncate(at + 1);
        let Savepoint { view, writes, locks, catalog, .. } = self.savepoints[at].clone();
        (self.view, self.writes, self.locks, self.catalog) = (view, writes, locks, catalog);
        true
    }

    /// `RELEASE`. Returns `false` if there is no such savepoint.
    pub fn release(&mut self, name: &str) -> bool {
        let Some(at) = self.savepoints.iter().rposition(|s| s.name == name) else { return false };
        self.savepoints.truncate(at);
        true
    }
}

/// The committed states.
#[derive(Debug, Default)]
pub struct Model {
    /// The state that a new snapshot sees.
    pub latest: State,
    /// Number of commits.
    pub index: u64,
    /// The last commit that changed each row since the database was opened.
    changed: BTreeMap<RowId, u64>,
    /// Possible states after a crash, oldest first: from the last known durable one to the newest.
    history: Vec<(u64, State)>,
    /// Commits whose outcome is unknown to the caller.
    in_doubt: Vec<State>,
    /// Whether the log has failed: no commit may succeed until the database is opened again.
    pub poisoned: bool,
    /// Tables and views whose creation or removal failed midway; their state is unknown until the
    /// next start.
    pub blurred: BTreeSet<&'static str>,
    /// The last commit that deleted many rows of a table, by a bit each. Nothing tells afterwards
    /// which keys of theirs were written since a snapshot (decision 0038).
    pub erased: BTreeMap<TableId, u64>,
    /// The last bulk load of a table.
    pub loaded: BTreeMap<TableId, u64>,
    /// The commit that removed each name from a table.
    freed: BTreeMap<&'static str, u64>,
    next_table: TableId,
    next_row: i64,
}

/// Whether a state has a row.
fn has(state: &State, (table, key): RowId) -> bool {
    state.by_id(table).is_some_and(|table| table.rows.contains_key(&key))
}

impl Model {
    /// Whether a commit after `snapshot` changed the row.
    pub fn changed_since(&self, row: RowId, snapshot: u64) -> bool {
        self.changed.get(&row).is_some_and(|at| *at > snapshot)
    }

    /// Whether the row's key came and went since `snapshot`, so that nothing may tell.
    pub fn may_forget(&self, row: RowId, snapshot: u64) -> bool {
        !has(&self.latest, row) && self.erased.get(&row.0).is_some_and(|at| *at > snapshot)
            || self.may_be_deleted(row)
    }

    /// Whether the log failed while it deleted the row. No transaction commits any more, and none
    /// waits for that deletion.
    pub fn may_be_deleted(&self, row: RowId) -> bool {
        self.poisoned && self.in_doubt.iter().any(|state| !has(state, row))
    }

    /// Records that the newest commit may have deleted rows by a bit each.
    pub fn erase(&mut self, writes: &Writes, least: usize) {
        let mut deleted: BTreeMap<TableId, usize> = BTreeMap::new();
        for ((table, _), _) in writes.iter().filter(|(_, row)| row.is_none()) {
            *deleted.entry(*table).or_default() += 1;
        }
        let many = deleted.into_iter().filter(|(_, rows)| *rows >= least);
        self.erased.extend(many.map(|(table, _)| (table, self.index)));
    }

    /// The tables of which changes that are about to be committed write at least `least` rows that are
    /// there anew, or under other keys.
    pub fn rewritten(&self, writes: &Writes, least: usize) -> Vec<TableId> {
        let mut rows: BTreeMap<TableId, (usize, bool)> = BTreeMap::new();
        for ((table, id), row) in writes {
            let (known, is_written) = rows.entry(*table).or_default();
            let is_there = |table: &Table| table.rows.contains_key(id);
            *known += usize::from(self.latest.by_id(*table).is_some_and(is_there));
            *is_written |= row.is_some();
        }
        let is_many =
            |(_, (known, is_written)): &(TableId, (usize, bool))| *is_written && *known >= least;
        rows.into_iter().filter(is_many).map(|(table, _)| table).collect()
    }

    /// Whether a table with this name was dropped or renamed after that commit.
    pub fn freed_since(&self, name: &str, index: u64) -> bool {
        self.freed.get(name).is_some_and(|at| *at > index)
    }

    /// Numbers a row of a table without a key.
    pub fn new_row(&mut self) -> i64 {
        self.next_row += 1;
        self.next_row
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Txn {
        Txn {
            snapshot: self.index,
            view: self.latest.clone(),
            writes: Writes::new(),
            locks: BTreeSet::new(),
            versions: BTreeMap::new(),
            base: self.latest.clone(),
            catalog: Vec::new(),
            savepoints: Vec::new(),
        }
    }

    /// Numbers a table.
    pub fn new_table(&mut self) -> TableId {
        self.next_table += 1;
        self.next_table
    }

    fn after(&mut self, effect: &Effect) -> State {
        let mut state = self.latest.clone();
        let effect = match effect {
            Effect::Table(name, Some(table)) if table.id == 0 => {
                Effect::Table(name, Some(Table { id: self.new_table(), ..table.clone() }))
            }
            effect => effect.clone(),
        };
        state.change(&effect, self.index + 1);
        state
    }

    /// Records a commit.
    pub fn commit(&mut self, effect: &Effect) {
        if matches!(effect, Effect::Rows(writes) if writes.is_empty()) {
            return;
        }
        if self.history.is_empty() {
            self.history.push((self.index, self.latest.clone()));
        }
        let next = self.after(effect);
        let before = std::mem::replace(&mut self.latest, next);
        self.index += 1;
        let freed = before.tables.keys().filter(|name| !self.latest.tables.contains_key(*name));
        self.freed.extend(freed.map(|name| (*name, self.index)));
        if let Effect::Rows(writes) | Effect::Transaction(_, writes) = effect {
            self.changed.extend(writes.keys().map(|row| (*row, self.index)));
        }
        self.history.push((self.index, self.latest.clone()));
    }

    /// Records a commit with unknown outcome; no session sees it before the next start.
    pub fn doubt(&mut self, effect: &Effect) {
        if !self.poisoned {
            let state = self.after(effect);
            self.in_doubt.push(state);
        }
    }

    /// Marks commits up to this one as durable.
    pub fn durable(&mut self, index: u64) {
        self.history.retain(|(at, _)| *at >= index);
    }

    /// States that the database may be in, most likely first.
    pub fn candidates(&self) -> Vec<State> {
        let newest = self.in_doubt.iter().rev().chain(std::iter::once(&self.latest));
        let older = self.history.iter().rev().skip(1).map(|(_, state)| state);
        newest.chain(older).cloned().collect()
    }

    /// Records that the database was opened in this state, which is now durable.
    pub fn recovered(&mut self, state: State) {
        self.latest = state;
        self.index += 1;
        self.changed.clear();
        self.freed.clear();
        self.history.clear();
        self.in_doubt.clear();
        self.blurred.clear();
        self.erased.clear();
        self.poisoned = false;
    }
}
