//! Without faults: positions, rotation, snapshots, limits, reopening.

use super::*;
use crate::MAX_RECORD_BYTES;
use nacre_testing::{Call, Watched};
use nacre_types::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn an_empty_log_opens_empty_again_and_again() {
    let store = memory();
    for time in 0..3 {
        let (log, replayed) = open(&store).unwrap();
        assert_eq!(replayed, Replayed::default());
        assert_eq!((log.position(), log.durable(), log.bytes_since_snapshot()), (0, 0, 0));
        assert_eq!(log.is_new(), time == 0);
        log.sync(0).unwrap();
        log.close().unwrap();
    }
    assert_eq!(store.list().unwrap(), ["log-0000000000000000", "reach"]);
    assert_eq!(bytes_of(store.as_ref(), "log-0000000000000000").len(), 64);
}

#[test]
fn records_come_back_in_order_with_their_positions() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let payloads: Vec<Vec<u8>> = (0..100usize).map(|i| vec![i as u8; i * i % 301]).collect();
    let mut expected = Vec::new();
    for payload in &payloads {
        expected.push((log.append(payload).unwrap(), payload.clone()));
    }
    assert_eq!(log.durable(), 0, "nothing is durable before a sync");
    log.sync(log.position()).unwrap();
    assert_eq!(log.durable(), log.position());
    assert!(expected.windows(2).all(|pair| pair[0].0 < pair[1].0));
    drop(log);
    let (log, replayed) = open(&store).unwrap();
    assert_eq!(replayed.records, expected);
    assert_eq!(log.position(), expected.last().unwrap().0);
    assert_eq!(log.bytes_since_snapshot(), log.position());
}

#[test]
fn appends_that_were_not_synced_may_be_lost_and_only_those() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    commit(&log, b"kept");
    log.append(b"buffered").unwrap();
    drop(log);
    assert_eq!(open(&store).unwrap().1.payloads(), [b"kept"]);
}

#[test]
fn a_large_buffer_is_written_without_a_sync() {
    let store = memory();
    let (log, _) = open_with(&store, 1 << 30, 1).unwrap();
    let payload = vec![7; 300 << 10];
    for _ in 0..10 {
        log.append(&payload).unwrap();
    }
    let written = bytes_of(store.as_ref(), "log-0000000000000000").len();
    assert!(written > 1 << 20, "only {written} bytes left memory");
    assert_eq!(log.durable(), 0);
}

#[test]
fn chunks_rotate_and_join_again() {
    let store = memory();
    let mut expected = Vec::new();
    for _ in 0..5 {
        let (log, replayed) = open_with(&store, 100, 1).unwrap();
        assert_eq!(replayed.records, expected);
        for _ in 0..7 {
            let payload = vec![expected.len() as u8; 30];
            expected.push((commit(&log, &payload), payload));
        }
    }
    let chunks = files(store.as_ref(), "log-");
    assert!(chunks.len() > 10, "{chunks:?}");
    assert_eq!(open_with(&store, 1 << 20, 2).unwrap().0.database_id(), 1, "the identity is kept");
}

#[test]
fn a_chunk_goes_on_where_there_can_be_no_further_one() {
    // How many more files can be created: the first chunk, and the reach.
    let left = Arc::new(AtomicUsize::new(2));
    let take = left.clone();
    let store: Arc<dyn LocalStore> = Watched::new(memory(), move |_, call| match call {
        Call::Create => take
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .map(drop)
            .map_err(|_| Error::no_file("no further file")),
        _ => Ok(()),
    });
    let mut expected = Vec::new();
    for room in [0, 2, 0, 3] {
        let (log, replayed) = open_with(&store, 100, 1).unwrap();
        assert_eq!(replayed.records, expected);
        left.store(room, Ordering::Relaxed);
        let before = files(store.as_ref(), "log-").len();
        for _ in 0..30 {
            let payload = vec![expected.len() as u8; 30];
            expected.push((commit(&log, &payload), payload));
        }
        assert_eq!(files(store.as_ref(), "log-").len(), before + room);
        log.close().unwrap();
    }
    let (log, replayed) = open_with(&store, 100, 1).unwrap();
    assert_eq!(replayed.records, expected);
    left.store(1, Ordering::Relaxed);
    log.write_snapshot(log.position(), b"all").unwrap();
    assert_eq!(files(store.as_ref(), "log-").len(), 1);
}

#[test]
fn a_snapshot_replaces_the_log_before_it() {
    let store = memory();
    let (log, _) = open_with(&store, 100, 1).unwrap();
    (0..20u8).for_each(|i| _ = commit(&log, &[i; 30]));
    let at = log.position();
    assert!(files(store.as_ref(), "log-").len() > 5);
    log.write_snapshot(at, b"twenty").unwrap();
    assert_eq!(files(store.as_ref(), "log-").len(), 1, "only the chunk being written is left");
    assert_eq!(log.bytes_since_snapshot(), 0);
    let end = commit(&log, b"after");
    assert_eq!(log.bytes_since_snapshot(), end - at);
    drop(log);

    let (log, replayed) = open_with(&store, 100, 1).unwrap();
    assert_eq!(replayed.snapshot.as_deref(), Some(b"twenty".as_slice()));
    assert_eq!(replayed.records, [(end, b"after".to_vec())]);
    assert_eq!(log.bytes_since_snapshot(), end - at);
    log.write_snapshot(end, b"twenty-one").unwrap();
    assert_eq!(files(store.as_ref(), "snap-").len(), 1);
    drop(log);
    let (_, replayed) = open_with(&store, 100, 1).unwrap();
    assert_eq!(
        (replayed.snapshot.as_deref(), replayed.records.len()),
        (Some(b"twenty-one".as_slice()), 0)
    );
}

#[test]
fn a_snapshot_of_the_past_keeps_the_records_since() {
    let store = memory();
    let (log, _) = open_with(&store, 100, 1).unwrap();
    let ends: Vec<Lsn> = (0..20u8).map(|i| log.append(&[i; 30]).unwrap()).collect();
    log.write_snapshot(ends[9], b"ten").unwrap();
    assert!(log.durable() >= ends[9], "a snapshot is never ahead of the durable log");
    commit(&log, b"last");
    drop(log);
    let (_, replayed) = open_with(&store, 100, 1).unwrap();
    assert_eq!(replayed.snapshot.as_deref(), Some(b"ten".as_slice()));
    assert_eq!(replayed.records.len(), 11);
    assert_eq!(replayed.records[0], (ends[10], vec![10; 30]));
}

#[test]
fn a_snapshot_that_is_not_newer_changes_nothing() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let first = commit(&log, b"one");
    let second = commit(&log, b"two");
    log.write_snapshot(second, b"both").unwrap();
    log.write_snapshot(second, b"again").unwrap();
    log.write_snapshot(first, b"older").unwrap();
    drop(log);
    let (_, replayed) = open(&store).unwrap();
    assert_eq!(
        (replayed.snapshot.as_deref(), replayed.records.len()),
        (Some(b"both".as_slice()), 0)
    );
}

#[test]
fn a_snapshot_can_be_empty_and_at_the_very_start() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    log.write_snapshot(0, b"").unwrap();
    commit(&log, b"x");
    drop(log);
    let (_, replayed) = open(&store).unwrap();
    assert_eq!(
        (replayed.snapshot.as_deref(), replayed.payloads()),
        (Some(b"".as_slice()), vec![b"x".as_slice()])
    );
}

#[test]
fn limits_are_typed() {
    let (log, _) = open(&memory()).unwrap();
    let error = log.append(&vec![0; MAX_RECORD_BYTES + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(log.position(), 0);
    commit(&log, b"and goes on");
    assert_eq!(
        log.sync(1 << 40).unwrap_err().kind(),
        ErrorKind::Io,
        "a position that was never appended"
    );
}

#[test]
fn a_large_record_comes_back() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let payload: Vec<u8> = (0..5_000_000u32).map(|i| (i * 7) as u8).collect();
    commit(&log, b"small");
    commit(&log, &payload);
    commit(&log, b"small");
    drop(log);
    let (_, replayed) = open(&store).unwrap();
    assert!(replayed.payloads() == [b"small".as_slice(), &payload, b"small"]);
}

#[test]
fn closing_leaves_one_mark_however_often() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    commit(&log, b"x");
    log.close().unwrap();
    let end = log.position();
    log.close().unwrap();
    drop(log);
    for _ in 0..3 {
        let (log, replayed) = open(&store).unwrap();
        assert_eq!(replayed.payloads(), [b"x"], "marks are not handed out");
        log.close().unwrap();
        assert_eq!(log.position(), end);
    }
    let (log, _) = open(&store).unwrap();
    commit(&log, b"y");
    assert!(log.position() > end);
}

#[test]
fn an_error_of_the_caller_ends_recovery_and_changes_nothing() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let at = commit(&log, b"one");
    log.write_snapshot(at, b"s").unwrap();
    commit(&log, b"two");
    drop(log);
    let before = copy(store.as_ref());
    let refuse = |_: &[u8]| Err(nacre_types::Error::limit("no"));
    let result =
        Log::open(store.clone(), LogOptions::default(), &mut { refuse }, &mut |_, _| Ok(()));
    assert_eq!(result.map(|_| ()).unwrap_err().kind(), ErrorKind::Limit);
    let result =
        Log::open(store.clone(), LogOptions::default(), &mut |_| Ok(()), &mut |_, payload| {
            refuse(payload)
        });
    assert_eq!(result.map(|_| ()).unwrap_err().kind(), ErrorKind::Limit);
    for name in before.list().unwrap() {
        assert!(bytes_of(before.as_ref(), &name) == bytes_of(store.as_ref(), &name));
    }
}

/// A snapshot that comes piece by piece is the same file as one that is written at once, and counts
/// only when it is published.
#[test]
fn a_snapshot_comes_in_pieces() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let first = commit(&log, b"one");
    log.write_snapshot(first, b"first").unwrap();
    let at = commit(&log, b"two");
    let mut snapshot = log.begin_snapshot(at).unwrap().unwrap();
    for piece in 0..50u8 {
        snapshot.write(&[piece; 7]).unwrap();
        commit(&log, &[piece]);
        let (_, replayed) = open(&copy(store.as_ref())).unwrap();
        assert_eq!(replayed.snapshot.as_deref(), Some(b"first".as_slice()));
        assert_eq!(replayed.records.len(), 2 + usize::from(piece));
    }
    log.publish_snapshot(snapshot).unwrap();
    let whole: Vec<u8> = (0..50u8).flat_map(|piece| [piece; 7]).collect();
    let (_, replayed) = open(&copy(store.as_ref())).unwrap();
    assert_eq!(replayed.snapshot, Some(whole.clone()));
    assert_eq!(replayed.records.len(), 50);
    let again = memory();
    let (other, _) = open(&again).unwrap();
    commit(&other, b"one");
    other.write_snapshot(commit(&other, b"two"), &whole).unwrap();
    let name = FileKind::Snapshot.name(at);
    assert_eq!(bytes_of(store.as_ref(), &name), bytes_of(again.as_ref(), &name));
    assert!(log.begin_snapshot(at).unwrap().is_none(), "there is one");
    let abandoned = log.begin_snapshot(log.position()).unwrap().unwrap();
    log.abandon_snapshot(abandoned);
    assert_eq!(files(store.as_ref(), "snap-"), [name]);
}
