//! The keys and indexes of a table as `SHOW` and `information_schema` list them.

use nacre_types::invariant::broken;
use nacre_types::{IndexSchema, TableSchema};

/// The primary key or an index.
pub(crate) struct Key {
    pub name: String,
    pub columns: Vec<usize>,
    pub unique: bool,
    pub kind: &'static str,
}

/// Returns the primary key, then the declared indexes.
pub(crate) fn keys_of(table: &TableSchema) -> Vec<Key> {
    let primary = table.primary_key.as_ref().map(|key| Key {
        name: key.name.clone(),
        columns: key.columns.clone(),
        unique: true,
        kind: "BTREE",
    });
    let index = |index: &IndexSchema| {
        let Some(kind) = index.kind.traits().keyword else {
            broken(format_args!("a declared index has a kind with a keyword"))
        };
        let columns = table.key_positions(index);
        Key { name: index.name.clone(), columns, unique: index.unique, kind }
    };
    primary.into_iter().chain(table.declared_indexes().map(index)).collect()
}

/// Returns MySQL's key marker of a column: `PRI` in the primary key, `UNI` unique by itself, `MUL`
/// first column of an index, otherwise empty.
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
