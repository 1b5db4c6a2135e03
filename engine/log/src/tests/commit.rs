//! Group commit by many threads, and the effects of a failed write or sync.

use super::*;
use nacre_testing::FaultStore;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

fn fault_store() -> (FaultStore, Arc<dyn LocalStore>) {
    let faults = FaultStore::default();
    (faults.clone(), Arc::new(faults))
}

#[test]
fn many_threads_share_syncs_and_lose_nothing() {
    let (faults, store) = fault_store();
    faults.set_sync_time(Duration::from_micros(300));
    let (log, _) = open_with(&store, 5_000, 1).unwrap();
    const THREADS: u64 = 12;
    const COMMITS: u64 = 60;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for number in 0..COMMITS {
                    let lsn =
                        log.append(&[thread.to_le_bytes(), number.to_le_bytes()].concat()).unwrap();
                    log.sync(lsn).unwrap();
                    assert!(log.durable() >= lsn);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..10 {
                let at = log.position();
                log.write_snapshot(at, &at.to_le_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    let syncs = faults.syncs();
    assert!(
        syncs < (THREADS * COMMITS) as usize,
        "{syncs} syncs for {} commits",
        THREADS * COMMITS
    );
    let last = log.position();
    drop(log);

    let (log, replayed) = open_with(&store, 5_000, 1).unwrap();
    assert_eq!(log.position(), last);
    let at = Lsn::from_le_bytes(replayed.snapshot.unwrap().try_into().unwrap());
    // All records have the same length, so the snapshot's position tells how many it represents.
    assert_eq!(at / 40 + replayed.records.len() as u64, THREADS * COMMITS);
    let mut next = [None; THREADS as usize];
    for (_, payload) in &replayed.records {
        let number = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
        let expected = &mut next[number(0) as usize];
        assert!(
            expected.is_none_or(|expected| expected == number(8)),
            "records of a thread are in order"
        );
        *expected = Some(number(8) + 1);
    }
    assert!(next.iter().all(|next| next.is_none_or(|next| next == COMMITS)));
}

/// Blocks until `count` callers are waiting.
fn until_waiting(log: &Log, count: usize) {
    while log.turns.waiting() < count {
        std::thread::yield_now();
    }
}

#[test]
fn one_sync_serves_everybody_who_came_during_the_one_before() {
    let (faults, store) = fault_store();
    let (log, _) = open(&store).unwrap();
    let before = faults.syncs();
    let nothing = || 0;
    let lead = log.turns.wait(1, &nothing);
    assert!(lead.is_some(), "a new log has no leader");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = &log;
            scope.spawn(move || commit(log, &[thread; 10]));
        }
        until_waiting(&log, 8);
        drop(lead);
    });
    assert_eq!(faults.syncs() - before, 1);
    assert_eq!(log.durable(), log.position());
}

#[test]
fn a_leader_passes_its_turn_to_one_it_does_not_serve() {
    let (_, store) = fault_store();
    let (log, _) = open(&store).unwrap();
    let durable = AtomicUsize::new(0);
    let how_far = || durable.load(Ordering::Acquire) as Lsn;
    let mut lead = log.turns.wait(1, &how_far).unwrap();
    let led = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let come = |lsn: usize| {
            let (turns, how_far, led, durable) = (&log.turns, &how_far, &led, &durable);
            scope.spawn(move || {
                if let Some(mut lead) = turns.wait(lsn as Lsn, how_far) {
                    lead.taken();
                    led.fetch_add(lsn, Ordering::Relaxed);
                    durable.fetch_max(lsn, Ordering::AcqRel);
                }
            });
        };
        come(10);
        come(20);
        until_waiting(&log, 2);
        lead.taken();
        come(30);
        come(40);
        until_waiting(&log, 2);
        durable.store(20, Ordering::Release);
        drop(lead);
    });
    let led = led.load(Ordering::Relaxed);
    assert!(led == 40 || led == 70, "40, perhaps after 30, leads; 10 and 20 are served: {led}");
    assert!(log.turns.wait(41, &how_far).is_some(), "the lead is free again");
}

/// All commits wait for an append, even if it is long enough to be written at once.
#[test]
fn an_append_waits_for_no_sync() {
    let (_, store) = fault_store();
    let (log, _) = open(&store).unwrap();
    let syncing = log.writer().unwrap();
    let long = vec![7; 10 * FILE_HEADER_BYTES];
    std::thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        let (log, long) = (&log, &long);
        scope.spawn(move || sender.send(log.append(long)).unwrap());
        let appended = ended.recv_timeout(Duration::from_secs(20));
        drop(syncing);
        assert!(appended.is_ok_and(|lsn| lsn.is_ok()), "an append waited for a sync");
    });
    commit(&log, b"the next sync writes both");
    drop(log);
    let (_, replayed) = open(&store).unwrap();
    assert_eq!(replayed.payloads(), [&long[..], b"the next sync writes both"]);
}

#[track_caller]
fn expect_poisoned(log: &Log, durable: Lsn) {
    for _ in 0..2 {
        assert_eq!(log.append(b"late").unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(log.sync(log.position()).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(log.write_snapshot(log.position(), b"late").unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!(log.durable(), durable);
    log.sync(durable).unwrap();
}

#[test]
fn a_failed_sync_poisons_the_log() {
    for what in ["sync", "write"] {
        let (faults, store) = fault_store();
        let (log, _) = open(&store).unwrap();
        let durable = commit(&log, b"kept");
        let lsn = log.append(b"in doubt").unwrap();
        faults.fail_next(what);
        let error = log.sync(lsn).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("log-0000000000000000"), "{error}");
        expect_poisoned(&log, durable);
        drop(log);
        let (log, replayed) = open(&store).unwrap();
        assert_eq!(replayed.payloads()[0], b"kept");
        commit(&log, b"goes on after reopening");
    }
}

#[test]
fn a_chunk_that_cannot_be_started_poisons_the_log() {
    for what in ["create", "write", "sync"] {
        let (faults, store) = fault_store();
        let (log, _) = open_with(&store, 10, 1).unwrap();
        let durable = commit(&log, b"a record that fills the chunk");
        let lsn = log.append(b"for the next chunk").unwrap();
        faults.fail_next(what);
        assert_eq!(log.sync(lsn).unwrap_err().kind(), ErrorKind::Io);
        expect_poisoned(&log, durable);
        drop(log);
        let (log, replayed) = open_with(&store, 10, 1).unwrap();
        assert_eq!(replayed.records.len(), 1);
        commit(&log, b"goes on after reopening");
        drop(log);
        assert_eq!(open_with(&store, 10, 1).unwrap().1.records.len(), 2);
    }
}

#[test]
fn a_failed_background_write_poisons_the_log() {
    let (faults, store) = fault_store();
    let (log, _) = open(&store).unwrap();
    faults.fail_next("write");
    assert_eq!(log.append(&vec![1; 2 << 20]).unwrap_err().kind(), ErrorKind::Io);
    expect_poisoned(&log, 0);
}

#[test]
fn threads_that_wait_for_a_failed_sync_all_fail() {
    let (faults, store) = fault_store();
    let (log, _) = open(&store).unwrap();
    let durable = commit(&log, b"kept");
    faults.set_sync_time(Duration::from_millis(5));
    faults.fail_next("sync");
    let failures = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let result = log.append(b"in doubt").and_then(|lsn| log.sync(lsn));
                assert_eq!(result.unwrap_err().kind(), ErrorKind::Io);
                failures.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(failures.load(Ordering::Relaxed), 8);
    expect_poisoned(&log, durable);
}

#[test]
fn a_failed_snapshot_leaves_log_and_older_snapshot() {
    for what in ["create", "write", "sync"] {
        let (faults, store) = fault_store();
        let (log, _) = open_with(&store, 100, 1).unwrap();
        let first = commit(&log, b"one");
        log.write_snapshot(first, b"first").unwrap();
        (0..10).for_each(|i| _ = commit(&log, &[i; 40]));
        faults.fail_next(what);
        let error = log.write_snapshot(log.position(), b"second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("snap-"), "{error}");
        assert_eq!(files(store.as_ref(), "snap-").len(), 1, "the failed file is gone");
        commit(&log, b"the log goes on");
        let (_, replayed) = open_with(&copy(store.as_ref()), 100, 1).unwrap();
        assert_eq!(
            (replayed.snapshot.as_deref(), replayed.records.len()),
            (Some(b"first".as_slice()), 11)
        );
        log.write_snapshot(log.position(), b"third").unwrap();
        drop(log);
        let (_, replayed) = open_with(&store, 100, 1).unwrap();
        assert_eq!(
            (replayed.snapshot.as_deref(), replayed.records.len()),
            (Some(b"third".as_slice()), 0)
        );
    }
}

#[test]
fn what_could_not_be_removed_is_removed_next_time() {
    let (faults, store) = fault_store();
    let (log, _) = open_with(&store, 100, 1).unwrap();
    (0..10).for_each(|i| _ = commit(&log, &[i; 40]));
    faults.fail_next("remove");
    log.write_snapshot(log.position(), b"first").unwrap();
    assert_eq!(files(store.as_ref(), "log-").len(), 2, "one could not be removed");
    commit(&log, b"more");
    log.write_snapshot(log.position(), b"second").unwrap();
    assert_eq!(files(store.as_ref(), "log-").len(), 1);
    assert_eq!(files(store.as_ref(), "snap-").len(), 1);
}
