//! The binder's view of the store's catalog.

use nacre_sql::{Catalog, ColumnStatistics};
use nacre_table::Store;
use nacre_types::{MemoryPart, TableSchema, Timestamp, ViewSchema};
use std::sync::Arc;

/// The catalog at a timestamp.
pub(crate) struct StoreCatalog<'a> {
    pub store: &'a Store,
    pub at: Timestamp,
}

impl Catalog for StoreCatalog<'_> {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        Some(self.store.table_at(name, self.at)?.schema().clone())
    }

    fn table_names(&self) -> Vec<String> {
        self.store.table_names_at(self.at)
    }

    fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        self.store.view_at(name, self.at)
    }

    fn view_names(&self) -> Vec<String> {
        self.store.views_at(self.at).iter().map(|v| v.name.clone()).collect()
    }

    fn memory(&self) -> Vec<MemoryPart> {
        self.store.memory()
    }

    fn row_count(&self, table: &TableSchema) -> u64 {
        self.store.table_by_id_at(table.id, self.at).map_or(0, |t| t.row_count_estimate())
    }

    fn column_statistics(&self, table: &TableSchema, column: usize) -> Option<ColumnStatistics> {
        let known = self.store.table_by_id_at(table.id, self.at)?.column_summary(column).ok()??;
        Some(ColumnStatistics {
            min: known.min,
            max: known.max,
            nulls: known.nulls,
            distinct: known.distinct,
        })
    }
}
