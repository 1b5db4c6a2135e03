//! Limits of a table and of the catalog name their values.

use crate::Store;
use crate::tests::{host, options, schema};
use nacre_host::memory::MemoryStore;
use nacre_types::{Error, ErrorKind, FIRST_TEMPORARY_TABLE, limits};
use std::sync::Arc;

#[track_caller]
fn is_limit(error: &Error, most: u64) {
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.message().contains(&most.to_string()), "{error}");
}

#[test]
fn ids_of_tables_and_columns_are_used_up() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let mut shape = schema("old", true);
    shape.next_column_id = limits::MAX_COLUMN_ID + 1;
    is_limit(&store.create_table(shape).map(drop).unwrap_err(), u64::from(limits::MAX_COLUMN_ID));
    store.context().catalog().saw_tables(FIRST_TEMPORARY_TABLE - 1);
    store.create_table(schema("last", true)).unwrap();
    for _ in 0..2 {
        let error = store.create_table(schema("next", true)).map(drop).unwrap_err();
        is_limit(&error, u64::from(FIRST_TEMPORARY_TABLE - 1));
    }
    assert!(store.table("last").is_some() && store.table("next").is_none());
}
