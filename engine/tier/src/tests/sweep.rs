//! Blobs that a writer has left unnamed, and what a later one removes of them.

use super::world::{Fault, Faulty, Hands, Small, bytes_of, host_of, options, wait};
use core::time::Duration;
use nacre_host::memory::MemoryStore;
use nacre_host::{BlobStore, Host, Rest, Uploads, WriteIf};
use std::sync::Arc;

struct World {
    clock: Arc<Hands>,
    blobs: Arc<Faulty>,
    files: Arc<MemoryStore>,
}

impl World {
    fn new() -> World {
        World { clock: Arc::default(), blobs: Faulty::new(), files: Arc::default() }
    }

    fn open(&self) -> Small {
        let host = Host { clock: self.clock.clone(), ..host_of(self.files.clone()) };
        Small::open_at(host, &self.blobs, options()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        wait(self.blobs.list("")).unwrap().into_iter().map(|info| info.name).collect()
    }

    fn put(&self, name: &str) {
        wait(self.blobs.write(name, [1_u8].as_slice().into(), WriteIf::Any)).unwrap();
    }

    /// A writer that uploads a part of its files, and ends before a manifest names them. Returns their names.
    fn leave(&self) -> Vec<String> {
        let mut small = self.open();
        small.upload();
        let before = self.names();
        (0..3).for_each(|at| small.add(10 * small.tier.0.writer() + at).unwrap());
        small.snapshot().unwrap();
        assert_eq!(wait(small.tier.step()).unwrap(), Rest::No);
        let mut left = self.names();
        left.retain(|name| !before.contains(name));
        assert!(left.len() >= 3, "{left:?}");
        left
    }
}

#[test]
fn what_earlier_writers_left_is_removed() {
    let world = World::new();
    let left = world.leave();
    // Another disk: what was not uploaded is lost.
    let world = World { files: Arc::default(), ..world };
    let foreign = [
        "00000001/readme.txt",
        "00000001/seg-0000000000000001.bak",
        "00000001/log-00000000000000000000.old-1",
        "1/seg-0000000000000001",
        "notes/seg-0000000000000001",
        "shop/manifest",
    ];
    foreign.iter().for_each(|name| world.put(name));
    let mut small = world.open();
    small.upload();
    let has = |name: &str| world.names().iter().any(|other| other == name);
    assert!(left.iter().all(|name| has(name)), "the one before may have ended just now");
    world.clock.pass(Duration::from_secs(61));
    small.add(7).unwrap();
    world.blobs.fail(0, 1, Fault::Refused);
    while wait(small.tier.step()).unwrap() != Rest::UntilWoken {
        world.clock.pass(Duration::from_secs(11));
    }
    assert!(!left.iter().any(|name| has(name)), "{left:?}");
    assert!(foreign.iter().all(|name| has(name)), "what is not a blob of a writer stays");
    let records = small.records.clone();
    let read = small.read(7).unwrap();
    assert_eq!(read, bytes_of(7));
    drop(small);
    World { files: Arc::default(), ..world }.open().check(&records);
}

#[test]
fn nothing_is_removed_that_a_manifest_names() {
    let world = World::new();
    let mut records = Vec::new();
    for round in 0..40 {
        let left = world.leave();
        let mut small = world.open();
        small.upload();
        // The sixteenth does so at once, as it may end before.
        let number = small.tier.0.writer();
        assert!(number <= 16 || round > 7, "writer {number} in round {round}");
        small.add(1_000 + round).unwrap();
        small.upload();
        records = small.records.clone();
        drop((small, left));
    }
    let mut names = world.names();
    names.retain(|name| name.starts_with("00000001/"));
    assert!(names.len() < 40, "{names:?}");
    World { files: Arc::default(), ..world }.open().check(&records);
}
