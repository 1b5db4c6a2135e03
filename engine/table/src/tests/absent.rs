//! Reads of files that lack some of their bytes.

use crate::tests::{batch, options, row, schema};
use crate::{Fetched, Store};
use nacre_host::memory::MemoryStore;
use nacre_testing::{Absent, Fixed};
use nacre_types::Reason;
use std::sync::Arc;

/// Segments, hash tables and index parts.
fn may_lack(name: &str) -> bool {
    ["seg-", "hsh-", "idx-"].iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn estimates_do_not_remember_that_bytes_were_absent() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(nacre_testing::host(files.clone()), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..3_000).map(|id| row(id, &format!("t{id}"), id * 977)).collect();
    let mut transaction = store.begin().unwrap();
    transaction.insert(&table, &batch(&rows)).unwrap();
    transaction.commit().unwrap();
    store.flush(&table).unwrap();
    let expected = (0..3).map(|at| table.column_summary(at).unwrap().unwrap().distinct);
    let expected: Vec<f64> = expected.collect();
    assert!(expected.iter().all(|distinct| *distinct > 0.0), "{expected:?}");
    drop((table, store));

    let absent = Absent::new(files, 1, may_lack);
    let store = Store::open(nacre_testing::host(absent.clone()), options()).unwrap();
    let table = store.table("t").unwrap();
    absent.deny(100, 100);
    let mut fetched = Fetched::default();
    for (at, expected) in expected.into_iter().enumerate() {
        let mut misses = 0;
        let summary = loop {
            match table.column_summary(at) {
                Err(error) => {
                    assert_eq!(error.reason(), Some(Reason::NotResident));
                    misses += 1;
                    fetched.resolve_now(error, &*absent, &Fixed::default()).unwrap();
                }
                summary => break summary.unwrap().unwrap(),
            }
        };
        assert!(misses > 0 || at > 0, "nothing was absent");
        assert_eq!(summary.distinct, expected, "column {at} after {misses} misses");
    }
}
