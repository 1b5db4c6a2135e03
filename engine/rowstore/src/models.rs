//! The core under `loom`: every interleaving of a few threads, with every value that the memory
//! model lets a load return. Run with `cargo test -p nacre-rowstore --features loom`.
//! `docs/TESTING.md` says which faults this finds and which it cannot.
//!
//! Each model names the faults that were planted to confirm that it fails.

use super::chain::Detached;
use super::*;

use crate::sync::AtomicU64;
use loom::thread;
use nacre_types::Timestamp;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll, Waker};

fn model(threads_bound: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Most faults need one or two preemptions; the bound keeps the number of interleavings small.
    builder.preemption_bound = Some(threads_bound);
    builder.check(body);
}

fn node() -> Arc<Node> {
    Arc::new(Node::new(b"k".as_slice().into(), Arc::default()))
}

fn put(byte: u8) -> Change {
    Change::Put([byte].as_slice().into())
}

fn version(commit: Timestamp) -> Version {
    Version { commit, content: commit, change: put(commit as u8) }
}

fn seen(node: &Node, at: Timestamp) -> Option<u8> {
    match node.visible(at, None) {
        Visible::Row(row) => Some(row[0]),
        Visible::Deleted => Some(0),
        Visible::Elsewhere => None,
    }
}

/// Locks a node, yielding while another owner holds it.
fn lock(node: &Node, owner: &Arc<Owner>) {
    while let Err(LockError::Held(_)) = node.lock(owner) {
        thread::yield_now();
    }
}

/// One commit changes two rows and is then made visible: a reader that sees its timestamp sees both
/// changes, whenever it reads.
///
/// Planted: `Ordering::Relaxed` when a record is linked (`Link::push`); `Relaxed` when it is read
/// (`Link::get`); the record not stamped before it is linked (`Node::commit_pending`).
#[test]
fn a_visible_commit_is_seen_whole() {
    model(3, || {
        let nodes = [node(), node()];
        let visible = Arc::new(AtomicU64::new(1));
        nodes.iter().for_each(|node| node.push_version(version(1)));
        let writer = {
            let (nodes, visible) = (nodes.clone(), visible.clone());
            thread::spawn(move || {
                let owner = Owner::new(1);
                for node in &nodes {
                    assert!(node.lock(&owner).is_ok());
                    node.set_pending(Some(put(2)));
                }
                nodes.iter().for_each(|node| node.commit_pending(2));
                visible.store(2, Release);
                nodes.iter().for_each(|node| node.unlock());
                owner.end();
            })
        };
        let at = visible.load(Acquire);
        for node in &nodes {
            assert_eq!(seen(node, at), Some(at as u8));
            assert_eq!(node.version_at(at).map(|v| v.commit), Some(at));
        }
        writer.join().unwrap();
    });
}

/// A reader finds the version of its snapshot while newer versions arrive and unneeded ones are
/// collected. Nothing that it reads is freed meanwhile.
///
/// Planted: cut behind the newest version instead of behind the newest that `oldest` sees
/// (`Link::cut`); `Relaxed` in `Link::get`.
#[test]
fn collecting_takes_nothing_from_a_reader() {
    model(3, || {
        let node = node();
        (1..=3).for_each(|commit| node.push_version(version(commit)));
        let reader = {
            let node = node.clone();
            thread::spawn(move || {
                assert_eq!(seen(&node, 2), Some(2));
                assert_eq!(node.newest().map(|v| v.commit >= 3), Some(true));
            })
        };
        let collector = {
            let node = node.clone();
            thread::spawn(move || node.collect(2))
        };
        node.push_version(version(4));
        node.collect(2);
        reader.join().unwrap();
        assert!(!collector.join().unwrap());
        // Two collectors and a writer: every byte is accounted for exactly once.
        let left = 3 * Detached::new(0, 0, put(0)).bytes();
        assert_eq!(node.bytes.load(Relaxed), left);
    });
}

/// Nothing is freed while a reader uses it, even if its snapshot is already collected, the node
/// dies, or a pending change is removed while its owner reads on another thread.
///
/// Planted: freed at once instead of after all pins are gone (`Pin::defer` of the model).
#[test]
fn nothing_is_freed_under_a_reader() {
    model(3, || {
        let node = node();
        (1..=2).for_each(|commit| node.push_version(version(commit)));
        node.push_version(Version { commit: 3, content: 3, change: Change::Delete });
        let owner = Owner::new(1);
        assert!(node.lock(&owner).is_ok());
        node.set_pending(Some(put(9)));
        let reader = {
            let (node, owner) = (node.clone(), owner.clone());
            thread::spawn(move || {
                assert!(matches!(seen(&node, 1), Some(1) | None));
                let own = node.visible(3, Some(&owner));
                assert!(
                    matches!(own, Visible::Elsewhere | Visible::Deleted)
                        || matches!(own, Visible::Row(row) if row[0] == 9)
                );
            })
        };
        node.set_pending(None);
        node.unlock();
        node.collect(3);
        reader.join().unwrap();
    });
}

/// A node unlinked as empty is never locked afterwards, and a node locked in time is never
/// unlinked, so that no write goes to an unreachable node.
///
/// Planted: dead without the second check under the latch (`Node::collect`); `Relaxed` in
/// `Holder::unlock`.
#[test]
fn a_write_is_not_lost_with_its_node() {
    model(3, || {
        let node = node();
        let writer = {
            let node = node.clone();
            thread::spawn(move || {
                let owner = Owner::new(1);
                let locked = node.lock(&owner).is_ok();
                if locked {
                    node.set_pending(Some(put(7)));
                    node.commit_pending(7);
                    node.unlock();
                }
                locked
            })
        };
        let died = node.collect(0);
        let written = writer.join().unwrap();
        assert_ne!(died, written);
        assert_eq!(seen(&node, 7), written.then_some(7));
        assert!(!node.collect(0));
    });
}

/// The next holder of a row lock sees the writes of the previous one, and two owners never hold it
/// at once.
///
/// Planted: `Relaxed` in `Holder::unlock`; `Relaxed` in `Holder::lock`.
#[test]
#[allow(clippy::arc_with_non_send_sync)]
fn a_lock_hands_over_what_was_written() {
    model(3, || {
        let node = node();
        let inside = Arc::new(loom::cell::UnsafeCell::new(0u64));
        let turn = |id: u64, node: Arc<Node>, inside: Arc<loom::cell::UnsafeCell<u64>>| {
            let owner = Owner::new(id);
            lock(&node, &owner);
            // Fails the model if two threads are here at once, or one does not see the other's
            // writes.
            let next = inside.with_mut(count_up);
            assert_eq!(node.newest().map_or(0, |v| v.commit), next - 1);
            node.set_pending(Some(put(next as u8)));
            assert_eq!(
                seen(&node, u64::MAX),
                (next > 1).then_some(next as u8 - 1),
                "another owner's pending change is seen"
            );
            node.commit_pending(next);
            node.unlock();
            owner.end();
        };
        let other = {
            let (node, inside) = (node.clone(), inside.clone());
            thread::spawn(move || turn(1, node, inside))
        };
        turn(2, node.clone(), inside.clone());
        other.join().unwrap();
        assert_eq!(node.newest().map(|v| v.commit), Some(2));
    });
}

#[allow(unsafe_code)]
fn count_up(count: *mut u64) -> u64 {
    // SAFETY: inside `UnsafeCell::with_mut`, which fails if another thread is.
    unsafe {
        *count += 1;
        *count
    }
}

/// The holder named by a refused lock stays readable, even if it releases the lock and ends
/// meanwhile.
///
/// Planted: the reference dropped at once although it was asked for (`give_back`); asked for
/// without setting the bit (`Holder::owner`); the holder published without a release
/// (`Holder::lock`).
#[test]
fn a_holder_can_be_asked_while_it_leaves() {
    model(3, || {
        let node = node();
        let first = Owner::new(1);
        assert!(node.lock(&first).is_ok());
        let asking = {
            let node = node.clone();
            thread::spawn(move || match node.lock(&Owner::new(2)) {
                Ok(_) => 2,
                Err(LockError::Held(blocker)) => blocker.owner().id(),
                Err(LockError::Dead) => 0,
            })
        };
        let looking = {
            let node = node.clone();
            thread::spawn(move || node.blocker().map(|blocker| blocker.owner().id()))
        };
        node.unlock();
        first.end();
        drop(first);
        assert!(matches!(asking.join().unwrap(), 1 | 2));
        assert!(matches!(looking.join().unwrap(), None | Some(1) | Some(2)));
    });
}

/// A flush marks a version only if the row is unlocked and the version is still the newest. An
/// owner that locks the row afterwards sees the mark, and the segment that was listed before it.
///
/// Planted: `Relaxed` when the latch is dropped; flushed without a latch (`Node::flush`).
#[test]
fn a_flush_and_a_writer_agree() {
    model(3, || {
        let node = node();
        node.push_version(version(1));
        let listed = Arc::new(AtomicU64::new(0));
        let writer = {
            let (node, listed) = (node.clone(), listed.clone());
            thread::spawn(move || {
                let owner = Owner::new(1);
                assert!(matches!(node.lock(&owner), Ok(true)));
                let flushed = matches!(node.newest().map(|v| v.change), Some(Change::Flushed));
                if flushed {
                    assert_eq!(
                        listed.load(Relaxed),
                        1,
                        "the row is in a segment that is not listed"
                    );
                }
                node.set_pending(Some(put(3)));
                assert_eq!(node.newest().map_or(0, |v| v.commit), if flushed { 2 } else { 1 });
                node.commit_pending(3);
                node.unlock();
                flushed
            })
        };
        listed.store(1, Relaxed);
        let flushed = node.flush(2, 1);
        assert_eq!(writer.join().unwrap(), flushed);
        assert_eq!(node.newest().map(|v| v.commit), Some(3));
    });
}

/// A bulk load lists its rows and then checks for locks; a writer locks and then looks for the row.
/// At least one of them sees the other.
///
/// Planted: a plain load in `Holder::is_held`.
#[test]
fn a_load_and_a_writer_see_each_other() {
    model(3, || {
        let node = node();
        let listed = Arc::new(AtomicU64::new(0));
        let writer = {
            let (node, listed) = (node.clone(), listed.clone());
            thread::spawn(move || {
                assert!(node.lock(&Owner::new(1)).is_ok());
                listed.load(Relaxed) == 1
            })
        };
        listed.store(1, Relaxed);
        let refused = node.is_locked();
        assert!(writer.join().unwrap() || refused);
    });
}

/// If two owners wait for each other, at least one detects the deadlock, in any order. A waiter is
/// woken when the holder ends, and when it releases the lock earlier.
///
/// Planted: the edge set after the search (`Owner::wait_for`); no second check for the end after
/// the waker is registered (`Waiting::poll`); wakers taken before the end is marked (`Owner::end`),
/// or before released locks are counted (`Owner::gave_back`); no second check of the lock after the
/// count (`Holder::blocker`).
#[test]
fn deadlocks_and_ends_are_noticed() {
    model(3, || {
        let (a, b) = (Owner::new(1), Owner::new(2));
        let other = {
            let (a, b) = (a.clone(), b.clone());
            // The wait is held until the deadlock is broken.
            thread::spawn(move || a.wait_for(&Blocker::new(b)))
        };
        let mine = b.wait_for(&Blocker::new(a.clone()));
        let other = other.join().unwrap();
        assert!(mine.is_none() || other.is_none(), "both wait forever");
    });
    model(3, || {
        let (waiter, holder) = (Owner::new(1), Owner::new(2));
        let waking = Arc::new(CountWakes::default());
        let ending = {
            let holder = holder.clone();
            thread::spawn(move || holder.end())
        };
        let mut waiting = waiter.wait_for(&Blocker::new(holder.clone())).unwrap();
        let waker = Waker::from(waking.clone());
        let polled = std::pin::Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker));
        ending.join().unwrap();
        assert!(polled == Poll::Ready(()) || waking.0.load(Relaxed) > 0, "slept through the end");
    });
    model(3, || {
        let (node, holder) = (node(), Owner::new(2));
        assert!(node.lock(&holder).is_ok());
        let waking = Arc::new(CountWakes::default());
        let giving = {
            let (node, holder) = (node.clone(), holder.clone());
            thread::spawn(move || {
                node.unlock();
                holder.gave_back();
            })
        };
        let polled = node.blocker().map(|blocker| {
            let mut waiting = Owner::new(1).wait_for(&blocker).unwrap();
            let waker = Waker::from(waking.clone());
            std::pin::Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker))
        });
        giving.join().unwrap();
        assert!(
            polled != Some(Poll::Pending) || waking.0.load(Relaxed) > 0,
            "slept although the lock is free"
        );
    });
}

#[derive(Default)]
struct CountWakes(AtomicUsize);

impl std::task::Wake for CountWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
