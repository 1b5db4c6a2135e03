//! Damage between files, one kind after the other: a newest chunk of the log that is missing, cut or
//! emptied, which opening the database reports as `corrupt`, and files that were exchanged, which
//! the first read of one and `check` report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_fuzz::log::base;
use nacre_fuzz::subject::{Subject, bytes, copy, options, put};
use nacredb::host::LocalStore;
use nacredb::host::memory::MemoryStore;
use nacredb::{ErrorKind, Options};
use std::sync::Arc;

fn settings() -> Options {
    Options { segment_rows: 2, partitions: 2, ..options() }
}

/// The first read of an exchanged file tells that it is another one.
#[track_caller]
fn refuse_to_read(store: Arc<MemoryStore>, name: &str) {
    let subject = Subject::open(store, settings()).unwrap();
    let findings = subject.db.check().unwrap();
    assert!(findings.iter().any(|finding| finding.contains(name)), "{findings:?} lack {name}");
}

#[track_caller]
fn refuse(store: Arc<MemoryStore>, name: &str) {
    match Subject::open(store, settings()) {
        Ok(_) => panic!("{name}: the database opens"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
            assert!(error.message().contains(name), "{error} does not name {name}");
        }
    }
}

/// A copy of a base, opened once so that files without a name are removed, and closed.
fn closed(snapshots: bool) -> Arc<MemoryStore> {
    let store = copy(&base(snapshots).store);
    let subject = Subject::open(store.clone(), settings()).unwrap();
    nacre_native::block_on(subject.db.close()).unwrap();
    store
}

fn names(store: &MemoryStore, prefixes: &[&str]) -> Vec<String> {
    let mut names = store.list().unwrap();
    names.retain(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    names.sort();
    names
}

#[test]
fn a_file_that_is_exchanged_with_another_is_told() {
    for snapshots in [false, true] {
        let store = closed(snapshots);
        let names = names(&store, &["seg-", "idx-", "hsh-"]);
        assert!(names.len() > 10, "{names:?}");
        for (at, place) in names.iter().enumerate() {
            // Its neighbours, and one of every few others.
            for other in names.iter().skip(at % 3).step_by(3).filter(|other| *other != place) {
                let exchanged = copy(&store);
                put(&exchanged, place, &bytes(&store, other));
                refuse_to_read(exchanged, place);
            }
        }
    }
}

#[test]
fn a_newest_chunk_that_is_missing_or_cut_is_told() {
    for snapshots in [false, true] {
        let store = closed(snapshots);
        let newest = names(&store, &["log-"]).pop().unwrap();
        let missing = copy(&store);
        missing.remove(&newest).unwrap();
        // Without a snapshot nothing is left of the log.
        refuse(missing, if snapshots { &newest } else { "no log or snapshot names them" });
        let whole = bytes(&store, &newest);
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let last = used.saturating_sub(200);
        for cut in (0..last).step_by(used / 50 + 1).chain(last..used) {
            let damaged = copy(&store);
            put(&damaged, &newest, &whole[..cut]);
            refuse(damaged, &newest);
        }
    }
}

#[test]
fn a_loss_that_is_accepted_leaves_a_sound_database() {
    let store = closed(false);
    let newest = names(&store, &["log-"]).pop().unwrap();
    let whole = bytes(&store, &newest);
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in (64..used).step_by(used / 30 + 1) {
        let damaged = copy(&store);
        put(&damaged, &newest, &whole[..cut]);
        let accepting = Options { accept_loss: true, ..settings() };
        let subject = match Subject::open(damaged.clone(), accepting) {
            Ok(subject) => subject,
            // A segment of a table may be gone that the log dropped later.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "cut at {cut}: {error}");
                assert!(error.message().contains("is missing"), "cut at {cut}: {error}");
                continue;
            }
        };
        assert_eq!(subject.db.losses().len(), 1, "cut at {cut}: {:?}", subject.db.losses());
        subject.check();
        nacre_native::block_on(subject.db.close()).unwrap();
        let subject = Subject::open(damaged, settings()).unwrap();
        assert!(subject.db.losses().is_empty());
        subject.check();
    }
}
