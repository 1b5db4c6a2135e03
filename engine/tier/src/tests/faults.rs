//! Calls of the blob store that fail, whose answers are lost, or that are given up, at every point.

use super::world::{Fault, Faulty, Small, options, poll_some, wait};
use crate::{MANIFEST, TierOptions, describe};
use nacre_host::memory::MemoryStore;
use nacre_host::{Rest, Result, Uploads};
use std::sync::Arc;

fn impatient() -> TierOptions {
    TierOptions { patience: core::time::Duration::from_millis(1), ..options() }
}

/// Commits and uploads; opens it elsewhere, commits and uploads again.
fn work(blobs: &Arc<Faulty>) -> Result<Vec<String>> {
    let mut small = Small::open(&Arc::new(MemoryStore::new()), blobs, options())?;
    for number in 1..=4 {
        small.add(number)?;
        wait(small.tier.finish())?;
    }
    small.drop(2)?;
    small.snapshot()?;
    wait(small.tier.finish())?;
    let mut small = Small::open(&Arc::new(MemoryStore::new()), blobs, options())?;
    small.add(5)?;
    wait(small.tier.finish())?;
    Ok(small.records.clone())
}

#[test]
fn a_failed_call_is_made_again_wherever_it_is() {
    let whole = Faulty::new();
    let records = work(&whole).unwrap();
    for fault in [Fault::Refused, Fault::Lost] {
        for call in 0..whole.calls() {
            for count in [1, 2] {
                let blobs = Faulty::new();
                blobs.fail(call, count, fault);
                let done = work(&blobs).unwrap_or_else(|error| panic!("{fault:?} {call}: {error}"));
                assert_eq!(done, records);
                let again = Small::open(&Arc::new(MemoryStore::new()), &blobs, options()).unwrap();
                again.check(&records);
                for name in &describe(&blobs.blobs.get(MANIFEST).unwrap()).unwrap()[1..] {
                    assert!(blobs.blobs.get(name).is_some(), "{name} is a blob");
                }
            }
        }
    }
}

#[test]
fn a_step_can_be_given_up_at_any_call() {
    let blobs = Faulty::new();
    let mut small = Small::open(&Arc::new(MemoryStore::new()), &blobs, options()).unwrap();
    for number in 1..=6 {
        small.add(number).unwrap();
        // There are three calls: for the segment, the log, and the manifest.
        blobs.fail(number / 2 % 3, 1, Fault::Stuck);
        while let Some(rest) = poll_some(small.tier.step(), 3) {
            assert_eq!(rest.unwrap(), Rest::No, "it gets stuck first");
        }
        small.upload();
        assert_eq!(small.tier.position(), small.log.position());
    }
    let records = small.records.clone();
    Small::open(&Arc::new(MemoryStore::new()), &blobs, options()).unwrap().check(&records);
}

#[test]
fn an_attachment_that_stops_anywhere_is_begun_again() {
    let blobs = Faulty::new();
    let mut small = Small::open(&Arc::new(MemoryStore::new()), &blobs, options()).unwrap();
    (1..=4).for_each(|number| small.add(number).unwrap());
    small.snapshot().unwrap();
    small.add(5).unwrap();
    small.upload();
    let records = small.records.clone();
    let files = Arc::new(MemoryStore::new());
    for call in 0.. {
        let before = blobs.calls();
        blobs.fail(call, u64::MAX, Fault::Refused);
        let opened = Small::open(&files, &blobs, impatient());
        let ended = blobs.calls() - before;
        blobs.fail(0, 0, Fault::Refused);
        if let Ok(opened) = opened {
            assert!(ended <= call, "it needed {ended} calls");
            opened.check(&records);
            assert!(call > 3, "it reads the manifest, the snapshot and the log");
            break;
        }
    }
    Small::open(&files, &blobs, options()).unwrap().check(&records);
}
