//! Opening a folder while its blob store is away.

use super::world::{
    Fault, Faulty, Hands, Small, bytes_of, host_of, local_bytes, name_of, options, wait,
};
use crate::manifest::MANIFEST;
use crate::{Tier, TierOptions};
use nacre_host::memory::MemoryStore;
use nacre_host::{ErrorKind, Host, LocalStore, Reason, Rest, Uploads};
use nacre_types::Result;
use std::sync::Arc;

struct World {
    files: Arc<MemoryStore>,
    blobs: Arc<Faulty>,
}

impl World {
    /// A database with three files that was uploaded, and closed.
    fn new(options: TierOptions) -> World {
        let world = World { files: Arc::default(), blobs: Faulty::new() };
        let mut small = world.open(options).unwrap();
        (1..=3).for_each(|number| small.add(number).unwrap());
        small.upload();
        world
    }

    fn open(&self, options: TierOptions) -> Result<Small> {
        let host = Host { clock: Arc::new(Hands::default()), ..host_of(self.files.clone()) };
        Small::open_at(host, &self.blobs, options)
    }

    fn go_away(&self, fault: Fault) {
        self.blobs.fail(0, u64::MAX, fault);
    }

    fn come_back(&self) {
        self.blobs.fail(0, 0, Fault::Refused);
    }

    /// What another machine finds in the blobs.
    fn elsewhere(&self) -> Small {
        Small::open(&Arc::default(), &self.blobs, options()).unwrap()
    }
}

#[test]
fn what_is_local_goes_on_and_is_uploaded_later() {
    for fault in [Fault::Refused, Fault::Stuck] {
        let world = World::new(options());
        world.go_away(fault);
        let mut small = world.open(options()).unwrap();
        (1..=3).for_each(|number| assert_eq!(small.read(number).unwrap(), bytes_of(number)));
        small.add(4).unwrap();
        small.drop(1).unwrap();
        let records = small.records.clone();
        drop(small);
        let mut small = world.open(options()).unwrap();
        small.check(&records);
        small.add(5).unwrap();
        small.snapshot().unwrap();
        world.come_back();
        wait(small.tier.finish()).unwrap();
        small.add(6).unwrap();
        small.upload();
        world.elsewhere().check(&small.records);
        let error = wait(small.tier.finish()).err();
        assert!(error.is_none(), "nothing is left: {error:?}");
    }
}

#[test]
fn nothing_leaves_and_what_has_left_is_unavailable() {
    let limited = || TierOptions { disk_limit: 4 << 10, ..options() };
    let world = World::new(limited());
    world.go_away(Fault::Refused);
    let mut small = world.open(limited()).unwrap();
    small.add(7).unwrap();
    while wait(small.tier.step()).unwrap() == Rest::No {}
    assert_eq!(small.read(7).unwrap(), bytes_of(7));
    assert_eq!(small.read(1).unwrap_err().kind(), ErrorKind::Unavailable);
    world.come_back();
    assert_eq!(small.read(1).unwrap(), bytes_of(1), "its blob is known");
    wait(small.tier.finish()).unwrap();
    assert!(!world.files.list().unwrap().contains(&name_of(7)), "it has left");
    small.check(&small.records.clone());
    world.elsewhere().check(&small.records);
}

#[test]
fn a_folder_that_was_overtaken_is_stopped_when_it_joins() {
    let world = World::new(options());
    world.go_away(Fault::Refused);
    let mut small = world.open(options()).unwrap();
    small.add(4).unwrap();
    world.come_back();
    let mut other = world.elsewhere();
    other.add(9).unwrap();
    other.upload();
    let error = wait(small.tier.finish()).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Fenced), "{error}");
    assert_eq!(small.add(5).unwrap_err().reason(), Some(Reason::Fenced));
    other.check(&other.records.clone());
    drop(small);
    world.go_away(Fault::Refused);
    let error = world.open(options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "it knows that it was stopped: {error}");
    world.come_back();
    assert_eq!(world.open(options()).err().unwrap().reason(), Some(Reason::Fenced));
}

#[test]
fn blobs_that_are_others_are_not_joined() {
    let world = World::new(options());
    world.go_away(Fault::Refused);
    let mut small = world.open(options()).unwrap();
    small.add(4).unwrap();
    world.come_back();
    let (blobs, _) = wait(nacre_host::BlobStore::read_all(&*world.blobs, MANIFEST)).unwrap();
    wait(nacre_host::BlobStore::remove(&*world.blobs, MANIFEST)).unwrap();
    let error = wait(small.tier.finish()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("manifest is missing"), "{error}");
    let calls = world.blobs.calls();
    assert_eq!(wait(small.tier.step()).unwrap(), Rest::UntilWoken);
    assert_eq!(world.blobs.calls(), calls, "nothing is asked any more");
    small.add(5).unwrap();
    small.check(&small.records.clone());
    drop((small, blobs));
}

#[test]
fn a_folder_that_does_not_know_its_blobs_needs_them() {
    let world = World::new(options());
    let opens = |world: &World| {
        world.go_away(Fault::Refused);
        let opened = world.open(options());
        world.come_back();
        match opened {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                false
            }
        }
    };
    assert!(opens(&world));
    let copy = world.files.open(MANIFEST).unwrap();
    let bytes = local_bytes(&*copy);
    copy.truncate(bytes.len() as u64 - 1).unwrap();
    assert!(!opens(&world), "the copy is torn");
    copy.write(0, &bytes).unwrap();
    assert!(opens(&world));
    drop(world.open(options()).unwrap());
    copy.truncate(0).unwrap();
    copy.write(0, &bytes).unwrap();
    assert!(!opens(&world), "the copy is that of an earlier number");
    drop(world.open(options()).unwrap());
    assert!(opens(&world), "opening with the blob store notes the manifest");
    world.files.remove(MANIFEST).unwrap();
    assert!(!opens(&world), "there is no copy");
    let empty = World { files: Arc::default(), ..world };
    assert!(!opens(&empty), "there is nothing yet");
}

#[test]
fn a_number_that_was_taken_without_an_answer_is_the_folders() {
    let world = World::new(options());
    // The manifest is read and replaced, and the answers are lost.
    world.blobs.fail(1, u64::MAX, Fault::Lost);
    let mut small = world.open(options()).unwrap();
    small.add(4).unwrap();
    world.come_back();
    wait(small.tier.finish()).unwrap();
    assert_eq!(small.tier.0.writer(), 3);
    world.elsewhere().check(&small.records);
    assert!(Tier::position(&small.tier) > 0);
}
