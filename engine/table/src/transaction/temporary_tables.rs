//! The temporary tables of a session. They are in no catalog and in no record of the log: the session's
//! transactions find them here, and their rows stay in memory until the session ends.

use crate::table::version::Table;
use nacre_types::{TableId, TableSchema, invariant};
use std::sync::{Arc, PoisonError, RwLock};

/// The temporary tables of one session, each in its newest version.
#[derive(Default)]
pub struct TemporaryTables(RwLock<Vec<Arc<Table>>>);

impl TemporaryTables {
    fn read<T>(&self, look: impl FnOnce(&[Arc<Table>]) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read(|tables| tables.is_empty())
    }

    /// A table by name, ignoring ASCII case.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        let is_it = |table: &&Arc<Table>| table.schema().name.eq_ignore_ascii_case(name);
        self.read(|tables| tables.iter().find(is_it).cloned())
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.read(|tables| tables.iter().find(|table| table.id() == id).cloned())
    }

    /// The table with this schema.
    pub fn table_of(&self, schema: &TableSchema) -> Option<Arc<Table>> {
        self.table_by_id(schema.id).filter(|table| table.is_of(schema))
    }

    /// The names of all of them.
    pub fn names(&self) -> Vec<String> {
        self.read(|tables| tables.iter().map(|table| table.schema().name.clone()).collect())
    }

    /// Puts a version of a table in the place of the one before, if there is any.
    pub(super) fn put(&self, table: &Arc<Table>) {
        invariant!(table.is_temporary(), "table {} is not temporary", table.schema().name);
        self.remove(table.id());
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(
            tables
                .iter()
                .all(|other| !other.schema().name.eq_ignore_ascii_case(&table.schema().name)),
            "two temporary tables are called {}",
            table.schema().name
        );
        tables.push(table.clone());
    }

    /// Removes a table.
    pub(super) fn remove(&self, id: TableId) {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tables.retain(|table| table.id() != id);
        debug_assert!(tables.iter().all(|table| table.is_temporary()), "a table is not temporary");
    }
}

impl Drop for TemporaryTables {
    /// The rowstores count no more.
    fn drop(&mut self) {
        self.read(|tables| tables.iter().for_each(|table| table.leave_agenda()));
    }
}
