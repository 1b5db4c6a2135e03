//! Stores that only read, and follow their writers.

use super::world::{
    Fault, Faulty, Small, bytes_of, host_of, name_of, options, poll_some, read_whole, wait,
};
use crate::{MANIFEST, Tier, TierOptions};
use core::time::Duration;
use nacre_host::memory::MemoryStore;
use nacre_host::{ErrorKind, LocalStore, Reason, Result, Uploads, WriteIf};
use nacre_log::LogReader;
use std::sync::Arc;

/// A reader of the records.
struct Follower {
    tier: Arc<Tier>,
    reader: LogReader,
    records: Vec<String>,
    /// How often it began again with a snapshot.
    began_again: usize,
}

fn lines(payload: &[u8]) -> Vec<String> {
    String::from_utf8(payload.to_vec()).unwrap().lines().map(String::from).collect()
}

impl Follower {
    fn open(blobs: &Arc<Faulty>, options: TierOptions) -> Follower {
        let host = host_of(Arc::new(MemoryStore::new()));
        let tier = wait(Tier::open_to_read(&host, blobs.clone(), options)).unwrap();
        let mut records = Vec::new();
        let mut load = |payload: &[u8]| {
            records = lines(payload);
            Ok(())
        };
        let reader = LogReader::beside(tier.clone(), &mut load).unwrap();
        let mut follower = Follower { tier, reader, records, began_again: 0 };
        follower.read_on().unwrap();
        follower
    }

    fn read_on(&mut self) -> Result<()> {
        loop {
            match self.reader.next() {
                Ok(Some((_, payload))) => self.records.extend(lines(payload)),
                Ok(None) => return Ok(()),
                Err(error) if error.reason() == Some(Reason::LogGone) => {
                    let mut records = Vec::new();
                    self.reader = self.reader.again(&mut |payload| {
                        records = lines(payload);
                        Ok(())
                    })?;
                    self.records = records;
                    self.began_again += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn refresh(&mut self) -> Result<bool> {
        let is_new = wait(self.tier.advance(self.reader.position()))?;
        self.read_on()?;
        Ok(is_new)
    }

    /// Compares it with its writer, and reads every file.
    fn check(&self, small: &Small) {
        assert_eq!(self.records, small.records);
        assert_eq!(self.reader.position(), small.log.position());
        for name in small.named() {
            let number = nacre_host::number_of_file("seg-", &name).unwrap();
            assert_eq!(self.read(number).unwrap(), bytes_of(number), "{name}");
        }
    }

    fn read(&self, number: u64) -> Result<Vec<u8>> {
        read_whole(&self.tier, number)
    }
}

fn writer(blobs: &Arc<Faulty>) -> Small {
    Small::open(&Arc::new(MemoryStore::new()), blobs, options()).unwrap()
}

#[test]
fn a_reader_has_what_its_writer_has_uploaded() {
    let blobs = Faulty::new();
    let mut small = writer(&blobs);
    small.add(1).unwrap();
    small.upload();
    let mut often = Follower::open(&blobs, options());
    let mut seldom = Follower::open(&blobs, options());
    for number in 2..=60 {
        small.add(number).unwrap();
        if number % 3 == 0 {
            small.drop(number - 1).unwrap();
        }
        if number % 7 == 0 {
            small.snapshot().unwrap();
        }
        if number % 10 == 0 {
            // Another writer goes on.
            small.upload();
            small = writer(&blobs);
        }
        assert!(!often.refresh().unwrap() || number % 10 == 0, "nothing is uploaded");
        small.upload();
        assert!(often.refresh().unwrap());
        often.check(&small);
        if number % 15 == 0 {
            assert!(seldom.refresh().unwrap());
            seldom.check(&small);
        }
        assert_eq!(often.tier.lag().position, small.log.position());
    }
    assert!(seldom.began_again >= 2, "{} times", seldom.began_again);
    let log = |name: &String| nacre_log::has_log(std::slice::from_ref(name));
    let kept = often.tier.list().unwrap().iter().filter(|name| log(name)).count();
    assert!(kept < 12, "{kept} files of the log are kept");
}

#[test]
fn a_reader_that_fails_keeps_what_it_has_and_goes_on() {
    for fault in [Fault::Refused, Fault::Lost, Fault::Stuck] {
        for after in 0..12 {
            let blobs = Faulty::new();
            let mut small = writer(&blobs);
            small.add(1).unwrap();
            small.upload();
            let impatient = TierOptions { patience: Duration::ZERO, ..options() };
            let mut follower = Follower::open(&blobs, impatient);
            let before = follower.records.clone();
            for number in 2..=9 {
                small.add(number).unwrap();
            }
            if after % 2 == 0 {
                small.snapshot().unwrap();
            }
            small.upload();
            blobs.fail(after, u64::MAX, fault);
            let position = follower.reader.position();
            let done = match fault {
                Fault::Stuck => poll_some(follower.tier.advance(position), 50),
                _ => Some(wait(follower.tier.advance(position))),
            };
            if !matches!(done, Some(Ok(_))) {
                assert_eq!(follower.records, before);
            }
            blobs.fail(0, 0, fault);
            follower.refresh().unwrap();
            follower.check(&small);
        }
    }
}

#[test]
fn a_manifest_that_is_older_changes_nothing() {
    let blobs = Faulty::new();
    let mut small = writer(&blobs);
    small.add(1).unwrap();
    small.upload();
    let old = blobs.blobs.get(MANIFEST).unwrap();
    let mut follower = Follower::open(&blobs, options());
    small.add(2).unwrap();
    small.upload();
    assert!(follower.refresh().unwrap());
    // As a cache may answer.
    blobs.blobs.put(MANIFEST, old, &WriteIf::Any).unwrap();
    assert!(!follower.refresh().unwrap());
    follower.check(&small);
}

#[test]
fn damage_and_other_databases_are_refused() {
    let blobs = Faulty::new();
    let mut small = writer(&blobs);
    small.add(1).unwrap();
    small.upload();
    let mut follower = Follower::open(&blobs, options());
    let before = follower.records.clone();
    let known = blobs.blobs.names();
    small.add(2).unwrap();
    small.upload();
    // A piece of the log that is replaced by another one of the same length.
    let is_new_log = |name: &&String| !known.contains(*name) && name.contains("log-");
    let names = blobs.blobs.names();
    let piece = names.iter().find(is_new_log).unwrap();
    let right = blobs.blobs.get(piece).unwrap();
    let mut wrong = right.to_vec();
    *wrong.last_mut().unwrap() ^= 1;
    blobs.blobs.put(piece, wrong.into(), &WriteIf::Any).unwrap();
    let error = follower.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(follower.records, before);
    blobs.blobs.put(piece, right, &WriteIf::Any).unwrap();
    assert!(follower.refresh().unwrap());
    follower.check(&small);
    let other = Faulty::new();
    let mut another = writer(&other);
    for number in 1..=9 {
        another.add(number).unwrap();
        another.upload();
    }
    let foreign = other.blobs.get(MANIFEST).unwrap();
    blobs.blobs.put(MANIFEST, foreign, &WriteIf::Any).unwrap();
    let error = follower.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    follower.check(&small);
}

#[test]
fn a_blob_that_is_gone_is_named_as_such() {
    let blobs = Faulty::new();
    let mut small = writer(&blobs);
    small.add(1).unwrap();
    small.add(2).unwrap();
    small.upload();
    let follower = Follower::open(&blobs, TierOptions { retention: Duration::ZERO, ..options() });
    for name in blobs.blobs.names().iter().filter(|name| name.ends_with(&name_of(1))) {
        blobs.blobs.delete(name).unwrap();
    }
    let error = follower.read(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("refresh")), "{error}");
    assert_eq!(follower.read(2).unwrap(), bytes_of(2));
}
