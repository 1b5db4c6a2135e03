//! The tables and views of a database, by name and by id, as the newest commit left them.

use crate::table::agenda::Agenda;
use crate::table::rules::CompileRules;
use crate::table::version::Table;
use nacre_types::hash::Map;
use nacre_types::{Error, Result, TableId, Timestamp, ViewSchema, invariant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The catalog's contents. Names ignore ASCII case; tables and views share one namespace.
#[derive(Clone)]
pub(crate) struct Contents {
    agenda: Arc<Agenda>,
    /// Compiles the rules of its tables.
    compile: Option<CompileRules>,
    /// By lower-case name.
    by_name: BTreeMap<String, Arc<Table>>,
    by_id: Map<TableId, Arc<Table>>,
    /// By lower-case name.
    views: BTreeMap<String, Arc<ViewSchema>>,
}

impl Contents {
    /// Contents without a table. The work of tables is noted on this agenda, and their rules are
    /// compiled by `compile`.
    pub fn new(agenda: Agenda, compile: Option<CompileRules>) -> Contents {
        Contents {
            agenda: Arc::new(agenda),
            compile,
            by_name: BTreeMap::new(),
            by_id: Map::default(),
            views: BTreeMap::new(),
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
        self.by_name.get(&name.to_ascii_lowercase())
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.by_id.get(&id)
    }

    /// All views, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewSchema>> {
        self.views.values()
    }

    /// A view by name.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewSchema>> {
        self.views.get(&name.to_ascii_lowercase())
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
        table.created_by(commit);
        self.insert(table);
        Ok(())
    }

    /// Adds a version of a table that the log has.
    pub fn put(&mut self, table: &Arc<Table>) -> Result<()> {
        self.check_name(&table.schema().name)?;
        debug_assert!(table.is_newest(), "an old version of table {} is put", table.schema().name);
        self.insert(table);
        Ok(())
    }

    /// Replaces a version of a table by a new one, whose name may differ.
    pub fn replace(&mut self, old: &Table, new: &Arc<Table>) -> Result<()> {
        let (from, to) = (&old.schema().name, &new.schema().name);
        invariant!(old.id() == new.id(), "table {to} takes the place of table {from}");
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
        table.row_source().rules.compile_with(self.compile);
        table.enlist(&self.agenda);
    }

    /// Removes a table that was dropped.
    pub fn remove(&mut self, table: &Table) {
        self.take(table);
        table.leave_agenda();
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

    /// Adds a view; `replace` allows it to replace another.
    pub fn add_view(&mut self, view: Arc<ViewSchema>, replace: bool) -> Result<()> {
        let name = view.name.to_ascii_lowercase();
        let kind = match (self.by_name.contains_key(&name), self.views.contains_key(&name)) {
            (true, _) => "table",
            (false, true) if !replace => "view",
            _ => {
                let before = self.views.insert(name, view);
                debug_assert!(replace || before.is_none(), "a view is replaced unasked");
                return Ok(());
            }
        };
        Err(Error::already_exists(format!("{kind} {} already exists", view.name))
            .with_sqlstate("42P07"))
    }

    /// Removes a view.
    pub fn remove_view(&mut self, name: &str) -> Result<()> {
        match self.views.remove(&name.to_ascii_lowercase()) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01")),
        }
    }
}
