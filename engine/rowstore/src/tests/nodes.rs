//! Real threads on one node, without the skiplist, for Miri and the thread sanitizer. Under them a
//! few rounds suffice; otherwise there are more.
#![allow(clippy::disallowed_methods)]

use crate::{Change, LockError, Node, Owner, Row, Version, Visible};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ROUNDS: u64 = if cfg!(miri) { 20 } else { 5_000 };

fn node() -> Arc<Node> {
    Arc::new(Node::new(b"k".as_slice().into(), Arc::default()))
}

fn row(number: u64) -> Row {
    number.to_be_bytes().as_slice().into()
}

fn number(row: &Row) -> u64 {
    row.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[test]
fn readers_and_writers_and_collectors_share_a_node() {
    let node = node();
    node.push_version(Version { commit: 1, content: 1, change: Change::Put(row(1)) });
    let (visible, clock) = (AtomicU64::new(1), std::sync::Mutex::new(1));
    // A reader's snapshot, which the collector must keep readable; 0 while there is none.
    let snapshot = std::sync::Mutex::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|id| {
                let (node, visible, clock) = (&node, &visible, &clock);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let owner = Owner::new(id);
                        loop {
                            match node.lock(&owner) {
                                Ok(_) => break,
                                Err(LockError::Held(blocker)) => assert_ne!(blocker.owner().id(), id),
                                Err(LockError::Dead) => panic!("there is always a version"),
                            }
                            std::thread::yield_now();
                        }
                        node.set_pending(Some(Change::Delete));
                        if round % 3 > 0 {
                            let mut last = clock.lock().unwrap();
                            *last += 1;
                            node.set_pending(Some(Change::Put(row(*last))));
                            assert!(
                                matches!(node.visible(0, Some(&owner)), Visible::Row(row) if number(&row) == *last)
                            );
                            node.commit_pending(*last);
                            visible.store(*last, Ordering::Release);
                        }
                        node.set_pending(None);
                        node.unlock();
                        owner.end();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let at = {
                    let mut snapshot = snapshot.lock().unwrap();
                    *snapshot = visible.load(Ordering::Acquire);
                    *snapshot
                };
                assert!(matches!(node.visible(at, None), Visible::Row(row) if number(&row) == at));
                *snapshot.lock().unwrap() = 0;
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let oldest = match *snapshot.lock().unwrap() {
                    0 => visible.load(Ordering::Acquire),
                    at => at,
                };
                assert!(!node.collect(oldest));
                let _ = node.blocker().map(|blocker| blocker.owner().has_ended());
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    node.collect(u64::MAX);
    let bytes = node.bytes.clone();
    assert_eq!(node.newest().map(|v| v.commit), Some(*clock.lock().unwrap()));
    assert!(bytes.load(Ordering::Relaxed) > 0);
    drop(node);
    assert_eq!(bytes.load(Ordering::Relaxed), 0, "every version was counted in and out once");
}

#[test]
fn long_chains_are_freed_without_recursion() {
    let node = node();
    let last = if cfg!(miri) { 200 } else { 300_000 };
    for commit in 1..=last {
        node.push_version(Version { commit, content: commit, change: Change::Put(row(commit)) });
    }
    assert!(matches!(node.visible(1, None), Visible::Row(row) if number(&row) == 1));
    let bytes = node.bytes.clone();
    drop(node);
    assert_eq!(bytes.load(Ordering::Relaxed), 0);
}
