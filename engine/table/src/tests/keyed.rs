//! Batched writes under primary keys: existing rows in every location, concurrent writers, and
//! locks left behind.

use crate::tests::{batch, open_with, row, scan};
use crate::{OnDuplicate, RowKey, Store, Table, Transaction};
use nacre_types::{Error, ErrorKind, Result, Value};
use std::future::Future;
use std::sync::Arc;

type Row = Vec<Value>;
/// Moves rows without changing the contents of a table.
type Shuffle = fn(&Arc<Store>, &Arc<Table>);

fn keys(table: &Table, rows: &[Row]) -> Vec<RowKey> {
    rows.iter().map(|row| table.row_key(row).unwrap()).collect()
}

/// Increments the number of existing rows and inserts the others. Returns how many existed.
fn upsert(t: &mut Transaction, table: &Arc<Table>, rows: &[Row]) -> Result<usize> {
    let mut there = 0;
    t.write_keys(table, &keys(table, rows), |_, olds| {
        there = olds.iter().flatten().count();
        let next = |(old, new): (&Option<Row>, &Row)| match old {
            Some(old) => {
                let Value::Int(n) = old[2] else { panic!("{old:?}") };
                Some(vec![old[0].clone(), old[1].clone(), Value::Int(n + 1)])
            }
            None => Some(new.clone()),
        };
        Ok(olds.iter().zip(rows).map(next).collect())
    })?;
    Ok(there)
}

/// Ids and numbers of the visible rows, sorted.
fn seen(t: &Transaction, table: &Arc<Table>) -> Vec<(i64, i64)> {
    let number = |value: &Value| if let Value::Int(v) = value { *v } else { panic!("{value:?}") };
    let mut rows: Vec<_> = scan(&t.view(table))
        .unwrap()
        .iter()
        .map(|(row, _)| (number(&row[0]), number(&row[2])))
        .collect();
    rows.sort_unstable();
    rows
}

fn rows(ids: std::ops::Range<i64>, n: i64) -> Vec<Row> {
    ids.map(|id| row(id, "a", n)).collect()
}

fn nodes(store: &Arc<Store>, table: &Arc<Table>) -> usize {
    while store.maintain().unwrap() {}
    table.rowstore_size().0
}

#[test]
fn rows_are_met_wherever_they_are() {
    // Rearrangements before the snapshot, and between it and the batch. None changes the contents.
    let places: [Shuffle; 5] = [
        |_, _| {},
        |store, table| store.flush(table).unwrap(),
        |store, table| store.merge_all(table).unwrap(),
        |store, table| {
            store.flush(table).unwrap();
            let mut mover = store.begin().unwrap();
            let all: Vec<_> = scan(&mover.view(table))
                .unwrap()
                .into_iter()
                .map(|(_, at)| at)
                .step_by(2)
                .collect();
            mover.lock(table, &all).unwrap();
            mover.rollback();
        },
        |store, table| {
            store.flush(table).unwrap();
            while store.maintain().unwrap() {}
        },
    ];
    for (first, before) in places.iter().enumerate() {
        for (second, between) in places.iter().enumerate() {
            let (_, store, table) = open_with(&rows(0..40, 1));
            before(&store, &table);
            let mut t = store.begin().unwrap();
            between(&store, &table);
            let batch: Vec<Row> = rows(20..60, 7).into_iter().rev().collect();
            assert_eq!(upsert(&mut t, &table, &batch).unwrap(), 20, "{first} {second}");
            let mut expected: Vec<(i64, i64)> =
                (0..60).map(|id| (id, [1, 2, 7][id as usize / 20])).collect();
            assert_eq!(seen(&t, &table), expected, "{first} {second}");
            // The same transaction sees its own writes, also after rolling some back.
            let savepoint = t.savepoint();
            assert_eq!(upsert(&mut t, &table, &rows(10..70, 9)).unwrap(), 50);
            t.rollback_to(savepoint);
            assert_eq!(seen(&t, &table), expected, "{first} {second}");
            assert_eq!(upsert(&mut t, &table, &rows(50..61, 9)).unwrap(), 10);
            expected[50..].iter_mut().for_each(|(_, n)| *n += 1);
            expected.push((60, 9));
            assert_eq!(seen(&t, &table), expected, "{first} {second}");
            t.commit().unwrap();
            between(&store, &table);
            assert_eq!(seen(&store.begin().unwrap(), &table), expected, "{first} {second}");
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_deleted_key_is_free() {
    let (_, store, table) = open_with(&rows(0..4, 1));
    store.flush(&table).unwrap();
    let delete = |t: &mut Transaction| {
        let all: Vec<_> = scan(&t.view(&table)).unwrap().into_iter().map(|(_, at)| at).collect();
        t.delete(&table, &all).unwrap();
    };
    let mut t = store.begin().unwrap();
    delete(&mut t);
    assert_eq!(upsert(&mut t, &table, &rows(0..4, 5)).unwrap(), 0, "by itself");
    t.commit().unwrap();
    let mut t = store.begin().unwrap();
    delete(&mut t);
    t.commit().unwrap();
    let mut t = store.begin().unwrap();
    assert_eq!(upsert(&mut t, &table, &rows(0..4, 6)).unwrap(), 0, "before");
    assert_eq!(seen(&t, &table), [(0, 6), (1, 6), (2, 6), (3, 6)]);
    t.commit().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn what_came_after_the_snapshot_is_a_conflict() {
    for flush in [false, true] {
        for case in 0..4 {
            let (_, store, table) = open_with(&rows(0..4, 1));
            let mut old = store.begin().unwrap();
            let mut other = store.begin().unwrap();
            match case {
                0 => other.insert(&table, &batch(&rows(5..6, 2))).map(|_| ()).unwrap(),
                1 => upsert(&mut other, &table, &rows(3..4, 2)).map(|_| ()).unwrap(),
                2 => {
                    let all = scan(&other.view(&table)).unwrap();
                    other
                        .delete(&table, &all.into_iter().map(|(_, at)| at).collect::<Vec<_>>())
                        .map(|_| ())
                        .unwrap();
                }
                _ => {
                    let mut load = store.bulk_load(&table, OnDuplicate::Replace);
                    load.append(&batch(&rows(3..6, 2))).unwrap();
                    load.finish().unwrap();
                }
            }
            other.commit().unwrap();
            if flush {
                store.flush(&table).unwrap();
            }
            let savepoint = old.savepoint();
            let error = upsert(&mut old, &table, &rows(3..6, 9)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{case}: {error}");
            old.rollback_to(savepoint);
            // Its locks are gone: a transaction that begins now succeeds.
            let mut new = store.begin().unwrap();
            upsert(&mut new, &table, &rows(3..6, 9)).unwrap();
            new.commit().unwrap();
            drop(old);
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn locks_are_given_back() {
    let (_, store, table) = open_with(&rows(0..4, 1));
    store.flush(&table).unwrap();
    let before = nodes(&store, &table);
    let mut t = store.begin().unwrap();
    t.write_keys(&table, &keys(&table, &rows(2..6, 0)), |_, olds| {
        assert_eq!(
            olds.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        Ok(vec![None; 4])
    })
    .unwrap();
    assert!(!t.has_writes());
    assert_eq!(nodes(&store, &table), before, "no node is left of a lock without a change");
    let failed = t.write_keys(&table, &keys(&table, &rows(2..6, 0)), |_, _| {
        Err(Error::out_of_range("too much"))
    });
    assert_eq!(failed.unwrap_err().message(), "too much");
    let mut other = store.begin().unwrap();
    let blocked = upsert(&mut other, &table, &rows(1..3, 0)).unwrap_err();
    assert_eq!(
        blocked.kind(),
        ErrorKind::LockTimeout,
        "a failed batch keeps its locks until it is taken back"
    );
    assert!(other.take_blocker().is_some());
    other.rollback();
    t.rollback();
    assert_eq!(nodes(&store, &table), before);
    let mut other = store.begin().unwrap();
    assert_eq!(upsert(&mut other, &table, &rows(1..6, 0)).unwrap(), 3);
    other.commit().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn locks_that_are_released_keep_no_transaction_waiting() {
    let (_, store, table) = open_with(&rows(0..4, 1));
    let mut other = store.begin().unwrap();
    let mut met = None;
    let mut t = store.begin().unwrap();
    t.write_keys(&table, &keys(&table, &rows(2..4, 0)), |_, olds| {
        assert_eq!(
            upsert(&mut other, &table, &rows(3..4, 0)).unwrap_err().kind(),
            ErrorKind::LockTimeout
        );
        met = other.take_blocker();
        Ok(vec![None; olds.len()])
    })
    .unwrap();
    let owner = other.owner().clone();
    let mut waiting = owner.wait_for(&met.unwrap()).unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::Pin::new(&mut waiting).poll(&mut context).is_ready());
    assert_eq!(upsert(&mut other, &table, &rows(3..4, 0)).unwrap(), 1);
}
