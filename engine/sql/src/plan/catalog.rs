//! What the binder and the optimizer need from the database: names, schemas and estimates.

use nacre_function::entry::created::CreatedFunctions;
use nacre_types::{CachePart, MemoryPart, TableSchema, Value, ViewSchema};
use std::sync::Arc;

/// Estimated statistics of a column. They affect how good a plan is, never whether it is correct.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// Lower bound of the values, or null if unknown.
    pub min: Value,
    /// Upper bound of the values, or null if unknown.
    pub max: Value,
    /// Fraction of nulls.
    pub nulls: f64,
    /// Number of distinct values, or 0 if unknown.
    pub distinct: f64,
}

/// The binder's view of the database: schemas, not storage.
pub trait Catalog {
    /// Looks up a table by name, ignoring ASCII case.
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;
    /// Looks up a view by name, ignoring ASCII case.
    fn view(&self, _name: &str) -> Option<Arc<ViewSchema>> {
        None
    }
    /// Names of all views.
    fn view_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Names of all tables, for suggestions and `SHOW TABLES`.
    fn table_names(&self) -> Vec<String>;
    /// The functions that the application created.
    fn created_functions(&self) -> Option<&CreatedFunctions> {
        None
    }
    /// What each part of the database holds in memory, for `information_schema.memory`.
    fn memory(&self) -> Vec<MemoryPart> {
        Vec::new()
    }
    /// What of each column and index is on the local disk, for `information_schema.cache`.
    fn cache(&self) -> Vec<CachePart> {
        Vec::new()
    }
    /// How far the database and its newest upload are in the log, for `information_schema.lag`.
    fn lag(&self) -> [Value; 6] {
        [const { Value::Null }; 6]
    }
    /// Estimated number of rows of a table, for join order and build sides.
    fn row_count(&self, table: &TableSchema) -> u64;
    /// Statistics of the column at a position, for join order and build sides.
    fn column_statistics(&self, _table: &TableSchema, _column: usize) -> Option<ColumnStatistics> {
        None
    }
}
