//! The catalog that a session sees.

use nacre_host::{Lag, Uploads};
use nacre_sql::{Catalog, ColumnStatistics, CreatedFunctions};
use nacre_table::{Store, Table, TemporaryTables, Transaction};
use nacre_types::{CachePart, MemoryPart, Result, TableSchema, Timestamp, Value, ViewSchema};
use std::sync::Arc;

/// The catalog at a timestamp, with what the session's open transaction has changed.
#[derive(Clone, Copy)]
pub(crate) struct StoreCatalog<'a> {
    store: &'a Store,
    uploads: Option<&'a dyn Uploads>,
    at: Timestamp,
    /// The open transaction, if it has changed the catalog.
    own: Option<&'a Transaction>,
    /// The session's temporary tables, if there are any and no transaction is open that knows them.
    temporary: Option<&'a TemporaryTables>,
    functions: Option<&'a CreatedFunctions>,
}

impl<'a> StoreCatalog<'a> {
    /// The catalog of the open transaction, otherwise that of the next one.
    pub fn new(
        store: &'a Store,
        uploads: Option<&'a dyn Uploads>,
        open: Option<&'a Transaction>,
        temporary: &'a TemporaryTables,
    ) -> StoreCatalog<'a> {
        let temporary = Some(temporary).filter(|tables| !tables.is_empty());
        StoreCatalog {
            store,
            uploads,
            at: open.map_or_else(|| store.visible(), Transaction::snapshot),
            own: open.filter(|open| temporary.is_some() || open.changes_catalog()),
            temporary: temporary.filter(|_| open.is_none()),
            functions: None,
        }
    }

    /// The same with functions that the application created.
    pub fn with<'b>(self, functions: &'b CreatedFunctions) -> StoreCatalog<'b>
    where
        'a: 'b,
    {
        StoreCatalog { functions: Some(functions), ..self }
    }

    /// The timestamp.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether only the session sees it.
    pub fn is_private(&self) -> bool {
        self.own.is_some() || self.temporary.is_some()
    }

    /// The table with this schema. `not_found` if it does not exist, `conflict` if its columns,
    /// indexes or name are different.
    pub fn table_of(&self, schema: &TableSchema) -> Result<Arc<Table>> {
        match self.own {
            Some(transaction) => transaction.table_of(schema),
            None => match self.temporary.and_then(|tables| tables.table_of(schema)) {
                Some(table) => Ok(table),
                None => self.store.table_of(schema, self.at),
            },
        }
    }

    fn table_by_id(&self, table: &TableSchema) -> Option<Arc<Table>> {
        match self.own {
            Some(transaction) => transaction.table_by_id(table.id),
            None => self
                .temporary
                .and_then(|tables| tables.table_by_id(table.id))
                .or_else(|| self.store.table_by_id_at(table.id, self.at)),
        }
    }

    fn views(&self) -> Vec<Arc<ViewSchema>> {
        match self.own {
            Some(transaction) => transaction.views(),
            None => self.store.views_at(self.at),
        }
    }
}

impl Catalog for StoreCatalog<'_> {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        let table = match self.own {
            Some(transaction) => transaction.table(name),
            None => self
                .temporary
                .and_then(|tables| tables.table(name))
                .or_else(|| self.store.table_at(name, self.at)),
        };
        table.map(|table| table.schema().clone())
    }

    fn table_names(&self) -> Vec<String> {
        match self.own {
            Some(transaction) => transaction.table_names(),
            None => {
                let mut names = self.store.table_names_at(self.at);
                let temporary = self.temporary.map(TemporaryTables::names);
                names.extend(temporary.into_iter().flatten());
                names.sort_unstable();
                names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
                names
            }
        }
    }

    fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        match self.own {
            Some(transaction) => transaction.view_named(name),
            // A temporary table hides it.
            None if self.temporary.is_some_and(|tables| tables.table(name).is_some()) => None,
            None => self.store.view_at(name, self.at),
        }
    }

    fn view_names(&self) -> Vec<String> {
        self.views().iter().map(|view| view.name.clone()).collect()
    }

    fn created_functions(&self) -> Option<&CreatedFunctions> {
        self.functions
    }

    fn memory(&self) -> Vec<MemoryPart> {
        self.store.memory()
    }

    fn cache(&self) -> Vec<CachePart> {
        // What is damaged is reported by what reads it.
        let tables = self.table_names().into_iter().filter_map(|name| self.table(&name));
        let tables = tables.filter_map(|schema| self.table_by_id(&schema));
        tables.flat_map(|table| table.cache().unwrap_or_default()).collect()
    }

    fn lag(&self) -> [Value; 6] {
        let count = |n: u128| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let lag = self.uploads.map(Uploads::lag);
        let of = |value: &dyn Fn(&Lag) -> Value| lag.as_ref().map_or(Value::Null, value);
        [
            count(self.store.log_position().into()),
            of(&|lag| count(lag.position.into())),
            of(&|lag| Value::Timestamp(lag.written_us)),
            of(&|lag| count(lag.since_looked.as_millis())),
            of(&|lag| Value::Text(lag.lease.name().into())),
            of(&|lag| lag.failure.clone().map_or(Value::Null, Value::Text)),
        ]
    }

    fn row_count(&self, table: &TableSchema) -> u64 {
        self.table_by_id(table).map_or(0, |table| table.row_count_estimate())
    }

    fn column_statistics(&self, table: &TableSchema, column: usize) -> Option<ColumnStatistics> {
        let known = self.table_by_id(table)?.column_summary(column).ok()??;
        Some(ColumnStatistics {
            min: known.min,
            max: known.max,
            nulls: known.nulls,
            distinct: known.distinct,
        })
    }
}
