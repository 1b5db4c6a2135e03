//! The contract of blob stores on a real S3 server, with and without a network that misbehaves.

use crate::support::gateway::{BUCKET, Gateway};
use crate::support::proxy::{self, Trouble};
use crate::support::{open, options, wait};
use nacre_blobs::{BlobOptions, Credential, Credentials, EncryptionKey};
use nacre_contract_tests::{check_blob_store, check_blob_times};
use nacre_host::{BlobStore, ErrorKind, WriteIf};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns two handles of a new prefix each time.
fn prefixes(options: &BlobOptions) -> impl Fn() -> (Arc<dyn BlobStore>, Arc<dyn BlobStore>) {
    let number = Cell::new(0);
    move || {
        number.set(number.get() + 1);
        let is_sealed = options.encryption_key.is_some();
        let url = format!("s3://{BUCKET}/contract/{is_sealed}/{}", number.get());
        (open(&url, options), open(&url, options))
    }
}

#[test]
fn a_real_server_keeps_the_contract() {
    let Some(gateway) = Gateway::start() else { return };
    let options = options(&gateway.endpoint());
    check_blob_store(prefixes(&options));
    let encryption_key = Some(EncryptionKey::new(&[7; 32]));
    check_blob_store(prefixes(&BlobOptions { encryption_key, ..options.clone() }));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
    check_blob_times(&*open(&format!("s3://{BUCKET}"), &options), now);
}

/// Nearly random, and the same in each run.
fn chance(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[test]
fn a_server_behind_a_bad_network_keeps_the_contract() {
    let Some(gateway) = Gateway::start() else { return };
    let troubles = Arc::new(AtomicUsize::new(0));
    let counted = troubles.clone();
    let proxy = proxy::start(&gateway.address, move |request| {
        let chance = chance(request.number);
        if !chance.is_multiple_of(25) {
            return None;
        }
        counted.fetch_add(1, Ordering::Relaxed);
        Some(Trouble::ALL[chance as usize / 25 % Trouble::ALL.len()])
    });
    check_blob_store(prefixes(&options(&proxy.endpoint())));
    let troubles = troubles.load(Ordering::Relaxed);
    assert!(troubles > 50, "only {troubles} requests of {} had troubles", proxy.requests().len());
}

/// Each kind of trouble, at the first request of each kind of call.
#[test]
fn every_call_survives_every_trouble() {
    let Some(gateway) = Gateway::start() else { return };
    for trouble in Trouble::ALL {
        let proxy = proxy::start(&gateway.address, move |request| {
            // The first request of a call, and the one that repeats it.
            (request.number.is_multiple_of(3)).then_some(trouble)
        });
        let url = format!("s3://{BUCKET}/{trouble:?}");
        let store = open(&url, &options(&proxy.endpoint()));
        let tag = wait(store.write("a", b"one"[..].into(), WriteIf::Absent))
            .unwrap_or_else(|e| panic!("{trouble:?}: {e}"));
        let tag = wait(store.write("a", b"two"[..].into(), WriteIf::Tagged(tag))).unwrap();
        assert_eq!(wait(store.read_all("a")).unwrap(), (b"two".to_vec(), tag), "{trouble:?}");
        assert_eq!(wait(store.read("a", 1..3)).unwrap(), b"wo", "{trouble:?}");
        wait(store.write("b", b"x"[..].into(), WriteIf::Any)).unwrap();
        let names: Vec<_> =
            wait(store.list("")).unwrap().into_iter().map(|info| info.name).collect();
        assert_eq!(names, ["a", "b"], "{trouble:?}");
        wait(store.remove("a")).unwrap();
        assert_eq!(wait(store.read("a", 0..1)).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

/// Writers whose answers are often lost append numbers to a list. Each knows of each of its numbers
/// whether it is there, or that it does not know.
#[test]
fn what_writers_are_told_is_what_happened() {
    let Some(gateway) = Gateway::start() else { return };
    let proxy = proxy::start(&gateway.address, |request| {
        let chance = chance(request.number);
        match (&*request.method, chance % 5) {
            ("PUT", 0) => Some(Trouble::NoAnswer),
            ("PUT", 1) => Some(Trouble::FailsLate),
            ("PUT", 2) => Some(Trouble::NoRequest),
            _ => None,
        }
    });
    let url = format!("s3://{BUCKET}/told");
    let store = open(&url, &options(&proxy.endpoint()));
    wait(store.write("list", b""[..].into(), WriteIf::Any)).unwrap();
    let append = |number: u8| {
        let (mut content, tag) = wait(store.read_all("list")).unwrap();
        content.push(number);
        let written = wait(store.write("list", content.into(), WriteIf::Tagged(tag)));
        (number, written.map(drop).map_err(|error| error.kind()))
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..3u8)
            .map(|writer| {
                scope.spawn(move || (0..15u8).map(|i| append(writer * 15 + i)).collect::<Vec<_>>())
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let list = wait(store.read_all("list")).unwrap().0;
    let there: BTreeSet<u8> = list.iter().copied().collect();
    assert_eq!(there.len(), list.len(), "a number was written twice");
    let mut acknowledged = 0;
    for (number, outcome) in outcomes {
        match outcome {
            Ok(()) => {
                acknowledged += 1;
                assert!(there.contains(&number), "{number} was acknowledged and is lost");
            }
            Err(ErrorKind::Conflict) => {
                assert!(!there.contains(&number), "{number} was refused and is there");
            }
            Err(kind) => assert_eq!(kind, ErrorKind::Unavailable),
        }
    }
    assert!(acknowledged > 5, "only {acknowledged} writes were acknowledged");
}

#[test]
fn wrong_credentials_and_buckets_are_named() {
    let Some(gateway) = Gateway::start() else { return };
    let key = |id: &str, secret: &str| {
        let (id, secret) = (id.to_string(), secret.to_string());
        Credentials::Fixed(Credential::Key { id, secret, session_token: None })
    };
    for credentials in [key("tester", "wrong"), key("stranger", "x"), Credentials::Anonymous] {
        let options = BlobOptions { credentials, ..options(&gateway.endpoint()) };
        let store = open(&format!("s3://{BUCKET}/x"), &options);
        for error in [
            wait(store.write("a", b"x"[..].into(), WriteIf::Any)).unwrap_err(),
            wait(store.read("a", 0..1)).unwrap_err(),
            wait(store.list("")).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.hint().is_some(), "{error:?}");
        }
    }
    let store = open("s3://no-such-bucket/x", &options(&gateway.endpoint()));
    for error in [
        wait(store.write("a", b"x"[..].into(), WriteIf::Absent)).unwrap_err(),
        wait(store.read("a", 0..1)).unwrap_err(),
        wait(store.read_all("a")).unwrap_err(),
        wait(store.list("")).unwrap_err(),
        wait(store.remove("a")).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.hint().unwrap_or_default().contains("bucket"), "{error:?}");
    }
}

#[test]
fn a_server_that_goes_away_comes_back() {
    let Some(gateway) = Gateway::start() else { return };
    let is_away = Arc::new(AtomicUsize::new(0));
    let asked = is_away.clone();
    let proxy = proxy::start(&gateway.address, move |_| {
        (asked.load(Ordering::Relaxed) > 0).then_some(Trouble::NoRequest)
    });
    let retry_for = Duration::from_millis(200);
    let options = BlobOptions { retry_for, ..options(&proxy.endpoint()) };
    let store = open(&format!("s3://{BUCKET}/away"), &options);
    wait(store.write("a", b"x"[..].into(), WriteIf::Any)).unwrap();
    is_away.store(1, Ordering::Relaxed);
    assert_eq!(wait(store.read("a", 0..1)).unwrap_err().kind(), ErrorKind::Unavailable);
    is_away.store(0, Ordering::Relaxed);
    assert_eq!(wait(store.read("a", 0..1)).unwrap(), b"x");
}

#[test]
fn a_server_is_known_by_its_certificate() {
    let Some((gateway, pem)) = Gateway::start_with_tls() else { return };
    let url = format!("s3://{BUCKET}/tls");
    let trusting = BlobOptions { authorities: Some(pem), ..options(&gateway.endpoint()) };
    let store = open(&url, &trusting);
    let bytes: Arc<[u8]> = (0..3_000_000).map(|i| (i % 251) as u8).collect();
    wait(store.write("a", bytes.clone(), WriteIf::Absent)).unwrap();
    assert!(wait(store.read("a", 0..3_000_000)).unwrap() == bytes[..]);
    // The system does not know it.
    let retry_for = Duration::ZERO;
    let store = open(&url, &BlobOptions { retry_for, ..options(&gateway.endpoint()) });
    let error = wait(store.read("a", 0..1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.hint().unwrap_or_default().contains("certificates"), "{error:?}");
}
