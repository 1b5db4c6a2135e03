//! The blocks that an instance has fetched, for the next one.

use super::world::{Fault, Faulty, Small, bytes_of, local_bytes, name_of, options};
use crate::TierOptions;
use crate::blocks::BLOCKS;
use crate::kept::KEPT;
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalStore, Uploads};
use std::sync::Arc;

const FILES: u64 = 5;

/// All files are blobs only, and their blocks fit.
fn all_blocks() -> TierOptions {
    TierOptions { disk_limit: 256 << 10, ..options() }
}

/// A database whose files have left the disk, and some of whose blocks have come back.
fn with_blocks() -> (Arc<MemoryStore>, Arc<Faulty>) {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let limit = TierOptions { disk_limit: 512, ..options() };
    let mut small = Small::open(&files, &blobs, limit).unwrap();
    (1..=FILES).for_each(|number| small.add(number).unwrap());
    small.upload();
    drop(small);
    let small = Small::open(&files, &blobs, all_blocks()).unwrap();
    (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    (files, blobs)
}

/// Opens it once more and reads all files. Returns how many requests that took.
fn requests(files: &Arc<MemoryStore>, blobs: &Arc<Faulty>, options: TierOptions) -> u64 {
    let small = Small::open(files, blobs, options).unwrap();
    (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    small.tier.reads().requests
}

/// Changes a byte of a local file.
fn damage(files: &MemoryStore, name: &str, at: u64) {
    let file = files.open(name).unwrap();
    let byte = local_bytes(&*file)[at as usize];
    file.write(at, &[!byte]).unwrap();
}

#[test]
fn the_next_instance_has_the_blocks_of_this_one() {
    let (files, blobs) = with_blocks();
    blobs.refuse("0");
    for _ in 0..3 {
        let small = Small::open(&files, &blobs, all_blocks());
        // The manifest is elsewhere, and answers.
        let small = small.unwrap();
        (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
        assert_eq!(small.tier.reads().requests, 0);
        assert_eq!(small.tier.reads().waits, 0);
    }
}

#[test]
fn what_was_lost_of_it_is_fetched_again() {
    let (files, blobs) = with_blocks();
    damage(&files, BLOCKS, 700);
    assert_eq!(requests(&files, &blobs, all_blocks()), 1, "a sector is not what it was");
    damage(&files, KEPT, 64 + 30);
    assert_eq!(requests(&files, &blobs, all_blocks()), 1, "a note is not what it was");
    assert_eq!(requests(&files, &blobs, all_blocks()), 0);
    let blocks = files.open(BLOCKS).unwrap();
    blocks.truncate(blocks.len().unwrap() / 2).unwrap();
    let again = requests(&files, &blobs, all_blocks());
    assert!(again > 0, "half of the slots are gone");
    let notes = files.open(KEPT).unwrap();
    notes.truncate(200).unwrap();
    assert!(requests(&files, &blobs, all_blocks()) > 0, "two notes are left");
    for lost in [KEPT, BLOCKS] {
        assert_eq!(requests(&files, &blobs, all_blocks()), 0);
        files.remove(lost).unwrap();
        assert!(requests(&files, &blobs, all_blocks()) >= FILES, "{lost} was removed");
    }
    let larger = TierOptions { block_bytes: 1024, ..all_blocks() };
    assert!(requests(&files, &blobs, larger) >= FILES, "blocks have another size");
    damage(&files, KEPT, 3);
    assert!(requests(&files, &blobs, all_blocks()) >= FILES, "the head is damaged");
}

#[test]
fn the_limit_of_the_next_instance_holds() {
    let (files, blobs) = with_blocks();
    let small = Small::open(&files, &blobs, TierOptions { disk_limit: 4 << 10, ..options() });
    let small = small.unwrap();
    small.upload();
    assert!(files.open(BLOCKS).unwrap().len().unwrap() <= 4 << 10);
    (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    drop(small);
    assert!(requests(&files, &blobs, all_blocks()) > 0);
    assert_eq!(requests(&files, &blobs, all_blocks()), 0);
}

#[test]
fn blocks_of_files_that_are_gone_are_free() {
    let (files, blobs) = with_blocks();
    let before = files.open(BLOCKS).unwrap().len().unwrap();
    let mut small = Small::open(&files, &blobs, all_blocks()).unwrap();
    small.drop(1).unwrap();
    small.add(9).unwrap();
    small.upload();
    drop(small);
    let limit = TierOptions { disk_limit: 512, ..options() };
    drop(Small::open(&files, &blobs, limit).map(|small| small.upload()));
    let small = Small::open(&files, &blobs, all_blocks()).unwrap();
    for number in (2..=FILES).chain([9]) {
        assert_eq!(small.read(number).unwrap(), bytes_of(number));
    }
    assert!(files.open(BLOCKS).unwrap().len().unwrap() <= before + 512);
    assert!(small.tier.open(&name_of(1)).is_err());
    blobs.fail(0, u64::MAX, Fault::Refused);
    assert_eq!(small.read(9).unwrap(), bytes_of(9));
}

#[test]
fn what_is_told_to_be_here_is_read_without_requests() {
    let (files, blobs) = with_blocks();
    damage(&files, BLOCKS, 700);
    let small = Small::open(&files, &blobs, all_blocks()).unwrap();
    let absent: u64 = (1..=FILES)
        .map(|number| {
            let file = small.tier.open(&name_of(number)).unwrap();
            let whole = 0..file.len().unwrap();
            let parts = file.absent(std::slice::from_ref(&whole));
            parts.iter().map(|part| part.end - part.start).sum::<u64>()
        })
        .sum();
    assert_eq!(absent, 64, "the sector that is not what it was");
    (1..=FILES).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    assert_eq!(small.tier.reads().requests, 1);
}
