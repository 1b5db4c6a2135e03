//! Readers of a log that is being written: what they return, when they end, what is held for them.

use super::*;
use crate::LogReader;
use nacre_testing::Random;
use nacre_types::Reason;

const CHUNK_BYTES: u64 = 60;

fn chunked() -> (Arc<dyn LocalStore>, Arc<Log>) {
    let store = memory();
    let (log, _) = open_with(&store, CHUNK_BYTES, 1).unwrap();
    (store, Arc::new(log))
}

/// Everything that a reader returns until it ends.
fn rest(reader: &mut LogReader) -> Vec<(Lsn, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some((lsn, payload)) = reader.next().unwrap() {
        records.push((lsn, payload.to_vec()));
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    records
}

/// Opens the log beside its writer, with the payload of its snapshot.
fn beside(store: &Arc<dyn LocalStore>) -> Result<(LogReader, Option<Vec<u8>>)> {
    let mut snapshot = None;
    let reader = LogReader::beside(store.clone(), &mut |payload| {
        assert!(snapshot.is_none(), "one snapshot");
        snapshot = Some(payload.to_vec());
        Ok(())
    })?;
    Ok((reader, snapshot))
}

#[track_caller]
fn expect_gone(result: Result<Option<(Lsn, &[u8])>>) {
    let error = result.map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::NotFound, Some(Reason::LogGone)));
}

#[test]
fn a_reader_returns_what_is_durable_and_goes_on_later() {
    let (_, log) = chunked();
    let mut reader = LogReader::of(&log, 0);
    assert!(reader.next().unwrap().is_none());
    let mut expected = Vec::new();
    for i in 0..40u8 {
        let payload = vec![i; usize::from(i) * 7];
        expected.push((log.append(&payload).unwrap(), payload));
        assert!(reader.next().unwrap().is_none(), "record {i} is not durable");
        log.sync(log.position()).unwrap();
        assert_eq!(rest(&mut reader), expected[usize::from(i)..]);
    }
    assert_eq!(reader.position(), log.position());
    assert_eq!(rest(&mut LogReader::of(&log, 0)), expected);
    let (lsn, _) = expected[17];
    assert_eq!(rest(&mut LogReader::of(&log, lsn)), expected[18..]);
    // A mark is not a record.
    log.close().unwrap();
    assert!(reader.next().unwrap().is_none());
    let end = commit(&log, b"after the mark");
    assert_eq!(rest(&mut reader), [(end, b"after the mark".to_vec())]);
}

#[test]
fn a_position_that_was_removed_is_gone() {
    let (_, log) = chunked();
    let early: Vec<Lsn> = (0..9u8).map(|i| commit(&log, &[i; 25])).collect();
    log.write_snapshot(early[8], b"snapshot").unwrap();
    expect_gone(LogReader::of(&log, 0).next());
    expect_gone(LogReader::of(&log, log.position() + 1).next());
    let error = log.hold("late", early[0], u64::MAX).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::LogGone));
    let end = commit(&log, b"next");
    assert_eq!(rest(&mut LogReader::of(&log, early[8])), [(end, b"next".to_vec())]);
}

#[test]
fn a_follower_holds_what_it_has_not_confirmed() {
    let (store, log) = chunked();
    let records: Vec<_> = (0..9u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
    log.hold("replica", records[2].0, u64::MAX).unwrap();
    log.write_snapshot(records[8].0, b"snapshot").unwrap();
    assert_eq!(rest(&mut LogReader::of(&log, records[2].0)), records[3..]);
    expect_gone(LogReader::of(&log, 0).next());
    // Recovery and a reader beside the writer begin with the snapshot all the same.
    assert_eq!(open_with(&copy(&*store), CHUNK_BYTES, 1).unwrap().1.records, []);
    assert_eq!(rest(&mut beside(&store).unwrap().0), []);
    log.confirm("replica", records[6].0).unwrap();
    assert_eq!(log.followers(), [("replica".to_string(), records[6].0)]);
    let last = commit(&log, b"last");
    log.write_snapshot(last, b"another").unwrap();
    expect_gone(LogReader::of(&log, records[2].0).next());
    assert_eq!(rest(&mut LogReader::of(&log, records[6].0)).len(), 3);
    log.release("replica");
    expect_gone(LogReader::of(&log, records[6].0).next());
    assert_eq!(log.confirm("replica", last).unwrap_err().reason(), Some(Reason::LogGone));
    assert_eq!(files(&*store, "log-").len(), 1);
}

#[test]
fn a_follower_that_needs_too_much_is_given_up() {
    let (_, log) = chunked();
    let start = commit(&log, b"start");
    log.hold("slow", start, 200).unwrap();
    log.hold("patient", start, 10_000).unwrap();
    let at = commit(&log, &[1; 150]);
    log.write_snapshot(at, b"one").unwrap();
    assert_eq!(log.followers().len(), 2, "{} bytes are held", at - start);
    let at = commit(&log, &[2; 150]);
    log.write_snapshot(at, b"two").unwrap();
    assert_eq!(log.followers(), [("patient".to_string(), start)]);
    assert_eq!(log.confirm("slow", at).unwrap_err().reason(), Some(Reason::LogGone));
    assert_eq!(rest(&mut LogReader::of(&log, start)).len(), 2);
}

#[test]
fn a_reader_beside_the_writer_needs_a_log() {
    let store = memory();
    let error = beside(&store).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(store.list().unwrap(), [""; 0], "a reader creates nothing");
}

#[test]
fn a_reader_beside_the_writer_needs_a_header() {
    for bytes in [0, 1, FILE_HEADER_BYTES] {
        let store = memory();
        put(&*store, &FileKind::Chunk.name(0), &vec![0; bytes]);
        let error = beside(&store).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let (log, _) = open_with(&store, CHUNK_BYTES, 7).unwrap();
        assert_eq!(log.database_id(), 7);
        let (reader, _) = beside(&store).unwrap();
        assert_eq!(reader.database_id(), 7);
    }
}

#[test]
fn a_reader_notices_another_database_in_the_place_of_its_own() {
    let (store, log) = chunked();
    let (reader, _) = beside(&store).unwrap();
    drop(log);
    for name in store.list().unwrap() {
        store.remove(&name).unwrap();
    }
    let (log, _) = open_with(&store, CHUNK_BYTES, 2).unwrap();
    let at = commit(&log, &[1; 100]);
    commit(&log, &[2; 100]);
    log.write_snapshot(at, b"of another").unwrap();
    let error = reader.again(&mut |_| Ok(())).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("another database"), "{error}");
}

#[test]
fn a_reader_beside_the_writer_keeps_what_it_has_open() {
    let (store, log) = chunked();
    let records: Vec<_> = (0..9u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
    let (mut slow, _) = beside(&store).unwrap();
    let (lsn, payload) = slow.next().unwrap().unwrap();
    assert_eq!((lsn, payload), (records[0].0, &[0; 25][..]));
    log.write_snapshot(records[8].0, b"snapshot").unwrap();
    // Its chunk has one more record; the next chunk is gone.
    assert_eq!(slow.next().unwrap().unwrap().0, records[1].0);
    expect_gone(slow.next());
    let (mut again, snapshot) = beside(&store).unwrap();
    assert_eq!(snapshot, Some(b"snapshot".to_vec()));
    assert_eq!(rest(&mut again), []);
    let end = commit(&log, b"next");
    assert_eq!(rest(&mut again), [(end, b"next".to_vec())]);
}

#[test]
fn damage_is_an_error_and_not_the_end() {
    let (store, log) = chunked();
    for i in 0..9u8 {
        commit(&log, &[i; 25]);
    }
    let chunks = files(&*store, "log-");
    let read = |damaged: &Arc<dyn LocalStore>| {
        let (mut reader, _) = beside(damaged).unwrap();
        let mut records = 0;
        loop {
            match reader.next() {
                Ok(Some(_)) => records += 1,
                Ok(None) => return (records, None),
                Err(error) => return (records, Some(error.kind())),
            }
        }
    };
    let damage = |name: &str, at: usize| {
        let damaged = copy(&*store);
        let mut bytes = bytes_of(&*damaged, name);
        bytes[FILE_HEADER_BYTES + at] ^= 1;
        put(&*damaged, name, &bytes);
        damaged
    };
    // The log reached beyond the first record of each chunk.
    for (place, name) in chunks.iter().enumerate() {
        assert_eq!(read(&damage(name, 30)), (place * 2, Some(ErrorKind::Corrupt)), "{name}");
    }
    // This may be a record that is being written.
    commit(&log, &[9; 25]);
    assert_eq!(read(&damage(chunks.last().unwrap(), 49 + 30)), (9, None));
    log.close().unwrap();
    let cut = copy(&*store);
    let chunks = files(&*store, "log-");
    let last = chunks.last().unwrap();
    put(&*cut, last, &bytes_of(&*cut, last)[..FILE_HEADER_BYTES]);
    let (mut reader, _) = beside(&cut).unwrap();
    let error = loop {
        match reader.next() {
            Ok(record) => assert!(record.is_some(), "the log ended although it reached further"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("reached"), "{error}");
}

/// A writer that commits, snapshots and starts again, and readers that come and go.
#[test]
fn readers_see_the_same_log() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let store = memory();
        let open = || Arc::new(open_with(&store, CHUNK_BYTES, 1).unwrap().0);
        let mut log = open();
        let mut expected: Vec<(Lsn, Vec<u8>)> = Vec::new();
        // Each with the number of records it has seen.
        let mut inside = (LogReader::of(&log, 0), 0);
        let mut outside = (beside(&store).unwrap().0, 0);
        log.hold("inside", 0, u64::MAX).unwrap();
        for _ in 0..80 {
            match random.below(10) {
                0..=4 => {
                    let payload = vec![random.below(256) as u8; random.below(90) as usize];
                    expected.push((log.append(&payload).unwrap(), payload));
                    if random.below(2) == 0 {
                        log.sync(log.position()).unwrap();
                    }
                }
                5 => log.write_snapshot(log.position(), &expected.len().to_le_bytes()).unwrap(),
                6 => {
                    log.sync(log.position()).unwrap();
                    drop(inside);
                    drop(log);
                    log = open();
                    inside = (LogReader::of(&log, log.position()), expected.len());
                    log.hold("inside", log.position(), u64::MAX).unwrap();
                }
                7 | 8 => {
                    while let Some((lsn, payload)) = inside.0.next().unwrap() {
                        assert_eq!((lsn, payload.to_vec()), expected[inside.1], "seed {seed}");
                        inside.1 += 1;
                    }
                    assert_eq!(inside.0.position(), log.durable());
                    log.confirm("inside", inside.0.position()).unwrap();
                }
                _ => loop {
                    match outside.0.next() {
                        Ok(Some((lsn, payload))) => {
                            assert_eq!((lsn, payload), {
                                let (lsn, payload) = &expected[outside.1];
                                (*lsn, &payload[..])
                            });
                            outside.1 += 1;
                        }
                        Ok(None) => {
                            assert!(outside.0.position() >= log.durable(), "seed {seed}");
                            break;
                        }
                        Err(error) => {
                            assert_eq!(
                                error.reason(),
                                Some(Reason::LogGone),
                                "seed {seed}: {error}"
                            );
                            let (reader, snapshot) = beside(&store).unwrap();
                            let count = snapshot
                                .map_or(0, |bytes| usize::from_le_bytes(bytes.try_into().unwrap()));
                            outside = (reader, count);
                        }
                    }
                },
            }
        }
    }
}
