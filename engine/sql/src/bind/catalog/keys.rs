//! The keys and indexes of a table as statements show them.

use nacre_types::{IndexSchema, TableSchema};

/// The primary key or an index, as statements list it.
pub(crate) struct Key {
    pub name: String,
    pub columns: Vec<usize>,
    pub unique: bool,
    pub kind: &'static str,
}

/// The primary key first.
pub(crate) fn keys_of(table: &TableSchema) -> Vec<Key> {
    let primary = table.primary_key.as_ref().map(|key| Key {
        name: key.name.clone(),
        columns: key.columns.clone(),
        unique: true,
        kind: "BTREE",
    });
    let index = |index: &IndexSchema| Key {
        name: index.name.clone(),
        columns: index.columns.iter().filter_map(|id| table.column_position(*id)).collect(),
        unique: index.unique,
        kind: index.kind.traits().keyword.unwrap_or_default(),
    };
    primary.into_iter().chain(table.declared_indexes().map(index)).collect()
}

/// What MySQL shows of a column's keys: whether it is in the primary key, unique by itself, or the first of an index.
pub(crate) fn key_of_column(table: &TableSchema, at: usize) -> &'static str {
    let keys = keys_of(table);
    if table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&at)) {
        "PRI"
    } else if keys.iter().any(|key| key.unique && key.columns == [at]) {
        "UNI"
    } else if keys.iter().any(|key| key.columns.first() == Some(&at)) {
        "MUL"
    } else {
        ""
    }
}
