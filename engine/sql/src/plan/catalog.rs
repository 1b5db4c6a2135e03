//! What binder and optimizer ask of the database: names, schemas, and rough numbers.

use nacre_types::{TableSchema, Value, ViewSchema};
use std::sync::Arc;

/// What the storage knows of the values of a column, roughly: plans may be better or worse for it, never wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// No value is below, as far as is known; null when nothing is.
    pub min: Value,
    /// No value is above, as far as is known; null when nothing is.
    pub max: Value,
    /// Share of nulls.
    pub nulls: f64,
    /// Number of distinct values; 0 when nothing is known.
    pub distinct: f64,
}

/// What the binder needs to know about the database: schemas, not storage.
pub trait Catalog {
    /// A table by name, without regard to ASCII case.
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;
    /// A view by name, without regard to ASCII case.
    fn view(&self, _name: &str) -> Option<Arc<ViewSchema>> {
        None
    }
    /// Names of all views.
    fn view_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Names of all tables, for suggestions and `SHOW TABLES`.
    fn table_names(&self) -> Vec<String>;
    /// About how many rows a table has, for join order and build sides.
    fn row_count(&self, table: &TableSchema) -> u64;
    /// What is known of the values of a column, by its position, for the same.
    fn column_statistics(&self, _table: &TableSchema, _column: usize) -> Option<ColumnStatistics> {
        None
    }
}
