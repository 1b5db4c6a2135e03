//! Publishing under `loom`: flushes, merges, deletes and readers of one partition in every
//! interleaving. Run with `cargo test -p nacre-table --features loom models`; see
//! `docs/TESTING.md`.
//!
//! Segment lists, segment lifetimes and delete bitmaps are the real ones. The commit lock, the
//! visible timestamp and the snapshots in use are reproduced here. Rowstore nodes, which have
//! models of their own, are treated as atomic.

use crate::segments::state::SegmentState;
use crate::segments::sync::AtomicU64;
use crate::table::partition::Partition;
use loom::sync::Mutex;
use loom::thread;
use nacre_column::{Batch, Vector};
use nacre_host::LocalStore;
use nacre_host::memory::MemoryStore;
use nacre_rowstore::{Change, Node, Owner, Version, Visible};
use nacre_segment::{BlockCache, ColumnSpec, Segment, SegmentBuilder};
use nacre_types::{DataType, Timestamp, Value};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as RealU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};

fn model(body: impl Fn(&[Arc<Segment>; 2]) + Send + Sync + 'static) {
    model_with(2, body);
}

/// Runs with at most this many preemptions.
fn model_with(switches: usize, body: impl Fn(&[Arc<Segment>; 2]) + Send + Sync + 'static) {
    // The files are created once and never change.
    let files = [file(1), file(2)];
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(move || body(&files));
}

/// A segment of two rows.
fn file(id: u64) -> Arc<Segment> {
    let spec = ColumnSpec { id: 0, data_type: DataType::Int64, nullable: false };
    let mut builder = SegmentBuilder::new(vec![spec]);
    let values = [Value::Int(0), Value::Int(1)];
    builder.push(&Batch::new(vec![Arc::new(Vector::from_values(DataType::Int64, &values))], 2));
    let (store, name) = (MemoryStore::new(), format!("seg-{id:016x}"));
    let file = store.create(&name).unwrap();
    builder.write(file.as_ref()).unwrap();
    Arc::new(Segment::open(file, &name, id, BlockCache::new(0)).unwrap())
}

/// The parts of a store that publishing involves.
struct World {
    partition: Partition,
    /// The last assigned timestamp.
    commit: Mutex<Timestamp>,
    visible: AtomicU64,
    snapshots: Mutex<BTreeMap<Timestamp, usize>>,
}

impl World {
    /// Starts at timestamp 1, with one segment if given.
    fn new(segment: Option<&Arc<Segment>>) -> Arc<World> {
        let world = World {
            partition: Partition::new(0, 1),
            commit: Mutex::new(1),
            visible: AtomicU64::new(1),
            snapshots: Mutex::default(),
        };
        if let Some(segment) = segment {
            world.add(segment, 1, RoaringBitmap::new());
        }
        Arc::new(world)
    }

    fn add(&self, segment: &Arc<Segment>, commit: Timestamp, deleted: RoaringBitmap) {
        let state = Arc::new(SegmentState::new(segment.clone(), commit, deleted));
        self.partition.update_segments(|list| list.push(state));
    }

    /// Models making a commit visible.
    fn settle(&self, commit: Timestamp) {
        self.visible.fetch_max(commit, AcqRel);
    }

    /// Models taking a snapshot.
    fn begin(&self) -> Timestamp {
        let mut snapshots = self.snapshots.lock().unwrap();
        let at = self.visible.load(Acquire);
        *snapshots.entry(at).or_insert(0) += 1;
        at
    }

    fn end(&self, at: Timestamp) {
        self.snapshots.lock().unwrap().remove(&at);
    }

    /// Models finding the oldest snapshot.
    fn oldest(&self) -> Timestamp {
        let snapshots = self.snapshots.lock().unwrap();
        snapshots.keys().next().copied().unwrap_or_else(|| self.visible.load(Acquire))
    }

    /// Number of segment rows visible at a timestamp.
    fn rows(&self, at: Timestamp) -> u64 {
        let list = self.partition.segments();
        let seen = list.iter().filter(|state| state.exists_at(at));
        seen.map(|state| 2 - state.deleted_at(at).map_or(0, |deleted| deleted.len())).sum()
    }

    /// Publishes a merge: replaces the first file by the second.
    fn merge(&self, to: &Arc<Segment>) {
        let mut last = self.commit.lock().unwrap();
        let commit = *last + 1;
        let list = self.partition.segments();
        let source = list.iter().find(|state| state.is_current()).unwrap();
        // In this model, concurrent deletes have the same row numbers in both files.
        let deleted = (*source.all_deleted()).clone();
        *last = commit;
        self.add(to, commit, deleted);
        source.drop_at(commit);
        drop(last);
        self.settle(commit);
    }

    /// Publishes a move: deletes a row from the segment that currently has it. Returns the commit.
    fn delete(&self, row: u32) -> Timestamp {
        let mut last = self.commit.lock().unwrap();
        let commit = *last + 1;
        let list = self.partition.segments();
        let state = list.iter().find(|state| state.is_current()).unwrap();
        assert!(!state.is_deleted(row));
        *last = commit;
        state.delete(commit, RoaringBitmap::from_iter([row]), self.oldest());
        drop(last);
        self.settle(commit);
        commit
    }

    /// Models garbage collection: drops segments and deltas that no snapshot needs.
    fn collect(&self) {
        let oldest = self.oldest();
        let _last = self.commit.lock().unwrap();
        let gone = |state: &SegmentState| state.dropped_at() <= oldest;
        let list = self.partition.segments();
        let ids = list.iter().filter(|state| gone(state)).map(|state| state.id()).collect();
        self.partition.update_segments(|list| list.remove(&ids));
        for state in self.partition.segments().iter() {
            state.fold(oldest);
        }
    }
}

/// A row is deleted while its segment is merged. A reader sees it exactly once, wherever it is,
/// until the commit of the deletion, and never after.
///
/// Planted bug: the merge takes the source's deletes before it has the commit lock
/// (`World::merge`).
#[test]
fn deletes_and_a_merge_show_every_row_once() {
    model(|[from, to]| {
        let world = World::new(Some(from));
        let merger = {
            let (world, to) = (world.clone(), to.clone());
            thread::spawn(move || world.merge(&to))
        };
        let deleted = Arc::new(RealU64::new(0));
        let deleter = {
            let (world, deleted) = (world.clone(), deleted.clone());
            thread::spawn(move || deleted.store(world.delete(1), SeqCst))
        };
        let at = world.begin();
        let first = world.rows(at);
        merger.join().unwrap();
        deleter.join().unwrap();
        // The snapshot keeps seeing the same rows.
        let again = world.rows(at);
        let expected = if deleted.load(SeqCst) <= at { 1 } else { 2 };
        assert_eq!((first, again), (expected, expected));
        world.end(at);
        assert_eq!(world.rows(world.visible.load(Acquire)), 1);
    });
}

/// Replaced segments and old deletes are collected while readers begin, without affecting what any
/// of them sees.
///
/// Planted bugs: `World::oldest` returns the visible timestamp regardless of snapshots;
/// `World::collect` folds deletes that a snapshot needs.
#[test]
fn collecting_takes_nothing_from_a_snapshot() {
    model(|[from, to]| {
        let world = World::new(Some(from));
        let worker = {
            let (world, to) = (world.clone(), to.clone());
            thread::spawn(move || {
                assert_eq!(world.delete(0), 2);
                world.merge(&to);
                world.collect();
            })
        };
        let at = world.begin();
        let expected = if at == 1 { 2 } else { 1 };
        assert_eq!(world.rows(at), expected);
        world.collect();
        assert_eq!(world.rows(at), expected);
        worker.join().unwrap();
        assert_eq!(world.rows(at), expected);
        world.end(at);
    });
}

fn put(byte: u8) -> Change {
    Change::Put([byte].as_slice().into())
}

/// A node with a row committed at 1.
fn node(world: &World) -> Arc<Node> {
    let node = world.partition.rowstore().get_or_insert(b"k");
    node.push_version(Version { commit: 1, content: 1, change: put(1) });
    node
}

/// Publishes a flush: first lists the segment, then marks the row as flushed. One of the segment's
/// two rows is excluded; the other is the node's.
fn flush(world: &World, node: &Node, to: &Arc<Segment>) {
    let mut last = world.commit.lock().unwrap();
    let commit = *last + 1;
    world.add(to, commit, RoaringBitmap::from_iter([1]));
    assert!(node.flush(commit, 1));
    *last = commit;
    drop(last);
    world.settle(commit);
}

/// A row moves from memory to a segment. A reader finds it in exactly one of them, whether it
/// searches the node or the segments first.
///
/// Planted bug: the timestamp is visible before the segment is listed (`flush`: `settle` before
/// `add`). Finding it takes three switches: to the flusher, back to a reader that begins then, and
/// to the flusher between the reader's two searches.
#[test]
fn a_flushed_row_is_seen_once() {
    model_with(3, |[to, _]| {
        let world = World::new(None);
        let node = node(&world);
        let flusher = {
            let (world, node, to) = (world.clone(), node.clone(), to.clone());
            thread::spawn(move || flush(&world, &node, &to))
        };
        let memory = |at| u64::from(matches!(node.visible(at, None), Visible::Row(_)));
        let at = world.begin();
        let nodes_first = memory(at) + world.rows(at);
        let segments_first = world.rows(at) + memory(at);
        assert_eq!((nodes_first, segments_first), (1, 1));
        flusher.join().unwrap();
        assert_eq!(memory(at) + world.rows(at), 1);
        world.end(at);
    });
}

/// A transaction that inserts the key of a row being flushed finds the row: in the node or, if the
/// node is marked as flushed, in a segment of the list it reads then.
///
/// Planted bug: the node is marked as flushed before the segment is listed (`flush`: `node.flush`
/// before `add`).
#[test]
fn a_key_is_taken_while_its_row_is_flushed() {
    model(|[to, _]| {
        let world = World::new(None);
        let node = node(&world);
        let inserter = {
            let (world, node) = (world.clone(), node.clone());
            thread::spawn(move || {
                let owner = Owner::new(1);
                assert!(node.lock(&owner).is_ok());
                let there = match node.newest().map(|version| version.change) {
                    Some(Change::Put(_)) => true,
                    Some(Change::Flushed) => {
                        let list = world.partition.segments();
                        list.iter().any(|state| state.is_current() && !state.is_deleted(0))
                    }
                    _ => false,
                };
                assert!(there, "a row that is there was not found");
                node.unlock();
                owner.end();
            })
        };
        let mut last = world.commit.lock().unwrap();
        let commit = *last + 1;
        world.add(to, commit, RoaringBitmap::from_iter([1]));
        // A locked row is not flushed.
        let _ = node.flush(commit, 1);
        *last = commit;
        drop(last);
        inserter.join().unwrap();
    });
}
