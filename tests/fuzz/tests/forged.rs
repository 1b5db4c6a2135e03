//! Records with valid checksums that no engine writes, one kind of forgery at a time. Each must end
//! in an error or in some database, never in a crash or an endless loop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_fuzz::log::{Base, base, rewritten};

fn commit_of(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[..8].try_into().unwrap())
}

fn each(change: impl Fn(&Base, usize) -> Vec<Vec<u8>>) {
    for snapshots in [false, true] {
        let base = base(snapshots);
        for at in 0..base.records.len() {
            rewritten(base, base.snapshot.as_deref(), &change(base, at));
        }
    }
}

/// Keys put, deleted or flushed twice in one commit used to violate an invariant of the rowstore.
#[test]
fn a_record_whose_operations_come_twice() {
    each(|base, at| {
        let mut records = base.records.clone();
        let again = records[at][8..].to_vec();
        records[at].extend(again);
        records
    });
}

/// Segments listed twice hold the same keys; merging them used to run forever.
#[test]
fn a_record_that_comes_again_later() {
    each(|base, at| {
        let mut records = base.records.clone();
        let last = commit_of(records.last().unwrap());
        let mut again = records[at].clone();
        again[..8].copy_from_slice(&(last + 1).to_le_bytes());
        records.push(again);
        records
    });
}

/// A flush of rows newer than itself used to violate the order of versions.
#[test]
fn a_record_whose_numbers_are_larger() {
    for add in [1, 0x3f, 0x7f] {
        each(|base, at| {
            let mut records = base.records.clone();
            let end = records[at].len().min(24);
            records[at][9..end].iter_mut().for_each(|byte| *byte = byte.wrapping_add(add));
            records
        });
    }
}

#[test]
fn a_record_that_is_missing() {
    each(|base, at| {
        let mut records = base.records.clone();
        records.remove(at);
        records
    });
}
