//! Where the values of new rows of a table come from: its
//! counter, which all versions share, and what its rules compute.

use crate::table::counter::Counter;
use nacre_types::TableSchema;
use std::sync::Arc;

/// What the values of new rows depend on.
#[derive(Default)]
pub(crate) struct RowSource {
    pub counter: Arc<Counter>,
    /// The identity column.
    pub identity: Option<usize>,
    /// Whether there are generated columns.
    pub generates: bool,
}

impl RowSource {
    /// That of another version of the table, which has this schema.
    pub fn of_version(&self, schema: &TableSchema) -> RowSource {
        self.counter.start_at(schema.next_identity);
        RowSource {
            counter: self.counter.clone(),
            identity: schema.identity_column(),
            generates: schema.columns.iter().any(|column| column.is_generated()),
        }
    }
}
