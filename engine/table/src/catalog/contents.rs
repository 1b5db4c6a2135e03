//! The tables and views of a database, by name and by id, as the newest commit left them, and what
//! snapshots still see of those that were dropped or replaced.

use crate::layout::rules::CompileRules;
use crate::record::Place;
use crate::segments::state::FOREVER;
use crate::table::agenda::Agenda;
use crate::table::version::Table;
use nacre_types::hash::Map;
use nacre_types::plant::{self, Bug};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, TableId, Timestamp, ViewSchema, invariant};
use std::sync::Arc;

/// The catalog's contents. Names ignore ASCII case; tables and views share one namespace.
#[derive(Clone)]
pub(crate) struct Contents {
    agenda: Arc<Agenda>,
    /// Compiles the rules of its tables.
    compile: Option<CompileRules>,
    /// By lower-case name.
    by_name: SortedMap<String, Arc<Table>>,
    by_id: Map<TableId, Arc<Table>>,
    /// By lower-case name.
    views: SortedMap<String, ViewEntry>,
    /// Dropped tables that a snapshot may see, each in its last version.
    dropped: Vec<Arc<Table>>,
    /// Dropped and replaced views that a snapshot may see.
    old_views: Vec<ViewEntry>,
}

/// A view, and the commits between which its name stands for it.
#[derive(Clone)]
struct ViewEntry {
    view: Arc<ViewSchema>,
    /// 0 if the view predates the opening of the database.
    since: Timestamp,
    until: Timestamp,
}

impl ViewEntry {
    fn serves(&self, at: Timestamp) -> bool {
        debug_assert!(self.since < self.until, "a view of {}..{}", self.since, self.until);
        self.since <= at && at < self.until
    }
}

impl Contents {
    /// Contents without a table. The work of tables is noted on this agenda, and their rules are
    /// compiled by `compile`.
    pub fn new(agenda: Agenda, compile: Option<CompileRules>) -> Contents {
        Contents {
            agenda: Arc::new(agenda),
            compile,
            by_name: SortedMap::new(),
            by_id: Map::default(),
            views: SortedMap::new(),
            dropped: Vec::new(),
            old_views: Vec::new(),
        }
    }

    /// The compiler of the rules of its tables.
    pub fn compiler(&self) -> Option<CompileRules> {
        self.compile
    }

    /// The work of its tables.
    pub fn agenda(&self) -> &Arc<Agenda> {
        &self.agenda
    }

    /// All tables, by name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_name.values()
    }

    /// A table by name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        let found = self.by_name.get(&name.to_ascii_lowercase());
        debug_assert!(
            found.is_none_or(|table| table.schema().name.eq_ignore_ascii_case(name)),
            "the name {name} stands for a table of another name"
        );
        found
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        let found = self.by_id.get(&id);
        debug_assert!(
            found.is_none_or(|table| table.id() == id),
            "the id {id} stands for a table of another id"
        );
        found
    }

    /// The newest version of the table at a place, and the number of its partition; `None` if it is
    /// gone.
    pub fn at_place(&self, place: Place) -> Option<(Arc<Table>, u32)> {
        let table = self.table_by_id(place.table)?;
        debug_assert!(table.is_newest(), "an old version of table {} is listed", place.table);
        let is_there = (place.partition as usize) < table.partitions().len();
        is_there.then(|| (table.clone(), place.partition))
    }

    /// All tables, and those that were dropped and that a snapshot may see.
    pub fn kept_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_name.values().chain(&self.dropped)
    }

    /// The table that a name stands for at a timestamp, in its version at that time.
    pub fn table_at(&self, name: &str, at: Timestamp) -> Option<Arc<Table>> {
        let newest = self.table(name).filter(|table| table.created() <= at && table.serves(at));
        let found = newest.cloned().or_else(|| {
            self.tables_at(at).find(|table| table.schema().name.eq_ignore_ascii_case(name))
        });
        debug_assert!(
            found.as_ref().is_none_or(|table| table.schema().name.eq_ignore_ascii_case(name)),
            "the name {name} stood for a table of another name at {at}"
        );
        found
    }

    /// The table with an id at a timestamp, in its version at that time.
    pub fn table_by_id_at(&self, id: TableId, at: Timestamp) -> Option<Arc<Table>> {
        let known = self.by_id.get(&id).or_else(|| self.dropped.iter().find(|t| t.id() == id));
        let found = known.and_then(|table| seen_version(table, at));
        debug_assert!(
            found.as_ref().is_none_or(|table| table.id() == id),
            "the id {id} stood for a table of another id at {at}"
        );
        found
    }

    /// All tables at a timestamp, in their versions at that time.
    pub fn tables_at(&self, at: Timestamp) -> impl Iterator<Item = Arc<Table>> {
        self.kept_tables().filter_map(move |table| match plant::is(Bug::NameReuse) {
            true => Some(table.version_at(at)),
            false => seen_version(table, at),
        })
    }

    /// All views, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewSchema>> {
        self.views.values().map(|entry| &entry.view)
    }

    /// A view by name.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewSchema>> {
        let found = self.views.get(&name.to_ascii_lowercase()).map(|entry| &entry.view);
        debug_assert!(
            found.is_none_or(|view| view.name.eq_ignore_ascii_case(name)),
            "the name {name} stands for a view of another name"
        );
        found
    }

    /// All views at a timestamp.
    pub fn views_at(&self, at: Timestamp) -> impl Iterator<Item = &Arc<ViewSchema>> {
        let kept = self.views.values().chain(&self.old_views);
        kept.filter(move |entry| entry.serves(at)).map(|entry| &entry.view)
    }

    /// The view that a name stands for at a timestamp.
    pub fn view_at(&self, name: &str, at: Timestamp) -> Option<&Arc<ViewSchema>> {
        let newest = self.views.get(&name.to_ascii_lowercase());
        match newest.filter(|entry| entry.serves(at)) {
            Some(entry) => Some(&entry.view),
            None => self.views_at(at).find(|view| view.name.eq_ignore_ascii_case(name)),
        }
    }

    /// Whether something dropped or replaced is kept that no snapshot from `oldest` on sees.
    pub fn has_forgettable(&self, oldest: Timestamp) -> bool {
        self.dropped.iter().any(|table| table.until() <= oldest)
            || self.old_views.iter().any(|entry| entry.until <= oldest)
    }

    /// Forgets what no snapshot from `oldest` on sees.
    pub fn forget(&mut self, oldest: Timestamp) {
        self.dropped.retain(|table| table.until() > oldest);
        self.old_views.retain(|entry| entry.until > oldest);
        debug_assert!(
            !self.has_forgettable(oldest),
            "something is kept that no snapshot from {oldest} on sees"
        );
    }

    /// Fails if a name is taken.
    pub fn check_name(&self, name: &str) -> Result<()> {
        if self.table(name).is_some() || self.view(name).is_some() {
            return Err(Error::already_exists(format!("table {name}")).with_sqlstate("42P07"));
        }
        Ok(())
    }

    /// Adds a table that this commit creates. `commit` is 0 for a recovered table.
    pub fn add(&mut self, table: &Arc<Table>, commit: Timestamp) -> Result<()> {
        self.check_name(&table.schema().name)?;
        invariant!(table.is_newest(), "an old version of table {} is added", table.schema().name);
        debug_assert!(!table.is_dropped(), "dropped table {} is added", table.schema().name);
        table.created_by(commit);
        self.insert(table);
        Ok(())
    }

    /// Adds a version of a table that the log has.
    pub fn put(&mut self, table: &Arc<Table>) -> Result<()> {
        self.check_name(&table.schema().name)?;
        debug_assert!(table.is_newest(), "an old version of table {} is put", table.schema().name);
        debug_assert!(!table.is_dropped(), "dropped table {} is put", table.schema().name);
        self.insert(table);
        Ok(())
    }

    /// Adds the version of a table that a transaction leaves. That before it was taken out.
    pub fn put_altered(&mut self, table: &Arc<Table>) -> Result<()> {
        self.put(table)?;
        debug_assert!(table.previous().is_some(), "table {} replaces none", table.schema().name);
        self.agenda.add_altered(table.id());
        Ok(())
    }

    /// Replaces a version of a table by a new one, whose name may differ.
    pub fn replace(&mut self, old: &Table, new: &Arc<Table>) -> Result<()> {
        let (from, to) = (&old.schema().name, &new.schema().name);
        invariant!(old.id() == new.id(), "table {to} takes the place of table {from}");
        debug_assert!(new.is_newest(), "an old version of table {to} replaces another");
        if !from.eq_ignore_ascii_case(to) {
            self.check_name(to)?;
        }
        self.take(old);
        if !new.shares_partitions(old) {
            old.leave_agenda();
        }
        self.insert(new);
        self.agenda.add_altered(new.id());
        Ok(())
    }

    fn insert(&mut self, table: &Arc<Table>) {
        let name = table.schema().name.to_ascii_lowercase();
        debug_assert!(!self.views.contains_key(&name), "table {name} has the name of a view");
        let by_name = self.by_name.insert(name, table.clone());
        let by_id = self.by_id.insert(table.id(), table.clone());
        invariant!(
            by_name.is_none() && by_id.is_none(),
            "table {} has the name or the id {} of another",
            table.schema().name,
            table.id()
        );
        debug_assert!(
            self.by_name.len() == self.by_id.len(),
            "{} tables have names and {} have ids",
            self.by_name.len(),
            self.by_id.len()
        );
        table.layout().rules().compile_with(self.compile);
        table.enlist(&self.agenda);
        table.take_places();
    }

    /// Removes a table that was dropped. Older snapshots still see it.
    pub fn remove(&mut self, table: &Arc<Table>) {
        debug_assert!(
            table.is_dropped() && !table.is_newest(),
            "table {} is removed and not dropped",
            table.schema().name
        );
        self.take(table);
        self.keep_dropped(table);
        table.leave_agenda();
    }

    /// Keeps a table that is dropped for older snapshots.
    pub fn keep_dropped(&mut self, table: &Arc<Table>) {
        debug_assert!(!self.by_id.contains_key(&table.id()), "a table that is there is dropped");
        debug_assert!(
            self.dropped.iter().all(|dropped| dropped.id() != table.id()),
            "table {} is dropped twice",
            table.schema().name
        );
        self.dropped.push(table.clone());
    }

    /// Takes out a table of which the caller puts another version, or which it drops.
    pub fn take(&mut self, table: &Table) {
        let by_name = self.by_name.remove(&table.schema().name.to_ascii_lowercase());
        let by_id = self.by_id.remove(&table.id());
        invariant!(
            by_name.is_some_and(|removed| removed.id() == table.id()) && by_id.is_some(),
            "table {} is not in the catalog",
            table.schema().name
        );
        debug_assert!(
            self.by_name.len() == self.by_id.len(),
            "{} tables by name and {} by id",
            self.by_name.len(),
            self.by_id.len()
        );
    }

    /// Adds a view that this commit creates; `replace` allows it to replace another. `commit` is 0
    /// for a recovered view.
    pub fn add_view(
        &mut self,
        view: Arc<ViewSchema>,
        replace: bool,
        commit: Timestamp,
    ) -> Result<()> {
        let name = view.name.to_ascii_lowercase();
        let kind = match (self.by_name.contains_key(&name), self.views.contains_key(&name)) {
            (true, _) => "table",
            (false, true) if !replace => "view",
            _ => {
                let entry = ViewEntry { view, since: commit, until: FOREVER };
                let before = self.views.insert(name, entry);
                debug_assert!(replace || before.is_none(), "a view is replaced unasked");
                before.into_iter().for_each(|before| self.keep_view(before, commit));
                return Ok(());
            }
        };
        Err(Error::already_exists(format!("{kind} {} already exists", view.name))
            .with_sqlstate("42P07"))
    }

    /// Fails if there is no view of this name.
    pub fn check_view(&self, name: &str) -> Result<()> {
        match self.view(name) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01")),
        }
    }

    /// Removes a view that this commit drops. Older snapshots still see it.
    pub fn remove_view(&mut self, name: &str, commit: Timestamp) -> Result<()> {
        self.check_view(name)?;
        let removed = self.views.remove(&name.to_ascii_lowercase());
        removed.into_iter().for_each(|entry| self.keep_view(entry, commit));
        Ok(())
    }

    fn keep_view(&mut self, entry: ViewEntry, until: Timestamp) {
        debug_assert!(entry.until == FOREVER, "view {} ends twice", entry.view.name);
        debug_assert!(
            entry.since <= until,
            "view {} of commit {} ends before it, at {until}",
            entry.view.name,
            entry.since
        );
        if entry.since < until {
            self.old_views.push(ViewEntry { until, ..entry });
        }
    }
}

/// The version of a table that snapshots at a timestamp see; `None` if it was created later, or
/// dropped before.
fn seen_version(table: &Arc<Table>, at: Timestamp) -> Option<Arc<Table>> {
    debug_assert!(
        table.created() <= table.until(),
        "table {} of commit {} ends before it",
        table.schema().name,
        table.created()
    );
    let is_there = table.created() <= at && at < table.until();
    is_there.then(|| table.version_at(at))
}
