//! What a transaction has changed in the catalog and not committed: only the transaction sees it.
//!
//! A table that it creates is a table like any other, in no catalog: its rows are written, locked and
//! read as those of other tables. A table that it changes gets new versions, of which the last one
//! counts. Those of a table of the catalog share its partitions until the transaction truncates it:
//! rows of all versions are beside each other, and each version knows the rows of those before it. The
//! changes are kept in order, so that they can be undone one by one.
//!
//! The first committer of two that change a table, a view or a name wins; the other one gets a
//! `conflict`.

use crate::catalog::contents::Contents;
use crate::catalog::tables::{discard_indexes, discard_segments};
use crate::record;
use crate::segments::garbage::Garbage;
use crate::table::agenda::Work;
use crate::table::version::Table;
use crate::transaction::temporary_tables::TemporaryTables;
use nacre_types::plant::{self, Bug};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, TableId, Timestamp, ViewSchema, invariant};
use std::sync::Arc;

/// One change.
pub(super) enum CatalogChange {
    CreateTable(Arc<Table>),
    /// Another version of a table. It shares the partitions.
    AlterTable {
        old: Arc<Table>,
        new: Arc<Table>,
        /// The commit up to which the rows of others satisfy the new version.
        verified: Timestamp,
    },
    /// A version of a table with other, empty partitions.
    Truncate {
        old: Arc<Table>,
        new: Arc<Table>,
    },
    DropTable(Arc<Table>),
    CreateView {
        view: Arc<ViewSchema>,
        replaced: Option<Arc<ViewSchema>>,
    },
    DropView(Arc<ViewSchema>),
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Named {
    Nothing,
    Table(Arc<Table>),
    View(Arc<ViewSchema>),
}

/// The changes, in order.
#[derive(Default)]
pub(super) struct CatalogChanges(Vec<CatalogChange>);

/// A view as the transaction found it, and as it leaves it.
#[derive(Default)]
struct ViewChange {
    found: Option<Arc<ViewSchema>>,
    left: Option<Arc<ViewSchema>>,
}

impl CatalogChange {
    /// Whether it changes a temporary table.
    fn is_temporary(&self) -> bool {
        match self {
            CatalogChange::CreateTable(table) | CatalogChange::DropTable(table) => {
                table.is_temporary()
            }
            CatalogChange::AlterTable { new, .. } | CatalogChange::Truncate { new, .. } => {
                new.is_temporary()
            }
            CatalogChange::CreateView { .. } | CatalogChange::DropView(_) => false,
        }
    }

    /// What the change makes of a name, if anything.
    fn naming(&self, name: &str) -> Option<Named> {
        let is_name = |other: &str| other.eq_ignore_ascii_case(name);
        let is_of = |table: &Arc<Table>| is_name(&table.schema().name);
        match self {
            CatalogChange::CreateTable(table) if is_of(table) => Some(Named::Table(table.clone())),
            CatalogChange::AlterTable { new, .. } | CatalogChange::Truncate { new, .. }
                if is_of(new) =>
            {
                Some(Named::Table(new.clone()))
            }
            CatalogChange::AlterTable { old, .. } if is_of(old) => Some(Named::Nothing),
            CatalogChange::DropTable(table) if is_of(table) => Some(Named::Nothing),
            CatalogChange::CreateView { view, .. } if is_name(&view.name) => {
                Some(Named::View(view.clone()))
            }
            CatalogChange::DropView(view) if is_name(&view.name) => Some(Named::Nothing),
            _ => None,
        }
    }

    /// What the change makes of the table with an id: another version, or nothing.
    fn making(&self, id: TableId) -> Option<Option<&Arc<Table>>> {
        match self {
            CatalogChange::CreateTable(new)
            | CatalogChange::AlterTable { new, .. }
            | CatalogChange::Truncate { new, .. }
                if new.id() == id =>
            {
                Some(Some(new))
            }
            CatalogChange::DropTable(table) if table.id() == id => Some(None),
            _ => None,
        }
    }
}

impl CatalogChanges {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a change.
    pub fn push(&mut self, change: CatalogChange) {
        match &change {
            CatalogChange::CreateTable(table) => {
                debug_assert!(!self.has_created(table.id()), "a table is created twice");
            }
            CatalogChange::AlterTable { old, new, .. } => {
                debug_assert!(new.shares_partitions(old), "an altered table has lost its rows");
            }
            CatalogChange::Truncate { old, new } => {
                debug_assert!(old.id() == new.id(), "a truncated table becomes another one");
                debug_assert!(!new.shares_partitions(old), "a truncated table keeps its rows");
            }
            CatalogChange::CreateView { view, replaced } => debug_assert!(
                replaced.as_ref().is_none_or(|old| old.name.eq_ignore_ascii_case(&view.name)),
                "view {} replaces one of another name",
                view.name
            ),
            CatalogChange::DropTable(_) | CatalogChange::DropView(_) => {}
        }
        self.0.push(change);
    }

    /// Undoes the last change.
    pub fn pop(&mut self) {
        let undone = self.0.pop();
        invariant!(undone.is_some(), "a change of the catalog is undone that was not made");
        // Another change leaves the partitions to the version before.
        match undone {
            Some(CatalogChange::CreateTable(new) | CatalogChange::Truncate { new, .. }) => {
                new.leave_agenda();
                debug_assert!(new.is_newest(), "a commit has replaced a version that is undone");
            }
            Some(CatalogChange::AlterTable { old, .. }) => old.recount_all(),
            _ => {}
        }
    }

    /// Whether one of them is of a temporary table.
    pub fn changes_temporary(&self) -> bool {
        self.0.iter().any(CatalogChange::is_temporary)
    }

    /// Whether none of them is one that others will see.
    pub fn is_own(&self) -> bool {
        self.0.iter().all(CatalogChange::is_temporary)
    }

    /// What a name stands for, if a change says so, among temporary tables or among all others.
    pub fn named(&self, name: &str, temporary: bool) -> Option<Named> {
        let changes = self.0.iter().rev().filter(|change| change.is_temporary() == temporary);
        changes.into_iter().find_map(|change| change.naming(name))
    }

    /// The version of a table that the changes leave, `None` if they drop it; nothing if they leave
    /// the table as it is.
    pub fn table_by_id(&self, id: TableId) -> Option<Option<&Arc<Table>>> {
        self.0.iter().rev().find_map(|change| change.making(id))
    }

    /// Whether a table was created by one of the changes.
    pub fn has_created(&self, id: TableId) -> bool {
        self.0
            .iter()
            .any(|change| matches!(change, CatalogChange::CreateTable(table) if table.id() == id))
    }

    /// Whether rows written to a version of a table are still its rows.
    pub fn keeps_rows_of(&self, table: &Table) -> bool {
        match self.0.is_empty() {
            true => true,
            false => self
                .table_by_id(table.id())
                .is_none_or(|left| left.is_some_and(|left| left.shares_partitions(table))),
        }
    }

    /// Changes a list of the names of tables, temporary or others, into that after the changes.
    pub fn rename_tables(&self, names: &mut Vec<String>, temporary: bool) {
        let remove = |names: &mut Vec<String>, gone: &Arc<Table>| {
            names.retain(|name| !name.eq_ignore_ascii_case(&gone.schema().name));
        };
        for change in self.0.iter().filter(|change| change.is_temporary() == temporary) {
            match change {
                CatalogChange::CreateTable(table) => names.push(table.schema().name.clone()),
                CatalogChange::AlterTable { old, new, .. } => {
                    remove(names, old);
                    names.push(new.schema().name.clone());
                }
                CatalogChange::DropTable(table) => remove(names, table),
                _ => {}
            }
        }
        names.sort_unstable();
    }

    /// Changes a list of views into that after the changes.
    pub fn change_views(&self, views: &mut Vec<Arc<ViewSchema>>) {
        let remove = |views: &mut Vec<Arc<ViewSchema>>, name: &str| {
            views.retain(|view| !view.name.eq_ignore_ascii_case(name));
        };
        for change in &self.0 {
            match change {
                CatalogChange::CreateView { view, .. } => {
                    remove(views, &view.name);
                    views.push(view.clone());
                }
                CatalogChange::DropView(view) => remove(views, &view.name),
                _ => {}
            }
        }
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        debug_assert!(
            views.windows(2).all(|pair| pair[0].name != pair[1].name),
            "a transaction sees two views of one name"
        );
    }

    /// The created tables that are there after the changes, in their last versions; those of the
    /// session, or others.
    fn created(&self, temporary: bool) -> impl Iterator<Item = &Arc<Table>> {
        self.0.iter().filter_map(move |change| match change {
            CatalogChange::CreateTable(table) if table.is_temporary() == temporary => {
                self.table_by_id(table.id()).flatten()
            }
            _ => None,
        })
    }

    /// The version of a table of the catalog that the first change of it replaces or drops; nothing if
    /// there is none, or the transaction created the table.
    pub fn found(&self, id: TableId) -> Option<&Arc<Table>> {
        self.0.iter().find_map(|change| match change {
            CatalogChange::CreateTable(table) if table.id() == id => Some(None),
            CatalogChange::AlterTable { old, .. }
            | CatalogChange::Truncate { old, .. }
            | CatalogChange::DropTable(old)
                if old.id() == id =>
            {
                Some(Some(old))
            }
            _ => None,
        })?
    }

    /// The tables of the catalog, or of the session, that are changed or dropped, each as it was found,
    /// and as it is left.
    fn changed(&self, temporary: bool) -> impl Iterator<Item = (&Arc<Table>, Option<&Arc<Table>>)> {
        let some = self.0.iter().filter(move |change| change.is_temporary() == temporary);
        some.filter_map(|change| {
            let (CatalogChange::AlterTable { old, .. }
            | CatalogChange::Truncate { old, .. }
            | CatalogChange::DropTable(old)) = change
            else {
                return None;
            };
            let found = self.found(old.id()).filter(|found| Arc::ptr_eq(found, old))?;
            self.table_by_id(old.id()).map(|left| (found, left))
        })
    }

    /// Whether rows that others write to a table of the catalog are rows of each version of it.
    fn keeps_writers(&self, id: TableId) -> bool {
        self.0.iter().all(|change| match change {
            CatalogChange::AlterTable { old, new, .. } if new.id() == id => new.takes_rows_of(old),
            CatalogChange::Truncate { new, .. } => new.id() != id,
            _ => true,
        })
    }

    /// The tables of the catalog that are left in another version.
    fn altered(&self) -> impl Iterator<Item = (&Arc<Table>, &Arc<Table>)> {
        self.changed(false).filter_map(|(found, left)| Some((found, left?)))
    }

    /// The tables of the catalog that are dropped, as they were found.
    fn dropped(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.changed(false).filter(|(_, left)| left.is_none()).map(|(found, _)| found)
    }

    /// The tables of the catalog that are left in another version with the rows of others, and the
    /// commit up to which these satisfy it.
    pub fn to_verify(&self) -> impl Iterator<Item = (&Arc<Table>, &Arc<Table>, Timestamp)> {
        let with_rows = self.altered().filter(|(found, left)| left.shares_partitions(found));
        with_rows.map(|(found, left)| {
            let verified = self.0.iter().filter_map(|change| match change {
                CatalogChange::AlterTable { new, verified, .. } if new.id() == left.id() => {
                    Some(*verified)
                }
                _ => None,
            });
            (found, left, verified.min().unwrap_or(0))
        })
    }

    /// Notes the commit up to which the rows of others satisfy a table that was altered.
    pub fn note_verified(&mut self, table: TableId, at: Timestamp) {
        for change in &mut self.0 {
            match change {
                CatalogChange::AlterTable { new, verified, .. } if new.id() == table => {
                    debug_assert!(*verified <= at, "table {table} was verified up to {verified}");
                    *verified = at;
                }
                _ => {}
            }
        }
    }

    /// The changes of views, by lower-case name.
    fn views(&self) -> SortedMap<String, ViewChange> {
        let mut views: SortedMap<String, ViewChange> = SortedMap::new();
        let mut note = |name: &str, found: Option<&Arc<ViewSchema>>, left| {
            let new = || ViewChange { found: found.cloned(), left: None };
            views.or_insert_with(name.to_ascii_lowercase(), new).left = left;
        };
        for change in &self.0 {
            match change {
                CatalogChange::CreateView { view, replaced } => {
                    note(&view.name, replaced.as_ref(), Some(view.clone()));
                }
                CatalogChange::DropView(view) => note(&view.name, Some(view), None),
                _ => {}
            }
        }
        views
    }

    /// Whether the transaction drops the table.
    fn is_gone(&self, id: TableId) -> bool {
        matches!(self.table_by_id(id), Some(None))
    }

    /// Appends what comes before the rows of the transaction in its record: new tables and their
    /// versions. Returns the number of operations.
    pub fn log_tables(&self, payload: &mut Vec<u8>) -> Result<usize> {
        debug_assert!(
            record::timestamp(payload) == Some(0),
            "new tables are added to a record that is stamped already"
        );
        let others = || self.0.iter().filter(|change| !change.is_temporary());
        for change in others() {
            match change {
                CatalogChange::CreateTable(table) if !self.is_gone(table.id()) => {
                    record::create_table(payload, table.schema())?;
                }
                CatalogChange::AlterTable { new, .. } if !self.is_gone(new.id()) => {
                    record::alter_table(payload, new.schema())?;
                }
                CatalogChange::Truncate { new, .. } if !self.is_gone(new.id()) => {
                    record::truncate(payload, new.id());
                }
                _ => {}
            }
        }
        Ok(others().count())
    }

    /// Appends what comes after them: dropped tables, and views.
    pub fn log_rest(&self, payload: &mut Vec<u8>) {
        debug_assert!(
            record::timestamp(payload) == Some(0),
            "dropped tables are added to a record that is stamped already"
        );
        if !plant::is(Bug::DdlHalf) {
            self.dropped().for_each(|table| record::drop_table(payload, table.id()));
        }
        // What came and went within the transaction is in no record: its name may be another's.
        for change in self.views().into_values() {
            if let Some(found) = change.found {
                record::drop_view(payload, &found.name);
            }
            if let Some(left) = change.left {
                record::create_view(payload, &left);
            }
        }
    }

    /// Fails with a `conflict` if another transaction has changed what these change. Must be called
    /// under the commit lock.
    pub fn check(&self, contents: &Contents) -> Result<()> {
        debug_assert!(!self.is_empty(), "a transaction that changes no catalog is checked");
        if let Some((table, _)) = self.changed(false).find(|(table, _)| !table.is_newest()) {
            return Err(table.superseded());
        }
        let views = self.views();
        let is_changed = |id: TableId| self.changed(false).any(|(table, _)| table.id() == id);
        let is_taken = |name: &str| {
            let by_table = contents.table(name).is_some_and(|table| !is_changed(table.id()));
            // A view of which the transaction knows is compared below.
            let is_known = views.get(&name.to_ascii_lowercase()).is_some_and(|v| v.found.is_some());
            by_table || !is_known && contents.view(name).is_some()
        };
        for (name, change) in views.iter() {
            let now = contents.view(name);
            let is_same = match (&change.found, now) {
                (Some(found), Some(now)) => Arc::ptr_eq(found, now),
                (Some(_), None) => false,
                (None, _) => change.left.is_none() || !is_taken(name),
            };
            if !is_same {
                return Err(overtaken("view", name));
            }
        }
        let left = self.created(false).chain(self.altered().map(|(_, left)| left));
        let mut names = left.map(|table| &table.schema().name);
        match names.find(|name| is_taken(name)) {
            Some(name) => Err(overtaken("table", name)),
            None => Ok(()),
        }
    }

    /// Counts rows no more that no table has.
    fn leave_agenda(&self, temporary: bool) {
        for change in self.0.iter().filter(|change| change.is_temporary() == temporary) {
            match change {
                CatalogChange::DropTable(table) => table.leave_agenda(),
                CatalogChange::Truncate { old, .. } => old.leave_agenda(),
                _ => {}
            }
        }
    }

    /// Changes the temporary tables of the session. Must be called under the commit lock.
    pub fn apply_temporary(&self, tables: &TemporaryTables, commit: Timestamp) {
        self.leave_agenda(true);
        // Names first: tables may exchange them.
        for (found, _) in self.changed(true) {
            tables.remove(found.id());
        }
        for (found, left) in self.changed(true) {
            debug_assert!(found.is_newest(), "a table of one session was changed by another");
            match left {
                Some(left) => {
                    left.begin_at(commit);
                    left.replace(found, commit);
                    // No other transaction has a snapshot of it.
                    left.set_previous(None);
                    tables.put(left);
                }
                None => found.drop_at(commit),
            }
        }
        for table in self.created(true) {
            table.created_by(commit);
            tables.put(table);
        }
    }

    /// Changes the contents of the catalog. Must be called under the commit lock, after
    /// [`CatalogChanges::check`] and once the record is in the log.
    pub fn apply(
        &self,
        contents: &mut Contents,
        garbage: &Garbage,
        commit: Timestamp,
    ) -> Result<()> {
        debug_assert!(commit > 0, "the commit that predates all others changes the catalog");
        self.leave_agenda(false);
        for (found, left) in self.changed(false) {
            debug_assert!(
                found.is_newest(),
                "table {} was changed since it was checked",
                found.schema().name
            );
            match left {
                Some(left) => {
                    contents.take(found);
                    let keeps_writers = self.keeps_writers(found.id());
                    replace(garbage, found, left, keeps_writers, commit);
                }
                None => {
                    found.drop_at(commit);
                    contents.remove(found);
                    discard_segments(garbage, found, commit);
                }
            }
        }
        let views = self.views();
        for (name, change) in views.iter() {
            if change.found.is_some() {
                contents.remove_view(name, commit)?;
            }
        }
        for view in views.into_values().filter_map(|change| change.left) {
            contents.add_view(view, false, commit)?;
        }
        self.created(false).try_for_each(|table| contents.add(table, commit))?;
        self.altered().try_for_each(|(_, left)| contents.put_altered(left))?;
        debug_assert!(
            self.created(false).all(|table| table.created() == commit),
            "commit {commit} adds a table that another one has created"
        );
        Ok(())
    }
}

/// Makes the version of a table that a transaction leaves the newest one.
fn replace(
    garbage: &Garbage,
    found: &Arc<Table>,
    left: &Arc<Table>,
    keeps_writers: bool,
    commit: Timestamp,
) {
    debug_assert!(left.id() == found.id(), "table {} is left as another one", found.id());
    left.begin_at(commit);
    left.replace_after(found, commit, keeps_writers);
    if left.shares_partitions(found) {
        discard_indexes(garbage, found, left, commit);
        if left.indexes().iter().any(|index| !found.has_index(index.id())) {
            left.consider(Work::IndexParts);
        }
    } else {
        left.continue_row_numbers(found);
        discard_segments(garbage, found, commit);
        found.leave_agenda();
    }
    debug_assert!(left.since() == commit, "commit {commit} leaves a version that it did not make");
}

/// The error for an object that another transaction has created, replaced or dropped.
fn overtaken(kind: &str, name: &str) -> Error {
    Error::conflict(format!(
        "{kind} {name} was created, replaced or dropped by another transaction"
    ))
    .with_hint("retry the transaction")
}
