//! Where the values of new rows of a table come from: its rules, which belong to one version, and
//! its counter, which all versions share.

use crate::table::counter::Counter;
use crate::table::rules::TableRules;
use nacre_types::TableSchema;
use std::sync::Arc;

/// What the values of new rows depend on.
#[derive(Default)]
pub(crate) struct RowSource {
    pub rules: TableRules,
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
            rules: TableRules::default(),
            counter: self.counter.clone(),
            identity: schema.identity_column(),
            generates: schema.columns.iter().any(|column| column.is_generated()),
        }
    }
}
