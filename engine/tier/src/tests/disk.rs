//! The local disk: what leaves it and when, and reads of what has left.

use super::world::{
    Fault, Faulty, Small, bytes_of, local_bytes, local_names, name_of, options, wait,
};
use crate::TierOptions;
use crate::at_once::AT_ONCE;
use nacre_host::fetched::Fetched;
use nacre_host::memory::MemoryStore;
use nacre_host::{ErrorKind, LocalStore, Missing, ReadRange, Reason, Rest, Uploads};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

fn limited(disk_limit: u64) -> TierOptions {
    TierOptions { disk_limit, ..options() }
}

/// Bytes of local files that the limit is about.
fn held(files: &MemoryStore) -> u64 {
    let names = ["seg-", "blocks"].iter().flat_map(|kind| local_names(files, kind));
    names.map(|name| files.open(&name).unwrap().len().unwrap()).sum()
}

#[test]
fn the_disk_stays_within_its_limit() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let limit = 16 << 10;
    let mut small = Small::open(&files, &blobs, limited(limit)).unwrap();
    for number in 1..=100 {
        small.add(number).unwrap();
        small.upload();
        assert!(held(&files) <= limit, "{} bytes after file {number}", held(&files));
    }
    let records = small.records.clone();
    for round in 0..2 {
        for number in (1..=100).rev() {
            assert_eq!(small.read(number).unwrap(), bytes_of(number), "round {round}");
            small.upload();
            // A file of 13,000 bytes is held as a whole while it is read.
            assert!(held(&files) <= limit + 13_312, "{} bytes", held(&files));
        }
    }
    small.check(&records);
    drop(small);
    // Again with a disk that has files which were not read.
    Small::open(&files, &blobs, limited(limit)).unwrap().check(&records);
}

#[test]
fn nothing_leaves_before_it_is_uploaded_and_named() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open(&files, &blobs, limited(4 << 10)).unwrap();
    blobs.fail(0, u64::MAX, Fault::Refused);
    for number in 1..=10 {
        small.add(number).unwrap();
        small.upload();
    }
    assert_eq!(local_names(&files, "seg-").len(), 10, "the blob store is away");
    blobs.fail(0, 0, Fault::Refused);
    // Complete, and no record names it yet.
    let file = small.tier.create(&name_of(50)).unwrap();
    file.write(0, &bytes_of(50)).unwrap();
    file.sync().unwrap();
    wait(small.tier.finish()).unwrap();
    assert_eq!(local_names(&files, "seg-"), [name_of(50)]);
    assert_eq!(local_bytes(&*file), bytes_of(50));
    small.tier.note_named(&name_of(50));
    small.drop(1).unwrap();
    small.upload();
    assert_eq!(local_names(&files, "seg-").len(), 0);
    assert_eq!(file.len().unwrap(), 8_000);
}

#[test]
fn a_file_that_is_being_read_leaves_soon_after() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open(&files, &blobs, limited(512)).unwrap();
    small.add(1).unwrap();
    let shared = &small.tier.0;
    let entry = shared.state().files.get(&*name_of(1)).unwrap().clone();
    let handle = entry.open(&*shared.local).unwrap();
    let reading = handle.file();
    small.upload();
    assert_eq!(local_names(&files, "seg-"), [name_of(1)]);
    let rest = wait(small.tier.step()).unwrap();
    assert!(matches!(rest, Rest::For(_)), "{rest:?}: nothing else wakes the uploads");
    drop(reading);
    wait(small.tier.finish()).unwrap();
    assert_eq!(local_names(&files, "seg-").len(), 0);
}

#[test]
fn absent_bytes_are_named_and_kept_while_a_guard_lives() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open(&files, &blobs, limited(4 << 10)).unwrap();
    (1..=10).for_each(|number| small.add(number).unwrap());
    let file = small.tier.open(&name_of(1)).unwrap();
    small.upload();
    let mut bytes = [0u8; 40];
    let mut read = |offset| {
        let read = file.read(&mut [ReadRange { offset, buffer: &mut bytes }]);
        read.map(|()| bytes)
    };
    let error = read(1_000).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotResident));
    assert_eq!(format!("{:?}", error.missing().unwrap()[0].ranges), "[960..1088]");
    let mut fetched = Fetched::default();
    let calls = blobs.calls();
    wait(fetched.resolve(error, &*small.tier)).unwrap();
    assert_eq!(blobs.calls() - calls, 1, "one request");
    assert_eq!(read(1_000).unwrap()[..], bytes_of(1)[1_000..1_040]);
    // Everything else is read meanwhile.
    (2..=10).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    small.upload();
    assert_eq!(read(1_000).unwrap()[..], bytes_of(1)[1_000..1_040]);
    fetched.release();
    (2..=10).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
    assert_eq!(read(1_000).unwrap_err().reason(), Some(Reason::NotResident));
    assert_eq!(read(3_080).unwrap_err().kind(), ErrorKind::Corrupt, "past the end");
    assert_eq!(read(u64::MAX).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn absent_files_are_fetched_several_at_a_time() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open(&files, &blobs, limited(4 << 10)).unwrap();
    (1..=20).for_each(|number| small.add(number).unwrap());
    small.upload();
    let missing: Vec<Missing> = (1..=20)
        .map(|number| Missing { file: name_of(number).into(), ranges: vec![700..900, 0..1_000] })
        .collect();
    let calls = blobs.calls();
    blobs.fail(0, u64::MAX, Fault::Stuck);
    {
        let mut fetch = pin!(small.tier.fetch(&missing));
        let mut context = Context::from_waker(Waker::noop());
        assert!(fetch.as_mut().poll(&mut context).is_pending());
        assert_eq!(blobs.calls() - calls, AT_ONCE as u64);
    }
    // What was given up holds nothing.
    blobs.fail(0, 0, Fault::Stuck);
    let calls = blobs.calls();
    let resident = wait(small.tier.fetch(&missing)).unwrap();
    assert_eq!(blobs.calls() - calls, 20, "a request for ranges that touch");
    blobs.fail(0, u64::MAX, Fault::Refused);
    for number in 1..=20 {
        let (file, mut bytes) = (small.tier.open(&name_of(number)).unwrap(), [0u8; 1_000]);
        file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
        assert_eq!(bytes[..], bytes_of(number)[..1_000]);
    }
    drop(resident);
    small.upload();
    assert!(held(&files) <= 4 << 10);
}

#[test]
fn reads_wait_for_a_blob_store_that_is_away() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let options = TierOptions { patience: core::time::Duration::from_secs(1), ..limited(1) };
    let mut small = Small::open(&files, &blobs, options).unwrap();
    small.add(1).unwrap();
    small.upload();
    blobs.fail(0, 2, Fault::Refused);
    assert_eq!(small.read(1).unwrap(), bytes_of(1), "two failures");
    small.drop(1).unwrap();
    small.add(2).unwrap();
    small.upload();
    blobs.fail(0, u64::MAX, Fault::Refused);
    assert_eq!(small.read(2).unwrap_err().kind(), ErrorKind::Unavailable);
    small.add(3).unwrap();
    assert_eq!(small.read(3).unwrap(), bytes_of(3), "what is local can be read");
}

#[test]
fn a_removed_file_stays_until_the_capture_has_it() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let mut small = Small::open(&files, &blobs, options()).unwrap();
    let last = AT_ONCE as u64 + 2;
    (1..=last).for_each(|number| small.add(number).unwrap());
    assert_eq!(wait(small.tier.step()).unwrap(), Rest::No);
    let before = small.records.clone();
    // The capture has begun, and needs these bytes.
    small.drop(last).unwrap();
    small.snapshot().unwrap();
    let name = name_of(last);
    assert!(small.tier.open(&name).is_err() && !small.tier.list().unwrap().contains(&name));
    assert!(local_names(&files, "seg-").contains(&name));
    while small.tier.position() == 0 {
        let rest = wait(small.tier.step()).unwrap();
        assert_eq!(rest, Rest::No, "{:?}", small.tier.0.state().last_error);
    }
    let reader = Arc::new(MemoryStore::new());
    // As another machine would find it now.
    let copy = Faulty::new();
    for name in blobs.blobs.names() {
        let bytes = blobs.blobs.get(&name).unwrap();
        copy.blobs.put(&name, bytes, &nacre_host::WriteIf::Any).unwrap();
    }
    Small::open(&reader, &copy, options()).unwrap().check(&before);
    small.upload();
    assert!(!local_names(&files, "seg-").contains(&name));
    assert_eq!(local_names(&files, "log-").len(), 1, "chunks before the snapshot are gone");
}

#[test]
fn writes_are_refused_when_too_much_waits() {
    let (files, blobs) = (Arc::new(MemoryStore::new()), Faulty::new());
    let options = TierOptions { unsent_limit: 9_000, ..options() };
    let mut small = Small::open(&files, &blobs, options).unwrap();
    blobs.fail(0, u64::MAX, Fault::Refused);
    for number in 1..=2 {
        small.tier.admit_write().unwrap();
        small.add(number).unwrap();
        small.upload();
    }
    small.add(3).unwrap();
    let error = small.tier.admit_write().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    blobs.fail(0, 0, Fault::Refused);
    wait(small.tier.finish()).unwrap();
    small.tier.admit_write().unwrap();
}
