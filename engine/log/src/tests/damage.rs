//! Damaged bytes: each truncation, each flipped bit, missing and foreign files. The outcome is the
//! exact records, an exact prefix if the damage may be a torn tail, or an error that names the
//! place; never a panic, never a wrong record.

use super::*;
use crate::format::{FileHeader, RECORD_HEADER_BYTES, RecordHeader, header_checksum};
use nacre_types::checksum::checksum;

const FIRST: &str = "log-0000000000000000";

type Records = Vec<(Lsn, Vec<u8>)>;

/// Records in one chunk, each with its own sync.
fn small_log(records: usize) -> (Arc<dyn LocalStore>, Records) {
    let store = memory();
    let (log, _) = open(&store).unwrap();
    let expected = (0..records).map(|i| {
        let payload = format!("record {i} {}", "x".repeat(i * 3)).into_bytes();
        (commit(&log, &payload), payload)
    });
    let expected = expected.collect();
    drop(log);
    trimmed(store.as_ref(), FIRST);
    (store, expected)
}

#[test]
fn truncation_at_every_byte_leaves_the_whole_records_before_it() {
    let (store, expected) = small_log(6);
    let bytes = bytes_of(store.as_ref(), FIRST);
    for cut in 0..=bytes.len() {
        let store = memory();
        put(store.as_ref(), FIRST, &bytes[..cut]);
        let whole =
            expected.iter().filter(|(end, _)| FILE_HEADER_BYTES as u64 + end <= cut as u64).count();
        let (log, replayed) = open(&store).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
        assert_eq!(replayed.records, expected[..whole], "cut at {cut}");
        // New records must not be mistaken for the ones cut off.
        let end = commit(&log, b"next");
        drop(log);
        let (_, replayed) = open(&store).unwrap();
        assert_eq!(replayed.records[..whole], expected[..whole]);
        assert_eq!(replayed.records[whole..], [(end, b"next".to_vec())]);
    }
}

#[test]
fn truncation_below_a_snapshot_or_of_a_sealed_chunk_is_corruption() {
    let (store, expected) = small_log(6);
    let (log, _) = open(&store).unwrap();
    log.write_snapshot(log.position(), b"six").unwrap();
    drop(log);
    let bytes = bytes_of(store.as_ref(), FIRST);
    let ends_early = ["ends early", &format!("byte {}", bytes.len())];
    for cut in FILE_HEADER_BYTES..bytes.len() {
        put(store.as_ref(), FIRST, &bytes[..cut]);
        expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, ends_early[0], ends_early[1]]);
    }
    for lost in [vec![], vec![0; bytes.len()]] {
        put(store.as_ref(), FIRST, &lost);
        expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, ends_early[0], ends_early[1]]);
    }
    // The same chunk, sealed.
    let store = memory();
    put(store.as_ref(), FIRST, &bytes);
    let (log, replayed) = open_with(&store, 1, 5).unwrap();
    assert_eq!(replayed.records, expected);
    commit(&log, b"in the next chunk");
    drop(log);
    for cut in 0..bytes.len() {
        put(store.as_ref(), FIRST, &bytes[..cut]);
        expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, "at byte"]);
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(&[0; 100]);
    put(store.as_ref(), FIRST, &longer);
    assert_eq!(open(&store).unwrap().1.records.len(), 7, "zeroes after a sealed chunk are no harm");
    longer.push(1);
    put(store.as_ref(), FIRST, &longer);
    expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, "unexpected bytes"]);
}

/// Flips each bit of each file in turn; `allowed` returns how many records may be missing for
/// damage at an offset.
fn flip_every_bit(
    store: &Arc<dyn LocalStore>,
    chunk_bytes: u64,
    expected: &[(Lsn, Vec<u8>)],
    allowed: impl Fn(&str, usize) -> usize,
) {
    for name in store.list().unwrap() {
        let bytes = bytes_of(store.as_ref(), &name);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let copy = copy(store.as_ref());
                put(copy.as_ref(), &name, &damaged);
                let case = format!("{name}, byte {at}, bit {bit}");
                match open_with(&copy, chunk_bytes, 0xda7a) {
                    Ok((_, replayed)) => {
                        let missing = expected.len() - replayed.records.len();
                        assert_eq!(replayed.records, expected[..replayed.records.len()], "{case}");
                        assert!(
                            missing <= allowed(&name, at),
                            "{case}: {missing} records silently gone"
                        );
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{case}: {error}");
                        assert!(
                            error.message().contains("at byte"),
                            "{case}: {error} does not say where"
                        );
                        assert!(
                            error.message().contains(&name),
                            "{case}: {error} does not say which file"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn any_flipped_bit_is_corruption_or_the_last_record_torn() {
    let (store, expected) = small_log(6);
    let last = FILE_HEADER_BYTES + expected[4].0 as usize;
    flip_every_bit(&store, 1 << 20, &expected, |_, at| usize::from(at >= last));
}

#[test]
fn any_flipped_bit_of_a_closed_log_is_noticed() {
    let (store, expected) = small_log(5);
    open(&store).unwrap().0.close().unwrap();
    flip_every_bit(&store, 1 << 20, &expected, |_, _| 0);
}

#[test]
fn any_flipped_bit_in_several_chunks_is_noticed() {
    let store = memory();
    let (log, _) = open_with(&store, 60, 0xda7a).unwrap();
    let expected: Vec<_> = (0..7u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
    drop(log);
    let chunks = files(store.as_ref(), "log-");
    assert_eq!(chunks.len(), 4);
    let last = chunks.last().unwrap().clone();
    flip_every_bit(&store, 60, &expected, |name, _| usize::from(*name == last));
}

#[test]
fn a_damaged_snapshot_falls_back_to_the_one_before_if_the_log_is_there() {
    let (store, expected) = small_log(3);
    let (log, _) = open(&store).unwrap();
    log.write_snapshot(log.position(), b"three").unwrap();
    let before = copy(store.as_ref());
    let fourth = (commit(&log, b"four"), b"four".to_vec());
    log.write_snapshot(log.position(), b"four of them").unwrap();
    let fifth = (commit(&log, b"five"), b"five".to_vec());
    drop(log);
    let (old, new) = (FileKind::Snapshot.name(expected[2].0), FileKind::Snapshot.name(fourth.0));
    let bytes = bytes_of(store.as_ref(), &new);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        // With its predecessor, the state after a crash in the middle of writing the snapshot.
        let with_old = copy(store.as_ref());
        put(with_old.as_ref(), &new, &damaged);
        put(with_old.as_ref(), &old, &bytes_of(before.as_ref(), &old));
        let (_, replayed) = open(&with_old).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        assert_eq!(replayed.snapshot.as_deref(), Some(b"three".as_slice()));
        assert_eq!(replayed.records, [fourth.clone(), fifth.clone()]);
        assert_eq!(
            files(with_old.as_ref(), "snap-"),
            std::slice::from_ref(&old),
            "the damaged one is cleared away"
        );
        // Without any other snapshot: from the beginning of the log, which still exists.
        let alone = copy(store.as_ref());
        put(alone.as_ref(), &new, &damaged[..at]);
        assert_eq!(open(&alone).unwrap().1.records.len(), 5);
    }
    let both = copy(store.as_ref());
    put(both.as_ref(), &old, &bytes_of(before.as_ref(), &old));
    assert_eq!(open(&both).unwrap().1.snapshot.as_deref(), Some(b"four of them".as_slice()));
}

#[test]
fn a_damaged_snapshot_without_the_log_before_it_is_corruption() {
    let store = memory();
    let (log, _) = open_with(&store, 60, 1).unwrap();
    (0..9u8).for_each(|i| _ = commit(&log, &[i; 25]));
    log.write_snapshot(log.position(), b"nine").unwrap();
    commit(&log, b"ten");
    drop(log);
    let name = files(store.as_ref(), "snap-")[0].clone();
    let mut bytes = bytes_of(store.as_ref(), &name);
    *bytes.last_mut().unwrap() ^= 1;
    put(store.as_ref(), &name, &bytes);
    expect_error(open(&store), ErrorKind::Corrupt, &["missing", &name, "checksum"]);
    store.remove(&name).unwrap();
    expect_error(open(&store), ErrorKind::Corrupt, &["from position 0", "missing"]);
    files(store.as_ref(), "log-").iter().for_each(|name| store.remove(name).unwrap());
    put(store.as_ref(), &name, &bytes);
    expect_error(open(&store), ErrorKind::Corrupt, &["missing"]);
}

#[test]
fn a_log_that_ends_before_a_damaged_snapshot_is_corruption() {
    let (store, expected) = small_log(6);
    let (log, _) = open(&store).unwrap();
    log.write_snapshot(log.position(), b"six").unwrap();
    drop(log);
    put(store.as_ref(), &FileKind::Snapshot.name(expected[5].0), b"");
    let bytes = bytes_of(store.as_ref(), FIRST);
    for cut in FILE_HEADER_BYTES..bytes.len() {
        put(store.as_ref(), FIRST, &bytes[..cut]);
        expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, "before the snapshot at position"]);
    }
    put(store.as_ref(), FIRST, &bytes);
    assert_eq!(open(&store).unwrap().1.records, expected);
}

#[test]
fn a_gap_between_chunks_is_corruption() {
    let store = memory();
    let (log, _) = open_with(&store, 60, 1).unwrap();
    (0..9u8).for_each(|i| _ = commit(&log, &[i; 25]));
    drop(log);
    let chunks = files(store.as_ref(), "log-");
    assert!(chunks.len() > 4);
    for gone in &chunks[..chunks.len() - 1] {
        let damaged = copy(store.as_ref());
        damaged.remove(gone).unwrap();
        expect_error(open(&damaged), ErrorKind::Corrupt, &[]);
    }
}

#[test]
fn files_of_another_database_are_refused() {
    let make = |id| {
        let store = memory();
        let (log, _) = open_with(&store, 60, id).unwrap();
        (0..9u8).for_each(|i| _ = commit(&log, &[i; 25]));
        log.write_snapshot(log.position(), b"nine").unwrap();
        commit(&log, b"ten");
        store
    };
    let (one, two) = (make(1), make(2));
    for name in one.list().unwrap() {
        let mixed = copy(one.as_ref());
        put(mixed.as_ref(), &name, &bytes_of(two.as_ref(), &name));
        expect_error(open(&mixed), ErrorKind::Corrupt, &["belongs to another database"]);
    }
    // A file under the name of another.
    let chunk = files(one.as_ref(), "log-")[0].clone();
    let renamed = memory();
    put(renamed.as_ref(), FIRST, &bytes_of(one.as_ref(), &chunk));
    expect_error(open(&renamed), ErrorKind::Corrupt, &[FIRST, &chunk]);
}

#[test]
fn records_do_not_validate_at_another_position_or_in_another_database() {
    let header =
        RecordHeader { length: 3, mark: false, unsynced: 0, payload_checksum: checksum(b"abc") };
    let mut bytes = header.encode_unsealed();
    RecordHeader::seal(&mut bytes, 1000, 1000, 7);
    assert_eq!(RecordHeader::decode(&bytes, 1000, 7), Some(header));
    assert_eq!(RecordHeader::decode(&bytes, 1001, 7), None);
    assert_eq!(RecordHeader::decode(&bytes, 1000, 8), None);
    assert_eq!(RecordHeader::decode(&[0; RECORD_HEADER_BYTES], 0, 0), None);
}

#[test]
fn a_stale_copy_of_a_record_is_not_taken_for_a_new_one() {
    let (store, expected) = small_log(3);
    let mut bytes = bytes_of(store.as_ref(), FIRST);
    let second =
        FILE_HEADER_BYTES + expected[0].0 as usize..FILE_HEADER_BYTES + expected[1].0 as usize;
    bytes.extend_from_within(second);
    put(store.as_ref(), FIRST, &bytes);
    assert_eq!(open(&store).unwrap().1.records, expected);
}

#[test]
fn a_newer_version_is_unsupported_and_named() {
    let (store, _) = small_log(2);
    let (log, _) = open(&store).unwrap();
    log.write_snapshot(log.position(), b"two").unwrap();
    drop(log);
    for name in store.list().unwrap() {
        let newer = copy(store.as_ref());
        let mut bytes = bytes_of(newer.as_ref(), &name);
        bytes[8..12].copy_from_slice(&77u32.to_le_bytes());
        let sum = checksum(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        put(newer.as_ref(), &name, &bytes);
        expect_error(open(&newer), ErrorKind::Unsupported, &[&name, "version 77"]);
        assert!(
            bytes_of(newer.as_ref(), &name) == bytes,
            "a file of a newer version is left alone"
        );
    }
}

#[test]
fn zeroes_after_the_last_record_are_the_end() {
    for zeroes in [1, 23, 24, 25, 5_000, 3 << 20] {
        let (store, expected) = small_log(3);
        let len = bytes_of(store.as_ref(), FIRST).len() as u64;
        store.open(FIRST).unwrap().truncate(len + zeroes).unwrap();
        let (log, replayed) = open(&store).unwrap();
        assert_eq!(replayed.records, expected);
        commit(&log, b"next");
        drop(log);
        assert_eq!(open(&store).unwrap().1.payloads()[3], b"next");
    }
}

#[test]
fn garbage_after_the_last_record_is_cut() {
    let (store, expected) = small_log(3);
    let file = store.open(FIRST).unwrap();
    let len = file.len().unwrap();
    let garbage: Vec<u8> = (0..3_000_000u64)
        .map(|i| (i.wrapping_mul(i).wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    file.write(len, &garbage).unwrap();
    assert_eq!(open(&store).unwrap().1.records, expected);
    assert_eq!(file.len().unwrap(), len);
}

#[test]
fn a_record_longer_than_the_file_takes_no_memory() {
    let (store, expected) = small_log(2);
    let file = store.open(FIRST).unwrap();
    let at = file.len().unwrap();
    for length in [1, 1000, crate::MAX_RECORD_BYTES as u32, u32::MAX >> 1] {
        let header = RecordHeader { length: 1, mark: false, unsynced: 0, payload_checksum: 1 };
        let mut bytes = header.encode_unsealed();
        // The log never writes a length beyond the limit.
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let sum = header_checksum(&bytes, at - FILE_HEADER_BYTES as u64, 0xda7a);
        bytes[16..].copy_from_slice(&sum.to_le_bytes());
        file.write(at, &bytes).unwrap();
        assert_eq!(open(&store).unwrap().1.records, expected);
        assert_eq!(file.len().unwrap(), at);
    }
}

#[test]
fn an_unfinished_batch_out_of_order_is_torn_not_corrupt() {
    let (store, mut expected) = small_log(2);
    let start = bytes_of(store.as_ref(), FIRST).len();
    let (log, _) = open(&store).unwrap();
    // One write of three records whose first sector was never persisted.
    let ends: Vec<Lsn> = (0..3u8).map(|i| log.append(&[i; 50]).unwrap()).collect();
    log.sync(ends[2]).unwrap();
    let torn = copy(store.as_ref());
    torn.open(FIRST).unwrap().write(start as u64, &[0; 30]).unwrap();
    assert_eq!(open(&torn).unwrap().1.records, expected);
    // The same damage after another record was written once the batch was durable.
    expected.extend((0..3u8).map(|i| (ends[i as usize], vec![i; 50])));
    commit(&log, b"later");
    store.open(FIRST).unwrap().write(start as u64, &[0; 30]).unwrap();
    expect_error(open(&store), ErrorKind::Corrupt, &[FIRST, &format!("at byte {start} ")]);
}

#[test]
fn a_chunk_whose_making_was_interrupted_is_made_again() {
    for left in 0..=FILE_HEADER_BYTES {
        let store = memory();
        let (log, _) = open_with(&store, 60, 3).unwrap();
        let expected: Vec<_> = (0..4u8).map(|i| (commit(&log, &[i; 25]), vec![i; 25])).collect();
        let end = log.position();
        drop(log);
        let name = FileKind::Chunk.name(end);
        let header = FileHeader {
            kind: FileKind::Chunk,
            database_id: 3,
            lsn: end,
            payload_bytes: 0,
            payload_checksum: 0,
        };
        put(store.as_ref(), &name, &header.encode()[..left]);
        let (log, replayed) = open_with(&store, 60, 99).unwrap();
        assert_eq!((replayed.records, log.database_id()), (expected, 3));
        commit(&log, b"next");
        drop(log);
        assert_eq!(open_with(&store, 60, 99).unwrap().1.payloads()[4], b"next");
    }
}
