//! Leases of databases that only read, beside a writer that removes what it has dropped.

use super::world::{
    Fault, Faulty, Hands, Small, bytes_of, host_at, name_of, options, read_whole, wait,
};
use crate::{MANIFEST, Tier, TierOptions};
use core::time::Duration;
use nacre_host::{BlobStore, ErrorKind, LeaseState, Reason, Rest, Uploads};
use std::sync::Arc;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn tiers() -> TierOptions {
    TierOptions { retention: MINUTE, history: MINUTE, lease: MINUTE, ..options() }
}

/// A writer with ten files, and a reader of them.
fn world() -> (Arc<Hands>, Arc<Faulty>, Small, Arc<Tier>) {
    let (clock, blobs) = (Arc::new(Hands::default()), Faulty::new());
    let mut small = Small::open_at(host_at(&clock), &blobs, tiers()).unwrap();
    for number in 1..=10 {
        small.add(number).unwrap();
    }
    small.upload();
    let reader = wait(Tier::open_to_read(&host_at(&clock), blobs.clone(), tiers())).unwrap();
    (clock, blobs, small, reader)
}

/// Takes the steps of a reader that are due.
fn renew(clock: &Hands, reader: &Tier) -> LeaseState {
    for _ in 0..20 {
        match wait(reader.step()).unwrap() {
            Rest::For(time) if time < MINUTE / 5 => clock.pass(time),
            Rest::For(_) | Rest::UntilWoken => break,
            Rest::No => {}
        }
    }
    reader.lag().lease
}

/// A commit, its upload, and what is due then.
fn go_on(small: &mut Small, number: u64) {
    small.add(number).unwrap();
    small.upload();
}

fn is_there(blobs: &Faulty, number: u64) -> bool {
    blobs.blobs.names().iter().any(|name| name.ends_with(&name_of(number)))
}

fn leases(blobs: &Faulty) -> usize {
    blobs.blobs.names().iter().filter(|name| name.starts_with("leases/")).count()
}

#[test]
fn what_a_reader_shows_stays_as_long_as_it_renews_its_lease() {
    let (clock, blobs, mut small, reader) = world();
    assert_eq!(reader.lag().lease, LeaseState::None);
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    for number in 1..=9 {
        small.drop(number).unwrap();
    }
    small.snapshot().unwrap();
    for number in 20..40 {
        clock.pass(MINUTE / 3);
        assert_eq!(renew(&clock, &reader), LeaseState::Held, "{number}");
        go_on(&mut small, number);
    }
    assert_eq!(leases(&blobs), 1);
    for number in 1..=9 {
        assert_eq!(read_whole(&reader, number).unwrap(), bytes_of(number));
    }
    // It goes on, and reads nothing of before.
    wait(reader.advance(reader.position())).unwrap();
    reader.note_reads(reader.position());
    clock.pass(MINUTE / 3);
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    clock.pass(MINUTE);
    go_on(&mut small, 40);
    assert!((1..=9).all(|number| !is_there(&blobs, number)), "{:?}", blobs.blobs.names());
    wait(reader.close()).unwrap();
    assert_eq!(leases(&blobs), 0);
}

#[test]
fn a_lease_that_is_not_renewed_is_lost_and_taken_again() {
    let (clock, blobs, mut small, reader) = world();
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    small.drop(1).unwrap();
    small.upload();
    clock.pass(2 * MINUTE);
    assert_eq!(reader.lag().lease, LeaseState::Lost);
    go_on(&mut small, 20);
    assert!(read_whole(&reader, 1).unwrap() == bytes_of(1), "clocks may be apart");
    clock.pass(HOUR);
    go_on(&mut small, 21);
    assert!(!is_there(&blobs, 1) && leases(&blobs) == 0, "{:?}", blobs.blobs.names());
    // What the reader has read before stays in its cache; this one reads it first.
    let late = wait(Tier::open_to_read(&host_at(&clock), blobs.clone(), tiers())).unwrap();
    assert!(late.position() > reader.position());
    assert_eq!(renew(&clock, &reader), LeaseState::Lost, "what it shows is gone");
    wait(reader.advance(reader.position())).unwrap();
    reader.note_reads(reader.position());
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    assert!(read_whole(&reader, 21).unwrap() == bytes_of(21));
}

#[test]
fn a_read_of_what_was_removed_after_the_lease_names_it() {
    let (clock, _blobs, mut small, reader) = world();
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    small.drop(1).unwrap();
    small.upload();
    clock.pass(HOUR);
    go_on(&mut small, 20);
    let error = read_whole(&reader, 1).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, Some(Reason::LeaseLost)));
    assert!(error.message().starts_with("lease lost"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("refresh")), "{error}");
}

#[test]
fn a_reader_without_the_right_to_write_goes_on_with_the_retention() {
    let (clock, blobs, mut small, reader) = world();
    blobs.refuse("leases/");
    assert_eq!(renew(&clock, &reader), LeaseState::Refused);
    small.drop(1).unwrap();
    small.upload();
    assert!(read_whole(&reader, 1).unwrap() == bytes_of(1));
    clock.pass(HOUR);
    go_on(&mut small, 20);
    small.drop(2).unwrap();
    small.upload();
    clock.pass(HOUR);
    go_on(&mut small, 21);
    let error = read_whole(&reader, 2).unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, None), "{error}");
}

/// Between the reader's look at the manifest and its lease, blobs are removed.
#[test]
fn a_lease_that_comes_too_late_does_not_hold() {
    let (clock, blobs, mut small, reader) = world();
    small.drop(1).unwrap();
    small.upload();
    clock.pass(HOUR);
    go_on(&mut small, 20);
    assert!(!is_there(&blobs, 1));
    assert_eq!(renew(&clock, &reader), LeaseState::Lost);
    wait(reader.advance(reader.position())).unwrap();
    reader.note_reads(reader.position());
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
}

/// Answers that are lost, and calls that fail, in every call of a renewal and of the look for leases.
#[test]
fn failures_of_the_blob_store_lose_no_lease() {
    for fault in [Fault::Refused, Fault::Lost] {
        for after in 0..8 {
            let (clock, blobs, mut small, reader) = world();
            assert_eq!(renew(&clock, &reader), LeaseState::Held);
            small.drop(1).unwrap();
            small.upload();
            for _ in 0..9 {
                clock.pass(MINUTE / 3);
                blobs.fail(after, 2, fault);
                assert_eq!(renew(&clock, &reader), LeaseState::Held, "{fault:?} after {after}");
                small.add(20 + small.records.len() as u64).unwrap();
                while wait(small.tier.step()).unwrap() != Rest::UntilWoken {
                    clock.pass(Duration::from_millis(500));
                }
            }
            blobs.fail(0, 0, fault);
            assert!(read_whole(&reader, 1).unwrap() == bytes_of(1), "{fault:?} after {after}");
            assert!(blobs.blobs.get(MANIFEST).is_some());
        }
    }
}

/// The monotonic clock of the machine stands still while it sleeps; the writer's goes on.
#[test]
fn a_machine_that_has_slept_has_lost_its_lease() {
    let (clock, _blobs, mut small, reader) = world();
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    small.drop(1).unwrap();
    small.upload();
    clock.sleep(2 * HOUR);
    go_on(&mut small, 20);
    clock.pass(MINUTE / 4);
    go_on(&mut small, 21);
    assert_eq!(reader.lag().lease, LeaseState::Lost);
    let error = read_whole(&reader, 1).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::LeaseLost), "{error}");
}

/// A reader whose database was removed writes a lease once more.
#[test]
fn a_lease_alone_does_not_keep_a_place_from_a_new_database() {
    let (clock, blobs, small, reader) = world();
    assert_eq!(renew(&clock, &reader), LeaseState::Held);
    drop(small);
    for name in blobs.blobs.names() {
        wait(blobs.remove(&name)).unwrap();
    }
    clock.pass(MINUTE);
    assert_ne!(renew(&clock, &reader), LeaseState::Held);
    assert_eq!((leases(&blobs), blobs.blobs.names().len()), (1, 1));
    let mut small = Small::open_at(host_at(&clock), &blobs, tiers()).unwrap();
    clock.pass(HOUR);
    go_on(&mut small, 1);
    small.drop(1).unwrap();
    go_on(&mut small, 2);
    clock.pass(HOUR);
    go_on(&mut small, 3);
    assert!(is_there(&blobs, 2) && !is_there(&blobs, 1), "{:?}", blobs.blobs.names());
    assert_eq!(leases(&blobs), 0);
}
