//! Keys and rows up to the limits, and beyond.

use super::*;

/// Looking up a key too long for any row finds nothing and is no error; inserting it fails.
#[test]
fn a_key_longer_than_keys_may_be_is_not_there() {
    let (_, store, table) = open_with(&[row(1, "a", 1)]);
    let long = row(1, &"x".repeat(limits::MAX_KEY_BYTES), 2);
    for flush in [false, true] {
        if flush {
            store.flush(&table).unwrap();
        }
        let mut t = store.begin().unwrap();
        assert_eq!(store.get(&table, &long[..2], &[2]).unwrap(), None);
        assert_eq!(t.get(&table, &long[..2], &[2]).unwrap(), None);
        assert_eq!(t.locate(&table, &long[..2]).unwrap(), None);
        assert!(t.view(&table).probe_key(&long[..2]).unwrap().is_empty());
        assert_eq!(t.conflicting(&table, &long).unwrap(), []);
        assert_eq!(t.insert_row(&table, &long).unwrap_err().kind(), ErrorKind::Limit);
        let at = locate(&t, &table, 1);
        assert_eq!(t.update_row(&table, &at, &row(1, "a", 1)).map(|()| 1).unwrap(), 1);
        assert_eq!(
            t.update(&table, &[at], &batch(std::slice::from_ref(&long))).unwrap_err().kind(),
            ErrorKind::Limit
        );
    }
}

/// Runs of rows in memory have a bounded size, however long the texts are.
#[test]
fn a_run_of_long_rows_ends_early() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let table = store.create_table(schema("t", false)).unwrap();
    let long = "x".repeat(crate::read::view::RUN_BYTES / 4);
    let rows: Vec<_> = (0..40).map(|id| row(id, &long, 1)).collect();
    let mut t = store.begin().unwrap();
    t.insert(&table, &batch(&rows)).unwrap();
    let mut memory = t.view(&table).memory(&[0, 1], false);
    let mut runs = Vec::new();
    while let Some((batch, _)) = memory.next(limits::VECTOR_ROWS).unwrap() {
        runs.push(batch.rows);
    }
    assert_eq!(runs.iter().sum::<usize>(), rows.len());
    assert!(runs.iter().all(|rows| *rows <= 5), "{runs:?}");
}
