//! Blobs in memory keep the contract, and the store that misbehaves does so as it says.

use nacre_contract_tests::{check_blob_store, check_blob_times};
use nacre_host::{BlobStore, Clock, ErrorKind, Result, Tag, WriteIf};
use nacre_testing::{BlobChances, BlobFault, FaultBlobs, Fixed, MemoryBlobs};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn stores(seed: u64) -> (Arc<MemoryBlobs>, Arc<FaultBlobs>) {
    let clock: Arc<dyn Clock> = Arc::new(Fixed::default());
    let blobs = MemoryBlobs::new(clock.clone());
    (blobs.clone(), FaultBlobs::new(blobs, clock, seed))
}

/// Polls until the answer is there, as the clock advances with each look.
fn wait<T>(answer: impl Future<Output = Result<T>>) -> Result<T> {
    let mut answer = std::pin::pin!(answer);
    loop {
        let outcome = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(outcome) = outcome {
            return outcome;
        }
    }
}

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

#[test]
fn blobs_in_memory_keep_the_contract() {
    check_blob_store(|| {
        let (blobs, _) = stores(1);
        (blobs.clone(), blobs)
    });
    check_blob_times(&*stores(1).0, Fixed::default().wall_us());
}

#[test]
fn no_blob_has_the_name_of_a_folder() {
    let (blobs, _) = stores(1);
    blobs.put("a/b", bytes("x"), &WriteIf::Any).unwrap();
    for name in ["a", "a/b/c"] {
        let error = blobs.put(name, bytes("x"), &WriteIf::Any).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{name}");
    }
    blobs.put("ab", bytes("x"), &WriteIf::Any).unwrap();
    assert_eq!(blobs.names(), ["a/b", "ab"]);
}

#[test]
fn a_store_without_chances_keeps_the_contract() {
    check_blob_store(|| {
        let (_, faults) = stores(1);
        faults.set(BlobChances { delay_ns: 5_000, ..BlobChances::default() });
        (faults.clone(), faults)
    });
}

#[test]
fn a_write_that_fails_has_taken_effect_or_not_or_does_so_later() {
    let (blobs, faults) = stores(1);
    for (call, fault) in BlobFault::ALL.into_iter().enumerate() {
        faults.fail_call(call as u64, fault);
        let name = format!("{fault:?}");
        let error = wait(faults.write(&name, bytes("x"), WriteIf::Absent)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}");
        assert_eq!(blobs.get(&name).is_some(), fault == BlobFault::Lost, "{fault:?}");
    }
    faults.settle();
    assert_eq!(blobs.names(), ["Late", "Lost"]);
    assert_eq!(faults.faults(), 5);
}

#[test]
fn a_late_write_keeps_its_condition() {
    let (blobs, faults) = stores(1);
    faults.fail_call(0, BlobFault::Late);
    wait(faults.write("a", bytes("late"), WriteIf::Absent)).unwrap_err();
    blobs.put("a", bytes("first"), &WriteIf::Any).unwrap();
    // It takes effect before this call, and is refused.
    assert_eq!(wait(faults.read_all("a")).unwrap().0, b"first");
    assert_eq!(blobs.get("a").as_deref(), Some(&b"first"[..]));
}

#[test]
fn answers_of_reads_are_too_short_or_wrong_but_what_is_stored_is_right() {
    let (blobs, faults) = stores(1);
    blobs.put("a", bytes("content"), &WriteIf::Any).unwrap();
    faults.fail_call(0, BlobFault::Short);
    faults.fail_call(1, BlobFault::Wrong);
    assert_eq!(wait(faults.read("a", 0..7)).unwrap_err().kind(), ErrorKind::Corrupt);
    let wrong = wait(faults.read("a", 0..7)).unwrap();
    assert_eq!(wrong.iter().zip(b"content").filter(|(a, b)| a != b).count(), 1);
    assert_eq!(wait(faults.read("a", 0..7)).unwrap(), b"content");
}

#[test]
fn a_store_that_is_away_refuses_everything_until_it_is_back() {
    let (blobs, faults) = stores(1);
    blobs.put("a", bytes("x"), &WriteIf::Any).unwrap();
    faults.set_away(true);
    for _ in 0..3 {
        assert_eq!(wait(faults.list("")).unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(wait(faults.remove("a")).unwrap_err().kind(), ErrorKind::Unavailable);
    }
    faults.set_away(false);
    assert_eq!(wait(faults.list("")).unwrap().len(), 1);
}

#[test]
fn a_call_that_is_given_up_before_its_effect_has_none() {
    let (blobs, faults) = stores(3);
    faults.set(BlobChances { delay_ns: 1_000_000, ..BlobChances::default() });
    for call in 0..20 {
        let name = format!("a{call}");
        let mut write = faults.write(&name, bytes("x"), WriteIf::Any);
        assert!(write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(write);
        assert_eq!(blobs.get(&name), None);
    }
}

/// The same calls to the same seed have the same outcomes; other seeds have others, and every fault
/// comes.
#[test]
fn faults_follow_from_the_seed() {
    let course = |seed| {
        let (blobs, faults) = stores(seed);
        faults.set(BlobChances {
            faults: 30,
            outages: 20,
            outage_calls: 10,
            delay_ns: 3_000,
            late_calls: 5,
        });
        let mut outcomes = Vec::new();
        let mut tag: Option<Tag> = None;
        for step in 0..400 {
            let when = tag.clone().map_or(WriteIf::Absent, WriteIf::Tagged);
            let written = wait(faults.write("a", bytes(&format!("{step}")), when));
            let read = wait(faults.read_all("a"));
            tag = read.as_ref().ok().map(|(_, tag)| tag.clone());
            outcomes.push((written.map_err(|e| e.kind()), read.map_err(|e| e.kind())));
        }
        (outcomes, blobs.get("a"), faults.faults())
    };
    assert!(course(1) == course(1));
    let (outcomes, _, faulty) = course(2);
    assert!(outcomes != course(1).0);
    assert!(faulty > 200, "{faulty} of 800 calls");
    for kind in [ErrorKind::Unavailable, ErrorKind::Conflict] {
        assert!(outcomes.iter().any(|(written, _)| *written == Err(kind)), "{kind:?}");
    }
    for kind in [ErrorKind::Unavailable, ErrorKind::Corrupt] {
        assert!(outcomes.iter().any(|(_, read)| read.as_ref().err() == Some(&kind)), "{kind:?}");
    }
}
