//! Logs with good checksums that no store writes: opening answers with `corrupt`, so that nothing that
//! comes later crashes.

use crate::layout::table_layout::TableLayout;
use crate::record::{self, ImageWriter, NextIds, Place};
use crate::tests::access::lock;
use crate::tests::{batch, host, options, row, schema};
use crate::{Store, Table};
use nacre_host::memory::MemoryStore;
use nacre_log::{Log, LogOptions};
use nacre_types::{ErrorKind, Result, TableSchema};
use std::sync::Arc;

/// A table without a primary key, and one row in it.
fn open(files: &Arc<MemoryStore>) -> (Arc<Store>, Arc<Table>) {
    let store = Store::open(host(files), options()).unwrap();
    let table = store.create_table(schema("t", false)).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.insert(&table, &batch(&[row(1, "a", 1)])).unwrap();
    transaction.commit().unwrap();
    (store, table)
}

fn reopen(files: &Arc<MemoryStore>) -> Result<Arc<Store>> {
    Store::open(host(files), options())
}

/// Opens a store whose log ends with an operation that `forge` appends.
fn reopened_with(forge: impl Fn(&mut Vec<u8>, Place, &[u8])) -> Result<Arc<Store>> {
    let files = Arc::new(MemoryStore::new());
    let (store, table) = open(&files);
    let mut turn = lock(&store);
    let mut payload = record::begin(turn.next());
    let encoded = table.layout().encode_row(&row(2, "b", 2)).unwrap();
    forge(&mut payload, table.place(&table.partitions()[0]), &encoded);
    turn.append(&payload).unwrap();
    drop(turn);
    store.sync_log().unwrap();
    drop((store, table));
    reopen(&files)
}

/// A hidden row number from which no further one can be counted made the next insert crash.
#[test]
fn a_row_number_that_is_out_of_range_is_corrupt() {
    for number in [-1, i64::MIN, i64::MAX, i64::MAX / 2 + 1] {
        let key = TableLayout::encode_row_number(number as u64);
        let opened = reopened_with(|payload, place, row| record::put(payload, place, &key, row));
        assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Corrupt), "{number}");
    }
    // The greatest that is accepted leaves room for others.
    let key = TableLayout::encode_row_number(i64::MAX as u64 / 2);
    let store =
        reopened_with(|payload, place, row| record::put(payload, place, &key, row)).unwrap();
    let table = store.table("t").unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.insert(&table, &batch(&[row(3, "c", 3)])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_row_without_a_number_is_corrupt() {
    let opened = reopened_with(|payload, place, row| record::put(payload, place, &[0], row));
    assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
}

/// Opens a store whose snapshot has these next ids and a table in which `rows` rows were numbered.
fn opened_from(next: NextIds, rows: u64) -> Result<Arc<Store>> {
    let mut image = ImageWriter::new(next, 1);
    image.begin_table(&TableSchema { id: 1, ..schema("t", false) }, 1)?;
    image.begin_partition(rows + 1, 0);
    image.end_rows();
    image.finish(std::iter::empty(), &[], &[], &[], &[], &[]);
    let payload = image.take();
    let files = Arc::new(MemoryStore::new());
    let log = Log::open(files.clone(), LogOptions::default(), &mut |_| Ok(()), &mut |_, _| Ok(()))?;
    let at = log.append(&[0; 8])?;
    log.write_snapshot(at, &payload)?;
    log.close()?;
    drop(log);
    reopen(&files)
}

/// The numbers of commits, files and rows in a snapshot are checked like those in records.
#[test]
fn a_snapshot_whose_numbers_are_out_of_range_is_corrupt() {
    let next = NextIds { commit: 5, segment: 7, table: 2 };
    let store = opened_from(next, 9).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.insert(&store.table("t").unwrap(), &batch(&[row(1, "a", 1)])).unwrap();
    transaction.commit().unwrap();
    for (next, rows) in [
        (NextIds { commit: u64::MAX, ..next }, 9),
        (NextIds { segment: u64::MAX, ..next }, 9),
        (next, u64::MAX / 2),
        (next, u64::MAX - 1),
    ] {
        let kind = opened_from(next, rows).err().map(|error| error.kind());
        assert_eq!(kind, Some(ErrorKind::Corrupt), "{next:?}, {rows} rows");
    }
}
