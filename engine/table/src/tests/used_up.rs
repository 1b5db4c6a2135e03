//! Limits of a table and of the catalog name their values.

use crate::record::RunPlace;
use crate::table::segment_list::MAX_SEGMENTS;
use crate::tests::{batch, host, options, row, scan, schema};
use crate::{OnDuplicate, Segment, SegmentState, Store};
use nacre_host::LocalStore;
use nacre_host::memory::MemoryStore;
use nacre_segment::BlockCache;
use nacre_types::hash::Set;
use nacre_types::{Error, ErrorKind, FIRST_TEMPORARY_TABLE, limits};
use roaring::RoaringBitmap;
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

/// Segments that only an old snapshot sees take places, too.
#[test]
fn a_partition_takes_no_segment_for_which_there_is_no_place() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let load = |id| {
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        load.append(&batch(&[row(id, "x", 1)])).unwrap();
        load.finish()
    };
    load(1).unwrap();
    let partition = &table.partitions()[0];
    let known = table.segments()[0].clone();
    let (name, at) = (known.segment.name(), store.visible());
    let another = |id| {
        let file = files.open(name).unwrap();
        let segment = Segment::open(file, name, id, BlockCache::new(0)).unwrap();
        let state = SegmentState::new(Arc::new(segment), at, RoaringBitmap::new());
        state.drop_at(at);
        (RunPlace { number: id, level: 0 }, vec![Arc::new(state)])
    };
    let ids: Set<u64> = (1_000_000..).take(MAX_SEGMENTS - 1).collect();
    partition.update_segments(|list| list.add_all(ids.iter().map(|id| another(*id))));
    let written = || files.list().unwrap().iter().filter(|name| name.starts_with("seg-")).count();
    let (position, before) = (store.log_position(), written());
    is_limit(&load(2).unwrap_err(), MAX_SEGMENTS as u64);
    assert_eq!((store.log_position(), written()), (position, before));
    let mut writer = store.begin().unwrap();
    writer.insert(&table, &batch(&[row(3, "x", 1)])).unwrap();
    writer.commit().unwrap();
    is_limit(&store.flush(&table).unwrap_err(), MAX_SEGMENTS as u64);
    assert_eq!(written(), before);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 2);
    partition.update_segments(|list| list.remove(&ids));
    load(2).unwrap();
    store.flush(&table).unwrap();
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 3);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
