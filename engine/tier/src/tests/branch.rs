//! Branches: databases that begin as a state of another one, and go on beside it.

use super::world::{Fault, Faulty, Hands, Small, bytes_of, host_at, options, read_whole, wait};
use crate::history::AsOf;
use crate::{MANIFEST, Place, Tier, TierOptions, branch, drop_branch};
use core::time::Duration;
use nacre_host::{ErrorKind, Result};
use std::sync::Arc;

const MINUTE: Duration = Duration::from_secs(60);

fn tiers() -> TierOptions {
    TierOptions { retention: MINUTE, history: MINUTE, ..options() }
}

/// Three places, each of which reaches the others.
struct World {
    clock: Arc<Hands>,
    places: Vec<(&'static str, Arc<Faulty>)>,
}

impl World {
    fn new() -> World {
        let places: Vec<_> = ["a", "b", "c"].map(|url| (url, Faulty::new())).into();
        for (_, place) in &places {
            for (url, other) in &places {
                place.reach(url, other);
            }
        }
        World { clock: Arc::default(), places }
    }

    fn blobs(&self, url: &str) -> &Arc<Faulty> {
        &self.places.iter().find(|(known, _)| *known == url).unwrap().1
    }

    fn open(&self, url: &str) -> Small {
        Small::open_at(host_at(&self.clock), self.blobs(url), tiers()).unwrap()
    }

    fn place(&self, url: &'static str) -> Place<'static> {
        Place { blobs: self.blobs(url).clone(), url }
    }

    fn branch(&self, from: &'static str, to: &'static str, at: Option<u64>) -> Result<u64> {
        let (from, to) = (self.place(from), self.place(to));
        let host = host_at(&self.clock);
        wait(branch(&host, &from, &to, &tiers(), at.map(AsOf::Position)))
    }

    /// Lets the time of everything that is dropped end, and removes it.
    fn collect(&self, small: &mut Small, first: u64) {
        for number in first..first + 3 {
            self.clock.pass(2 * MINUTE);
            small.add(number).unwrap();
            small.upload();
        }
    }
}

fn references(blobs: &Faulty) -> usize {
    blobs.blobs.names().iter().filter(|name| name.starts_with("branches/")).count()
}

#[test]
fn a_branch_and_its_origin_go_on_apart() {
    let world = World::new();
    let mut small = world.open("a");
    for number in 1..=8 {
        small.add(number).unwrap();
        if number == 5 {
            small.snapshot().unwrap();
        }
    }
    small.upload();
    let (calls, bytes) = (world.blobs("b").calls(), world.blobs("a").blobs.names().len());
    assert_eq!(world.branch("a", "b", None).unwrap(), small.log.position());
    assert!(world.blobs("b").calls() - calls < 4 && bytes > 9, "only a manifest is written");
    assert_eq!(world.blobs("b").blobs.names(), [MANIFEST]);
    let mut other = world.open("b");
    other.check(&small.records);
    for number in 1..=4 {
        small.drop(number).unwrap();
        other.add(20 + number).unwrap();
    }
    other.drop(5).unwrap();
    small.snapshot().unwrap();
    other.snapshot().unwrap();
    small.upload();
    other.upload();
    world.collect(&mut small, 30);
    world.collect(&mut other, 40);
    // On empty disks: all that each has is in the blobs.
    world.open("a").check(&small.records);
    world.open("b").check(&other.records);
    assert!(other.records != small.records);
    let reader =
        wait(Tier::open_to_read(&host_at(&world.clock), world.blobs("b").clone(), tiers()));
    assert!(read_whole(&reader.unwrap(), 2).unwrap() == bytes_of(2));
}

#[test]
fn a_branch_of_a_position_ends_there() {
    let world = World::new();
    let mut small = world.open("a");
    small.upload();
    let mut past = Vec::new();
    for number in 1..=20 {
        small.add(number).unwrap();
        if number > 3 && number % 3 == 0 {
            small.drop(number - 2).unwrap();
        }
        if number % 6 == 0 {
            small.snapshot().unwrap();
        }
        if number % 4 == 0 {
            small.upload();
        }
        past.push((small.log.position(), small.records.clone()));
    }
    small.upload();
    for (position, records) in past.iter().skip(3) {
        for at in [*position, position + 7] {
            let blobs = world.blobs("b").blobs.clone();
            if at > small.log.position() {
                continue;
            }
            assert_eq!(world.branch("a", "b", Some(at)).unwrap(), *position);
            let mut other = world.open("b");
            other.check(records);
            other.add(77).unwrap();
            other.upload();
            let records = other.records.clone();
            drop(other);
            world.open("b").check(&records);
            wait(drop_branch(&world.place("b"))).unwrap();
            assert!(blobs.names().is_empty() && references(world.blobs("a")) == 0);
        }
    }
    let error = world.branch("a", "b", Some(small.log.position() + 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn an_origin_keeps_what_its_branch_needs_until_that_needs_it_no_more() {
    let world = World::new();
    let mut small = world.open("a");
    for number in 1..=3 {
        small.add(number).unwrap();
    }
    small.upload();
    world.branch("a", "b", None).unwrap();
    for number in 1..=3 {
        small.drop(number).unwrap();
    }
    small.snapshot().unwrap();
    small.upload();
    world.collect(&mut small, 10);
    let kept = |number: u64| {
        let names = world.blobs("a").blobs.names();
        names.iter().any(|name| name.ends_with(&super::world::name_of(number)))
    };
    assert!((1..=3).all(kept), "{:?}", world.blobs("a").blobs.names());
    // The branch drops all that it has from there.
    let mut other = world.open("b");
    for number in 1..=3 {
        other.drop(number).unwrap();
    }
    for number in 40..60 {
        // The chunk of the log ends that it has in common.
        other.add(number).unwrap();
    }
    other.snapshot().unwrap();
    other.upload();
    assert_eq!(references(world.blobs("a")), 1, "its history needs them");
    world.collect(&mut other, 20);
    assert_eq!(references(world.blobs("a")), 0);
    world.collect(&mut small, 15);
    assert!(!(1..=3).any(kept), "{:?}", world.blobs("a").blobs.names());
    world.open("b").check(&other.records);
}

/// The origin is away when its branch needs nothing of it any more.
#[test]
fn an_origin_that_refuses_its_release_holds_up_no_removal() {
    let world = World::new();
    let mut small = world.open("a");
    small.add(1).unwrap();
    small.upload();
    world.branch("a", "b", None).unwrap();
    let mut other = world.open("b");
    other.drop(1).unwrap();
    for number in 40..60 {
        // The chunk of the log ends that it has in common.
        other.add(number).unwrap();
    }
    other.snapshot().unwrap();
    other.upload();
    other.drop(40).unwrap();
    other.upload();
    let is_there = |number: u64| {
        let names = world.blobs("b").blobs.names();
        names.iter().any(|name| name.ends_with(&super::world::name_of(number)))
    };
    assert!(is_there(40), "its history needs it");
    let calls = world.blobs("a").calls();
    world.blobs("a").fail(0, u64::MAX, Fault::Refused);
    world.collect(&mut other, 20);
    assert!(world.blobs("a").calls() > calls, "a release is tried");
    assert_eq!(references(world.blobs("a")), 1);
    assert!(!is_there(40), "its own blobs go all the same");
    world.blobs("a").fail(0, 0, Fault::Refused);
    world.collect(&mut other, 30);
    assert_eq!(references(world.blobs("a")), 0);
    world.open("b").check(&other.records);
}

#[test]
fn a_branch_of_a_branch_needs_both() {
    let world = World::new();
    let mut small = world.open("a");
    small.add(1).unwrap();
    small.upload();
    world.branch("a", "b", None).unwrap();
    let mut middle = world.open("b");
    middle.add(2).unwrap();
    middle.upload();
    world.branch("b", "c", None).unwrap();
    assert_eq!((references(world.blobs("a")), references(world.blobs("b"))), (2, 1));
    let error = wait(drop_branch(&world.place("b"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    // Neither of the others has them any more.
    small.drop(1).unwrap();
    small.snapshot().unwrap();
    small.upload();
    world.collect(&mut small, 10);
    for number in 1..=2 {
        middle.drop(number).unwrap();
    }
    middle.snapshot().unwrap();
    middle.upload();
    world.collect(&mut middle, 20);
    world.collect(&mut small, 15);
    let mut last = world.open("c");
    last.check(&["1", "2"].map(|number| super::world::name_of(number.parse().unwrap())));
    last.add(3).unwrap();
    last.upload();
    let records = last.records.clone();
    drop(last);
    world.open("c").check(&records);
    wait(drop_branch(&world.place("c"))).unwrap();
    assert_eq!((references(world.blobs("a")), references(world.blobs("b"))), (0, 0));
    wait(drop_branch(&world.place("b"))).unwrap();
    let error = wait(drop_branch(&world.place("a"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn an_origin_that_always_refuses_its_release_holds_up_no_other() {
    let world = World::new();
    let mut small = world.open("a");
    small.add(1).unwrap();
    small.upload();
    world.branch("a", "b", None).unwrap();
    let mut middle = world.open("b");
    middle.add(2).unwrap();
    middle.upload();
    world.branch("b", "c", None).unwrap();
    let mut last = world.open("c");
    last.drop(1).unwrap();
    last.drop(2).unwrap();
    for number in 40..60 {
        // The chunk of the log ends that it has in common.
        last.add(number).unwrap();
    }
    last.snapshot().unwrap();
    last.upload();
    let both = || (references(world.blobs("a")), references(world.blobs("b")));
    assert_eq!(both(), (2, 1));
    world.blobs("a").fail(0, u64::MAX, Fault::Refused);
    world.collect(&mut last, 20);
    world.collect(&mut last, 23);
    assert_eq!(both(), (2, 0));
    world.blobs("a").fail(0, 0, Fault::Refused);
    world.collect(&mut last, 26);
    assert_eq!(both(), (1, 0), "the other one is that of the branch between them");
    world.open("c").check(&last.records);
}

#[test]
fn a_place_with_a_database_is_not_branched_to() {
    let world = World::new();
    let mut small = world.open("a");
    assert_eq!(world.branch("a", "b", None).unwrap_err().kind(), ErrorKind::NotFound);
    small.add(1).unwrap();
    small.upload();
    drop(world.open("c"));
    assert_eq!(world.branch("a", "c", None).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(references(world.blobs("a")), 0);
}

/// A failure in every call leaves a branch, or nothing.
#[test]
fn a_branch_that_is_not_made_leaves_nothing() {
    for fault in [Fault::Refused, Fault::Lost] {
        for (url, after) in (0..8).flat_map(|after| [("a", after), ("b", after)]) {
            let world = World::new();
            let mut small = world.open("a");
            small.upload();
            small.add(1).unwrap();
            let at = small.log.position();
            small.add(2).unwrap();
            small.upload();
            world.blobs(url).fail(after, 1, fault);
            let made = world.branch("a", "b", Some(at));
            let is_there = world.blobs("b").blobs.get(MANIFEST).is_some();
            assert_eq!(made.is_ok(), is_there, "{fault:?} after {after} in {url}: {made:?}");
            match made {
                Ok(_) => world.open("b").check(&[super::world::name_of(1)]),
                Err(_) => {
                    world.branch("a", "b", Some(at)).unwrap();
                    world.open("b").check(&[super::world::name_of(1)]);
                }
            }
            // One is left where the manifest may still take effect.
            let most = if url == "b" && fault == Fault::Refused { 2 } else { 1 };
            let left = references(world.blobs("a"));
            assert!((1..=most).contains(&left), "{fault:?} after {after} in {url}: {left}");
        }
    }
}

/// The manifest of a branch is written after its making has given up: the origin has kept what it needs.
#[test]
fn a_branch_that_comes_late_has_what_it_needs() {
    let world = World::new();
    let mut small = world.open("a");
    small.add(1).unwrap();
    small.upload();
    world.blobs("b").delay();
    let error = world.branch("a", "b", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(world.blobs("b").blobs.get(MANIFEST).is_none());
    world.blobs("b").take_effect();
    small.drop(1).unwrap();
    small.snapshot().unwrap();
    world.collect(&mut small, 10);
    world.open("b").check(&[super::world::name_of(1)]);
}

/// Another call makes a branch in the same place first.
#[test]
fn a_branch_that_comes_second_leaves_no_reference() {
    let world = Arc::new(World::new());
    let mut small = world.open("a");
    small.add(1).unwrap();
    small.upload();
    let other = world.clone();
    world.blobs("a").before_write("branches/", move || {
        other.branch("a", "b", None).unwrap();
    });
    let error = world.branch("a", "b", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(references(world.blobs("a")), 1);
    world.open("b").check(&small.records);
}
