//! States of the past: opened to read, and restored to folders.

use super::world::{
    Faulty, Hands, Small, bytes_of, host_at, host_of, name_of, options, read_whole, wait,
};
use crate::history::AsOf;
use crate::{Tier, TierOptions, restore};
use core::time::Duration;
use nacre_host::memory::MemoryStore;
use nacre_host::{ErrorKind, Host, LocalStore, Rest, Uploads};
use nacre_testing::Random;
use std::sync::Arc;

const HOUR: Duration = Duration::from_secs(3600);

/// A database, with the position and the records after each commit.
struct World {
    clock: Arc<Hands>,
    blobs: Arc<Faulty>,
    files: Arc<MemoryStore>,
    small: Option<Small>,
    past: Vec<(u64, Vec<String>)>,
    /// Times at which everything was uploaded, and how many of the commits there were.
    times: Vec<(i64, usize)>,
    next: u64,
    /// Positions of what a process that ended had not uploaded.
    gaps: Vec<(u64, u64)>,
}

impl World {
    fn new() -> World {
        let (clock, blobs) = (Arc::new(Hands::default()), Faulty::new());
        let (files, past) = (Arc::default(), vec![(0, Vec::new())]);
        let times = Vec::new();
        let mut world =
            World { clock, blobs, files, small: None, past, times, next: 1, gaps: Vec::new() };
        world.open();
        // From here on the history is kept.
        world.small().upload();
        world
    }

    fn open(&mut self) {
        let host = Host { clock: self.clock.clone(), ..host_of(self.files.clone()) };
        self.small = Some(Small::open_at(host, &self.blobs, options()).unwrap());
    }

    fn small(&mut self) -> &mut Small {
        self.small.as_mut().unwrap()
    }

    /// A commit, an upload or part of one, a snapshot, a crash, or another machine.
    fn step(&mut self, random: &mut Random) {
        match random.below(20) {
            0..=8 => {
                let number = self.next;
                self.next += 1;
                self.small().add(number).unwrap();
                self.note();
            }
            9..=12 => {
                let named: Vec<String> = self.small().named();
                let last = named.len().saturating_sub(1);
                if let Some(name) = named.get(random.below(last as u64 + 1) as usize) {
                    let number = nacre_host::number_of_file("seg-", name).unwrap();
                    self.small().drop(number).unwrap();
                    self.note();
                }
            }
            13 | 14 => {
                for _ in 0..random.below(8) {
                    if wait(self.small().tier.step()).unwrap() != Rest::No {
                        break;
                    }
                }
            }
            15..=17 => self.upload(),
            18 => self.small().snapshot().unwrap(),
            _ => {
                if random.percent(50) {
                    // The disk is lost after everything was uploaded.
                    self.upload();
                    self.files = Arc::default();
                }
                self.small = None;
                self.open();
                let from = self.small().tier.position();
                self.upload();
                let to = self.small().tier.position();
                self.gaps.push((from, to));
            }
        }
        self.clock.pass(Duration::from_millis(700));
    }

    fn note(&mut self) {
        let (position, records) = (self.small().log.position(), self.small().records.clone());
        self.past.push((position, records));
    }

    fn upload(&mut self) {
        self.small().upload();
        self.clock.pass(Duration::from_secs(3));
        let now_us = nacre_host::Clock::wall_us(&*self.clock);
        self.times.push((now_us, self.past.len()));
    }

    fn is_in_gap(&self, position: u64) -> bool {
        self.gaps.iter().any(|(from, to)| *from < position && position < *to)
    }

    /// What the database had at a position.
    fn at(&self, position: u64) -> &[String] {
        let last = self.past.iter().rfind(|(end, _)| *end <= position);
        last.map_or(&[], |(_, records)| records)
    }

    fn read(&self, at: AsOf) -> nacre_host::Result<(u64, Vec<String>)> {
        let host = host_at(&self.clock);
        let tier = wait(Tier::open_as_of(&host, self.blobs.clone(), options(), at))?;
        assert!(!wait(tier.advance(tier.position())).unwrap(), "it goes on to no other state");
        let records = Small::records_of(&tier)?;
        for number in named(&records) {
            assert!(read_whole(&tier, number)? == bytes_of(number), "{number}");
        }
        Ok((tier.position(), records))
    }

    fn restore(&self, at: Option<AsOf>) -> nacre_host::Result<(u64, Vec<String>)> {
        let (files, none) = (Arc::new(MemoryStore::new()), Faulty::new());
        let host = Host { clock: self.clock.clone(), ..host_of(files.clone()) };
        let restored = wait(restore(&host, self.blobs.clone(), options(), at));
        if restored.is_err() {
            assert_eq!(files.list().unwrap(), Vec::<String>::new());
        }
        let position = restored?;
        // An ordinary folder: it can be uploaded elsewhere, and goes on.
        let mut small = Small::open_at(host, &none, options())?;
        let records = small.records.clone();
        small.check(&records);
        assert_eq!(small.log.position(), position);
        small.add(9_999).unwrap();
        Ok((position, records))
    }
}

/// The files that records name.
fn named(records: &[String]) -> Vec<u64> {
    let mut named: Vec<&str> = Vec::new();
    for record in records {
        match record.strip_prefix("-") {
            Some(gone) => named.retain(|name| *name != gone),
            None => named.push(record),
        }
    }
    named.iter().map(|name| nacre_host::number_of_file("seg-", name).unwrap()).collect()
}

/// Commits with snapshots, crashes and lost disks in between.
fn history(seed: u64, steps: u64) -> World {
    let mut random = Random::new(seed);
    let mut world = World::new();
    for _ in 0..steps {
        world.step(&mut random);
    }
    world.upload();
    world
}

#[test]
fn every_position_of_the_past_can_be_read_and_restored() {
    for seed in 1..=3 {
        let world = history(seed, 250);
        let end = world.past.last().unwrap().0;
        let mut random = Random::new(seed);
        let ends: Vec<u64> = world.past.iter().map(|(end, _)| *end).collect();
        let histories = world.blobs.blobs.names();
        let histories = histories.iter().filter(|name| name.contains("history-")).count();
        assert!(histories > 3, "{histories} histories");
        let mut in_gaps = 0;
        for number in 0..100 {
            let at = match number % 2 {
                0 => *random.pick(&ends),
                _ => random.below(end + 1),
            };
            if world.is_in_gap(at) {
                let error = world.read(AsOf::Position(at)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                in_gaps += 1;
                continue;
            }
            let expected = world.at(at);
            let (position, records) = world.read(AsOf::Position(at)).unwrap();
            assert!(position <= at && records == expected, "read at {at}, seed {seed}");
            let (position, records) = world.restore(Some(AsOf::Position(at))).unwrap();
            assert!(position <= at && records == expected, "restored at {at}, seed {seed}");
        }
        assert!(in_gaps < 30, "{in_gaps} of 100 positions are in gaps");
        let (position, records) = world.restore(None).unwrap();
        assert!(position == end && records == world.past.last().unwrap().1);
        let error = world.read(AsOf::Position(end + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

#[test]
fn a_time_is_that_of_the_last_upload_before_it() {
    let world = history(11, 200);
    for (at_us, commits) in &world.times {
        let (position, records) = world.read(AsOf::Time(*at_us)).unwrap();
        let expected = &world.past[*commits - 1];
        assert!(position == expected.0 && records == expected.1, "at {at_us}");
    }
    let before = world.read(AsOf::Time(0)).unwrap_err();
    assert_eq!(before.kind(), ErrorKind::NotFound, "{before}");
}

#[test]
fn a_state_that_is_not_kept_any_more_is_named_as_such() {
    let mut world = history(5, 120);
    let mut half = world.past[..world.past.len() / 2].iter().map(|(end, _)| *end);
    let middle = half.rfind(|end| !world.is_in_gap(*end)).unwrap();
    assert!(world.read(AsOf::Position(middle)).is_ok());
    let before = world.blobs.blobs.names();
    world.clock.pass(2 * HOUR);
    for number in 0..6 {
        world.small().add(500 + number).unwrap();
        world.note();
        world.small().snapshot().unwrap();
        world.upload();
        world.clock.pass(Duration::from_secs(20));
    }
    for error in [
        world.read(AsOf::Position(middle)).unwrap_err(),
        world.restore(Some(AsOf::Position(middle))).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("not kept"), "{error}");
    }
    let left = world.blobs.blobs.names();
    let old = before.iter().filter(|name| left.contains(name)).count();
    assert!(old < before.len() / 2, "{old} of {} old blobs are left", before.len());
    let end = world.past.last().unwrap();
    assert!(world.read(AsOf::Position(end.0)).unwrap().1 == end.1);
}

#[test]
fn a_history_begins_after_files_that_were_removed_before_it_was_written() {
    let mut world = World::new();
    world.small().add(1).unwrap();
    world.small().snapshot().unwrap();
    world.upload();
    let with_it = world.small().log.position();
    world.small().drop(1).unwrap();
    world.small().add(2).unwrap();
    world.upload();
    let (without, records) = (world.small().log.position(), world.small().records.clone());
    assert!(world.read(AsOf::Position(with_it)).is_ok());
    world.clock.pass(2 * HOUR);
    // This lets the file go, and removes it.
    world.small().add(3).unwrap();
    world.upload();
    let names = world.blobs.blobs.names();
    assert!(!names.iter().any(|name| name.ends_with(&name_of(1))), "{names:?}");
    // The log of both states becomes a history.
    world.small().snapshot().unwrap();
    world.upload();
    let names = world.blobs.blobs.names();
    let start = format!("history-{with_it:016x}-");
    assert!(names.iter().any(|name| name.contains(&start)), "{names:?}");
    for error in [
        world.read(AsOf::Position(with_it)).unwrap_err(),
        world.restore(Some(AsOf::Position(with_it))).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("not kept"), "{error}");
    }
    assert_eq!(world.read(AsOf::Position(without)).unwrap(), (without, records.clone()));
    assert_eq!(world.restore(Some(AsOf::Position(without))).unwrap(), (without, records));
}

#[test]
fn a_folder_with_files_is_not_restored_to() {
    let world = history(7, 20);
    let files = Arc::new(MemoryStore::new());
    files.create("mine").unwrap();
    let restored = wait(restore(&host_of(files.clone()), world.blobs.clone(), options(), None));
    assert_eq!(restored.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(files.list().unwrap(), ["mine"]);
}

#[test]
fn without_a_history_there_is_the_newest_state_only() {
    let blobs = Faulty::new();
    let none = TierOptions { history: Duration::ZERO, ..options() };
    let clock = Arc::new(Hands::default());
    let mut small = Small::open_at(host_at(&clock), &blobs, none.clone()).unwrap();
    small.add(1).unwrap();
    small.upload();
    let first = small.log.position();
    for number in 2..9 {
        small.add(number).unwrap();
    }
    small.snapshot().unwrap();
    small.upload();
    assert!(!blobs.blobs.names().iter().any(|name| name.contains("history-")));
    let open = |at| {
        let host = host_at(&clock);
        wait(Tier::open_as_of(&host, blobs.clone(), none.clone(), AsOf::Position(at)))
    };
    assert!(open(small.log.position()).is_ok());
    let error = open(first).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}
