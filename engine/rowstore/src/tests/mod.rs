//! Visibility, locks and garbage collection, one behaviour per test.

mod nodes;

use super::*;
use nacre_types::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn row(text: &str) -> Row {
    text.as_bytes().into()
}

fn seen(node: &Node, at: Timestamp, reader: Option<&Arc<Owner>>) -> String {
    match node.visible(at, reader) {
        Visible::Row(row) => String::from_utf8_lossy(&row).into_owned(),
        Visible::Deleted => "deleted".into(),
        Visible::Elsewhere => "elsewhere".into(),
    }
}

#[test]
fn readers_see_the_version_of_their_time() {
    let store = Rowstore::new();
    let node = store.get_or_insert(b"k");
    let owner = Owner::new(1);
    assert!(node.lock(&owner).is_ok());
    node.set_pending(Some(Change::Put(row("a"))));
    assert_eq!(seen(&node, 100, None), "elsewhere");
    assert_eq!(seen(&node, 0, Some(&owner)), "a");
    node.commit_pending(5);
    node.unlock();
    assert_eq!(seen(&node, 4, None), "elsewhere");
    assert_eq!(seen(&node, 5, None), "a");
    node.push_version(Version { commit: 7, content: 7, change: Change::Delete });
    assert_eq!(seen(&node, 6, None), "a");
    assert_eq!(seen(&node, 7, None), "deleted");
}

#[test]
fn a_lock_has_one_owner() {
    let store = Rowstore::new();
    let node = store.get_or_insert(b"k");
    let (a, b) = (Owner::new(1), Owner::new(2));
    assert!(matches!(node.lock(&a), Ok(true)));
    assert!(matches!(node.lock(&a), Ok(false)));
    assert!(matches!(node.lock(&b), Err(LockError::Held(blocker)) if blocker.owner().id() == 1));
    node.unlock();
    assert!(matches!(node.lock(&b), Ok(true)));
}

#[test]
fn moving_keeps_the_content_time() {
    let store = Rowstore::new();
    let node = store.get_or_insert(b"k");
    node.push_version(Version { commit: 3, content: 3, change: Change::Put(row("a")) });
    assert!(!node.flush(9, 2), "another version than expected");
    assert!(node.flush(9, 3));
    assert_eq!(seen(&node, 8, None), "a");
    assert_eq!(seen(&node, 9, None), "elsewhere");
    node.push_moved_in(12, 0, row("a"));
    assert_eq!(node.newest().map(|v| (v.commit, v.content)), Some((12, 3)));
    let owner = Owner::new(1);
    assert!(node.lock(&owner).is_ok());
    assert!(!node.flush(13, 12), "locked rows are not flushed");
}

#[test]
fn garbage_is_what_no_snapshot_sees() {
    let store = Rowstore::new();
    let node = store.get_or_insert(b"k");
    for commit in [2, 4, 6] {
        node.push_version(Version {
            commit,
            content: commit,
            change: Change::Put(row("0123456789")),
        });
    }
    let before = store.bytes();
    store.collect(&node, 5);
    assert_eq!(
        store.bytes(),
        before - (10 + chain::SHARED_HEADER_BYTES + size_of::<chain::Record>())
    );
    assert_eq!(seen(&node, 5, None), "0123456789");
    node.push_version(Version { commit: 8, content: 8, change: Change::Delete });
    store.collect(&node, 7);
    assert_eq!(store.len(), 1, "a snapshot at 7 still sees the row");
    store.collect(&node, 8);
    assert_eq!((store.len(), store.bytes()), (0, 0));
    assert!(matches!(node.lock(&Owner::new(1)), Err(LockError::Dead)));
    assert!(store.get_or_insert(b"k").lock(&Owner::new(1)).is_ok());
}

#[test]
fn a_locked_node_is_not_unlinked() {
    let store = Rowstore::new();
    let node = store.get_or_insert(b"k");
    assert!(node.lock(&Owner::new(1)).is_ok());
    store.collect(&node, 100);
    assert_eq!(store.len(), 1);
    node.unlock();
    store.collect(&node, 100);
    assert_eq!(store.len(), 0);
}

#[test]
fn cycles_of_waiting_are_found() {
    let (a, b, c) = (Owner::new(1), Owner::new(2), Owner::new(3));
    let blocker = |owner: &Arc<Owner>| Blocker::new(owner.clone());
    let first = a.wait_for(&blocker(&b));
    let second = b.wait_for(&blocker(&c));
    assert!(first.is_some() && second.is_some());
    assert!(c.wait_for(&blocker(&a)).is_none());
    c.gave_back();
    assert!(c.wait_for(&blocker(&a)).is_some(), "the woken waiter is about to check again");
    let second = (second, b.wait_for(&blocker(&c)));
    assert!(c.wait_for(&blocker(&a)).is_none());
    drop(second);
    assert!(c.wait_for(&blocker(&a)).is_some());
}

#[test]
fn ranges_continue_after_a_key() {
    let store = Rowstore::new();
    for key in [b"a", b"b", b"c", b"d"] {
        store.get_or_insert(key);
    }
    let mut out = Vec::new();
    store.range_after(None, 2, &mut out);
    store.range_after(Some(b"b"), 10, &mut out);
    let keys: Vec<_> = out.iter().map(|n| n.key().to_vec()).collect();
    assert_eq!(keys, [b"a", b"b", b"c", b"d"]);
}

#[test]
fn threads_agree_on_one_node() {
    let store = Rowstore::new();
    let winners = AtomicUsize::new(0);
    #[allow(clippy::disallowed_methods)]
    std::thread::scope(|scope| {
        for id in 0..4 {
            let (store, winners) = (&store, &winners);
            scope.spawn(move || {
                for key in 0..500u32 {
                    let node = store.get_or_insert(&key.to_be_bytes());
                    if matches!(node.lock(&Owner::new(id)), Ok(true)) {
                        winners.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(winners.load(Ordering::Relaxed), 500);
    assert_eq!(store.len(), 500);
}
