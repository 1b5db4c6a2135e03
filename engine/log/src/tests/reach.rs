//! The end of the log: a newest chunk that is missing, cut or emptied is corruption, unless its
//! loss is accepted.

use super::*;
use nacre_testing::{Call, Watched};
use std::sync::Mutex;

const REACH: &str = "reach";

fn accept(store: &Arc<dyn LocalStore>) -> Result<(Log, Replayed)> {
    let mut replayed = Replayed::default();
    let Replayed { snapshot, records } = &mut replayed;
    let log = Log::open(
        store.clone(),
        LogOptions { chunk_bytes: 60, database_id: 9, accept_loss: true },
        &mut |payload| {
            *snapshot = Some(payload.to_vec());
            Ok(())
        },
        &mut |lsn, payload| {
            records.push((lsn, payload.to_vec()));
            Ok(())
        },
    )?;
    Ok((log, replayed))
}

/// Accepts a loss, and checks that the log then goes on without another.
#[track_caller]
fn go_on(store: &Arc<dyn LocalStore>, expected: &[(Lsn, Vec<u8>)]) {
    let (log, replayed) = accept(store).unwrap();
    assert_eq!(log.losses().len(), 1, "{:?}", log.losses());
    assert_eq!(log.losses()[0].kind(), ErrorKind::Corrupt);
    assert_eq!(replayed.records, expected);
    let end = commit(&log, b"next");
    log.close().unwrap();
    drop(log);
    let (_, replayed) = open_with(store, 60, 9).unwrap();
    assert_eq!(replayed.records.last(), Some(&(end, b"next".to_vec())));
    assert_eq!(replayed.records.len(), expected.len() + 1);
    let (log, _) = accept(store).unwrap();
    assert!(log.losses().is_empty());
}

/// Records with their positions.
type Records = Vec<(Lsn, Vec<u8>)>;

/// A log of several chunks, not closed, and its records.
fn chunked() -> (Arc<dyn LocalStore>, Records) {
    let store = memory();
    let (log, _) = open_with(&store, 60, 1).unwrap();
    let records = (0..7u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
    (store, records)
}

#[test]
fn a_newest_chunk_that_is_missing_is_corruption() {
    let (store, records) = chunked();
    let chunks = files(store.as_ref(), "log-");
    for left in (1..chunks.len()).rev() {
        store.remove(&chunks[left]).unwrap();
        let damaged = copy(store.as_ref());
        let newest = chunks.last().unwrap();
        expect_error(open(&damaged), ErrorKind::Corrupt, &[newest, "is missing", "reached"]);
        // Two records in a chunk.
        go_on(&damaged, &records[..left * 2]);
    }
    store.remove(&chunks[0]).unwrap();
    expect_error(open(&store), ErrorKind::Corrupt, &["is missing", "the whole log"]);
    go_on(&store, &[]);
}

#[test]
fn a_newest_chunk_that_is_empty_is_corruption() {
    let (store, records) = chunked();
    let newest = files(store.as_ref(), "log-").pop().unwrap();
    for bytes in [0, 1, FILE_HEADER_BYTES - 1, FILE_HEADER_BYTES] {
        let damaged = copy(store.as_ref());
        put(damaged.as_ref(), &newest, &vec![0; bytes]);
        expect_error(open(&damaged), ErrorKind::Corrupt, &[&newest, "at byte"]);
        go_on(&damaged, &records[..6]);
    }
}

#[test]
fn a_closed_log_that_was_cut_is_corruption() {
    let (store, records) = chunked();
    open_with(&store, 60, 1).unwrap().0.close().unwrap();
    let newest = files(store.as_ref(), "log-").pop().unwrap();
    let bytes = trimmed(store.as_ref(), &newest);
    for cut in FILE_HEADER_BYTES..bytes.len() {
        let damaged = copy(store.as_ref());
        put(damaged.as_ref(), &newest, &bytes[..cut]);
        expect_error(open(&damaged), ErrorKind::Corrupt, &[&newest, "reached position"]);
        let start = FileKind::Chunk.parse(&newest).unwrap();
        let end = start + (cut - FILE_HEADER_BYTES) as u64;
        let whole = records.iter().filter(|(lsn, _)| *lsn <= end).count();
        go_on(&damaged, &records[..whole]);
    }
}

#[test]
fn a_missing_chunk_after_a_snapshot_leaves_the_snapshot() {
    for closed in [false, true] {
        let (store, _) = chunked();
        let (log, _) = open_with(&store, 60, 1).unwrap();
        log.write_snapshot(log.position(), b"seven").unwrap();
        commit(&log, b"eight");
        if closed {
            log.close().unwrap();
        }
        drop(log);
        for name in files(store.as_ref(), "log-") {
            store.remove(&name).unwrap();
        }
        expect_error(open(&store), ErrorKind::Corrupt, &["is missing", "reached position"]);
        let (log, replayed) = accept(&store).unwrap();
        assert_eq!(replayed, Replayed { snapshot: Some(b"seven".to_vec()), records: Vec::new() });
        assert_eq!(log.losses().len(), 1);
        let end = commit(&log, b"next");
        drop(log);
        let (_, replayed) = open(&store).unwrap();
        assert_eq!(replayed.records, [(end, b"next".to_vec())]);
    }
}

/// The newest chunk has records before the snapshot and after it.
#[test]
fn a_log_that_ends_before_its_snapshot_leaves_the_snapshot() {
    let (store, _) = chunked();
    let (log, _) = open_with(&store, 60, 1).unwrap();
    let at = log.position();
    log.write_snapshot(at, b"seven").unwrap();
    commit(&log, b"eight");
    drop(log);
    let newest = files(store.as_ref(), "log-").pop().unwrap();
    let start = FileKind::Chunk.parse(&newest).unwrap();
    assert!(start < at, "the snapshot stands for records of the chunk");
    let bytes = bytes_of(store.as_ref(), &newest);
    let before = FILE_HEADER_BYTES + (at - start) as usize;
    // `None` is a chunk that was deleted.
    for cut in (0..before).map(Some).chain([None]) {
        for has_reach in [true, false] {
            let damaged = copy(store.as_ref());
            damaged.remove(&newest).unwrap();
            cut.iter().for_each(|cut| put(damaged.as_ref(), &newest, &bytes[..*cut]));
            if !has_reach {
                damaged.remove(REACH).unwrap();
            }
            expect_error(open(&damaged), ErrorKind::Corrupt, &[]);
            let (log, replayed) = accept(&damaged).unwrap();
            let seven = Replayed { snapshot: Some(b"seven".to_vec()), records: Vec::new() };
            assert_eq!(replayed, seven, "cut at {cut:?}");
            assert_eq!((log.position(), log.losses().len()), (at, 1), "cut at {cut:?}");
            assert_eq!(files(damaged.as_ref(), "log-"), [FileKind::Chunk.name(at)]);
            let end = commit(&log, b"next");
            log.close().unwrap();
            drop(log);
            let (log, replayed) = accept(&damaged).unwrap();
            assert_eq!(replayed.records, [(end, b"next".to_vec())], "cut at {cut:?}");
            assert!(log.losses().is_empty());
        }
    }
}

#[test]
fn a_log_without_its_reach_opens() {
    let (store, records) = chunked();
    open_with(&store, 60, 1).unwrap().0.close().unwrap();
    let bytes = bytes_of(store.as_ref(), REACH);
    for left in [0, 10, FILE_HEADER_BYTES, bytes.len() - 1] {
        put(store.as_ref(), REACH, &bytes[..left]);
        assert_eq!(open(&store).unwrap().1.records, records);
    }
    store.remove(REACH).unwrap();
    assert_eq!(open(&store).unwrap().1.records, records);
    assert!(!bytes_of(store.as_ref(), REACH).is_empty(), "it is written again");
}

#[test]
fn a_reach_that_cannot_be_written_fails_nothing() {
    use nacre_testing::FaultStore;
    let faults = FaultStore::default();
    let store: Arc<dyn LocalStore> = Arc::new(faults.clone());
    let (log, _) = open(&store).unwrap();
    commit(&log, b"one");
    drop(log);
    store.remove(REACH).unwrap();
    faults.fail_next("create");
    let (log, replayed) = open(&store).unwrap();
    assert_eq!(replayed.payloads(), [b"one"]);
    assert!(files(store.as_ref(), REACH).is_empty(), "the store refused to create it");
    log.close().unwrap();
    assert_eq!(files(store.as_ref(), REACH), [REACH]);
}

#[test]
fn damage_at_the_end_is_given_up_on_request_only() {
    let store = memory();
    let (log, _) = open_with(&store, 1 << 20, 1).unwrap();
    let records: Vec<_> = (0..4u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
    drop(log);
    let name = files(store.as_ref(), "log-").pop().unwrap();
    let mut bytes = bytes_of(store.as_ref(), &name);
    bytes[FILE_HEADER_BYTES + records[1].0 as usize + 30] ^= 1;
    put(store.as_ref(), &name, &bytes);
    expect_error(open(&store), ErrorKind::Corrupt, &[&name, "at byte"]);
    go_on(&store, &records[..2]);
}

#[test]
fn damage_before_the_last_chunk_stays_corrupt() {
    let (store, _) = chunked();
    let chunks = files(store.as_ref(), "log-");
    let mut bytes = bytes_of(store.as_ref(), &chunks[1]);
    bytes[FILE_HEADER_BYTES + 30] ^= 1;
    put(store.as_ref(), &chunks[1], &bytes);
    expect_error(accept(&store), ErrorKind::Corrupt, &[&chunks[1]]);
}

/// Both slots promise the end of a closed log; one of them was written after a chunk began there.
#[test]
fn of_two_promises_of_one_position_the_later_chunk_counts() {
    const SLOT: usize = 4096;
    let (store, records) = chunked();
    let (log, _) = open_with(&store, 60, 1).unwrap();
    log.close().unwrap();
    let next = FileKind::Chunk.name(log.position());
    drop(log);
    put(store.as_ref(), &next, b"");
    assert_eq!(open_with(&store, 60, 1).unwrap().1.records, records);
    let promises = bytes_of(store.as_ref(), REACH);
    let mut swapped = promises.clone();
    swapped[..FILE_HEADER_BYTES].copy_from_slice(&promises[SLOT..SLOT + FILE_HEADER_BYTES]);
    swapped[SLOT..SLOT + FILE_HEADER_BYTES].copy_from_slice(&promises[..FILE_HEADER_BYTES]);
    let position = |slot: &[u8]| u64::from_le_bytes(slot[24..32].try_into().unwrap());
    assert_eq!(position(&promises), position(&promises[SLOT..]), "they promise one position");
    for promises in [promises, swapped] {
        let damaged = copy(store.as_ref());
        put(damaged.as_ref(), REACH, &promises);
        assert_eq!(open(&damaged).unwrap().1.records, records);
        damaged.remove(&next).unwrap();
        expect_error(open(&damaged), ErrorKind::Corrupt, &[&next, "is missing"]);
    }
}

/// Opening a log that was closed by one that has committed nothing writes and syncs nothing.
#[test]
fn a_log_that_was_closed_is_opened_as_it_is() {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let end = commit(&log, b"kept");
    log.close().unwrap();
    drop(log);
    // The first to open it gives back the space that was reserved.
    let (log, _) = open(&store).unwrap();
    log.close().unwrap();
    drop(log);
    let changes = Arc::new(Mutex::new(Vec::new()));
    let seen = changes.clone();
    let watched: Arc<dyn LocalStore> = Watched::new(store.clone(), move |name, call| {
        if !matches!(call, Call::Read { .. }) {
            seen.lock().unwrap().push((name.to_string(), call));
        }
        Ok(())
    });
    let (log, replayed) = open(&watched).unwrap();
    assert_eq!(*changes.lock().unwrap(), Vec::new());
    assert_eq!(replayed.records, [(end, b"kept".to_vec())]);
    // A log that was not closed is mended as ever, whatever the reach says.
    commit(&log, b"next");
    drop(log);
    changes.lock().unwrap().clear();
    let (log, replayed) = open(&watched).unwrap();
    assert_eq!(replayed.payloads(), [b"kept", b"next"]);
    assert!(changes.lock().unwrap().iter().any(|(_, call)| *call == Call::Sync));
    log.close().unwrap();
}
