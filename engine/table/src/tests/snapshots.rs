//! Snapshots step by step: what happens between two steps, and after a crash between them.

use crate::maintenance::snapshot::SnapshotWrite;
use crate::tests::access::{copy, merge};
use crate::tests::flushes::{change, filled};
use crate::tests::{agree, alter, host, options, schema};
use crate::{Store, StoreOptions};
use nacre_host::LocalStore;
use nacre_host::memory::MemoryStore;
use nacre_testing::Random;
use nacre_types::ErrorKind;
use std::sync::Arc;

/// Options with which a piece is a few rows.
fn small() -> StoreOptions {
    StoreOptions { segment_rows: 50, snapshot_bytes: 2_000, partitions: 2, ..options() }
}

fn snapshots(files: &MemoryStore) -> usize {
    files.list().unwrap().iter().filter(|name| name.starts_with("snap-")).count()
}

/// Rows are written, flushed and removed while a snapshot goes on, and after each step a crash
/// loses nothing.
#[test]
fn writers_and_crashes_come_between_the_steps_of_a_snapshot() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let files = Arc::new(MemoryStore::new());
        let (store, table, mut model) = filled(&files, schema("t", true), 0..300);
        drop(store);
        let store = Store::open(host(&files), small()).unwrap();
        let mut steps = 0;
        for round in 0..3 {
            let mut snapshot = SnapshotWrite::begin(store.context()).unwrap().unwrap();
            while !snapshot.is_written() {
                snapshot.step(store.context()).unwrap();
                steps += 1;
                change(&store, &mut model, &mut random);
                let newest = store.table("t").unwrap();
                match random.below(20) {
                    0 => store.flush(&newest).unwrap(),
                    1 => {
                        let partition = &newest.partitions()[0];
                        let current = partition.segments().iter().cloned().collect::<Vec<_>>();
                        let current: Vec<_> =
                            current.into_iter().filter(|state| state.is_current()).collect();
                        merge(&store, &newest, partition, &current).unwrap();
                    }
                    2 => alter(&store, &newest, steps),
                    _ => {}
                }
                let crashed = Store::open(host(&copy(&files)), small()).unwrap();
                agree(&crashed.begin().unwrap(), &table, &model, seed, steps);
            }
            match round {
                1 => snapshot.abandon(store.context()),
                _ => snapshot.publish(store.context()).unwrap(),
            }
            assert_eq!(snapshots(&files), 1, "round {round}");
            let crashed = Store::open(host(&copy(&files)), small()).unwrap();
            agree(&crashed.begin().unwrap(), &table, &model, seed, steps);
            assert_eq!(crashed.check().unwrap(), Vec::<String>::new());
        }
        assert!(steps > 60, "{steps} steps");
    }
}

/// A store that is closed in the middle of a snapshot leaves no part of it.
#[test]
fn a_snapshot_is_abandoned_when_its_store_is_closed() {
    let files = Arc::new(MemoryStore::new());
    let (store, table, model) = filled(&files, schema("t", true), 0..300);
    drop(store);
    let store = Store::open(host(&files), small()).unwrap();
    for _ in 0..4 {
        assert!(store.maintain().unwrap());
    }
    assert_eq!(snapshots(&files), 1, "it is being written");
    store.close().unwrap();
    assert_eq!(snapshots(&files), 0);
    assert_eq!(store.maintain().unwrap_err().kind(), ErrorKind::Closed);
    let store = Store::open(host(&files), small()).unwrap();
    agree(&store.begin().unwrap(), &table, &model, 0, 0);
    while store.maintain().unwrap() {}
    assert_eq!(snapshots(&files), 1);
}
