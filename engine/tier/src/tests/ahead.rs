//! What is read ahead: how many requests it takes, what waits for them, and how much room there is.

use super::world::{Fault, Faulty, Small, bytes_of, local_bytes, name_of, options, wait};
use crate::TierOptions;
use crate::at_once::AT_ONCE;
use nacre_host::memory::MemoryStore;
use nacre_host::{Ahead, LocalFile, LocalStore, Missing, Uploads};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

/// A database whose file 100, of 13,000 bytes or 26 blocks, is a blob only; and an open handle of that file.
fn absent(disk_limit: u64) -> (Small, Arc<Faulty>, Arc<dyn LocalFile>) {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let options = TierOptions { disk_limit, ..options() };
    let mut small = Small::open(&files, &blobs, options.clone()).unwrap();
    small.add(100).unwrap();
    small.upload();
    drop(small);
    // On another machine.
    let small = Small::open(&Arc::new(MemoryStore::new()), &blobs, options).unwrap();
    let file = small.tier.open(&name_of(100)).unwrap();
    (small, blobs, file)
}

fn missing(range: std::ops::Range<u64>) -> [Missing; 1] {
    [Missing { file: name_of(100).into(), ranges: vec![range] }]
}

#[test]
fn what_was_read_ahead_is_there_without_a_wait() {
    let (small, _, file) = absent(u64::MAX);
    let guard = file.read_ahead(&[0..5_000, 5_000..13_000]);
    let before = small.tier.reads();
    assert_eq!((before.requests, before.bytes, before.waits), (1, 13_000, 0), "ranges that touch");
    assert_eq!(local_bytes(&*file), bytes_of(100));
    drop(guard);
    assert_eq!(small.read(100).unwrap(), bytes_of(100));
    let after = small.tier.reads();
    assert_eq!((after.requests, after.waits, after.hits), (1, 0, 2));
    assert!(matches!(file.read_ahead(std::slice::from_ref(&(0..13_000))), Ahead::Nothing));
}

#[test]
fn a_fetch_waits_for_what_is_on_its_way_and_asks_itself_if_that_fails() {
    let (small, blobs, file) = absent(u64::MAX);
    blobs.fail(0, 1, Fault::Stuck);
    let before = blobs.calls();
    let guard = file.read_ahead(std::slice::from_ref(&(512..2_048)));
    assert_eq!(blobs.calls() - before, 1);
    let wanted = missing(0..13_000);
    {
        let mut fetch = pin!(small.tier.fetch(&wanted));
        let mut context = Context::from_waker(Waker::noop());
        assert!(fetch.as_mut().poll(&mut context).is_pending());
        assert_eq!(blobs.calls() - before, 2, "the first block, and not those on their way");
    }
    // Nothing waits for it any more.
    drop(guard);
    let resident = wait(small.tier.fetch(&wanted)).unwrap();
    assert_eq!(local_bytes(&*file), bytes_of(100));
    drop(resident);
    let (small, blobs, file) = absent(u64::MAX);
    blobs.fail(0, 1, Fault::Refused);
    let _guard = file.read_ahead(std::slice::from_ref(&(512..2_048)));
    assert_eq!(small.read(100).unwrap(), bytes_of(100));
}

#[test]
fn a_limited_number_of_requests_is_in_progress() {
    let (small, blobs, file) = absent(u64::MAX);
    blobs.fail(0, u64::MAX, Fault::Stuck);
    let before = blobs.calls();
    let every_second: Vec<_> = (0..13).map(|block| block * 1_024..block * 1_024 + 512).collect();
    let guard = file.read_ahead(&every_second);
    assert_eq!(blobs.calls() - before, AT_ONCE as u64);
    drop(guard);
    blobs.fail(0, 0, Fault::Stuck);
    let before = blobs.calls();
    let _guard = file.read_ahead(&every_second);
    assert_eq!(blobs.calls() - before, 13, "answers that are there make room for the next");
    assert_eq!(small.read(100).unwrap(), bytes_of(100));
    assert_eq!(small.tier.reads().waits, 1);
}

#[test]
fn a_quarter_of_the_room_is_for_reading_ahead() {
    // 20 blocks.
    let (small, _, file) = absent(20 * 512);
    let held: Vec<_> =
        (0..4).map(|part| file.read_ahead(std::slice::from_ref(&(part * 3_000..13_000)))).collect();
    assert_eq!(small.tier.reads().bytes_ahead, 5 * 512, "of the first call");
    assert!(held[1..].iter().all(|ahead| matches!(ahead, Ahead::NoRoom)));
    assert_eq!(small.read(100).unwrap(), bytes_of(100), "there is room for what is needed");
    drop(held);
    assert_eq!(small.tier.0.blocks().reserve_ahead((0, 0), 3), None, "a quarter of 3 blocks");
}
