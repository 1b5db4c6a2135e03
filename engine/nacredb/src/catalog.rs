//! The binder's view of the storage's catalog.

use nacre_sql::Catalog;
use nacre_table::Store;
use nacre_types::{TableSchema, ViewSchema};
use std::sync::Arc;

pub(crate) struct StoreCatalog<'a>(pub &'a Store);

impl Catalog for StoreCatalog<'_> {
    fn table(&self, name: &str) -> Option<Arc<TableSchema>> {
        self.0.table(name).map(|t| t.schema().clone())
    }

    fn table_names(&self) -> Vec<String> {
        self.0.tables().iter().map(|t| t.schema().name.clone()).collect()
    }

    fn view(&self, name: &str) -> Option<Arc<ViewSchema>> {
        self.0.view(name)
    }

    fn view_names(&self) -> Vec<String> {
        self.0.views().iter().map(|v| v.name.clone()).collect()
    }

    fn row_count(&self, table: &TableSchema) -> u64 {
        self.0.table_by_id(table.id).map_or(0, |t| t.row_count_estimate())
    }
}
