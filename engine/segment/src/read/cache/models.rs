//! The cache under `loom`: readers, loads, evictions and the drop of a segment in every
//! interleaving. Run with `cargo test -p nacre-segment --features loom models`; see
//! `docs/TESTING.md`.

use super::{BlockCache, Page, Purpose, Slots};
use loom::thread;
use std::sync::Arc;

/// A cache of two pages, and a segment of one column.
struct World {
    cache: Arc<BlockCache>,
    slots: Arc<Slots>,
}

impl World {
    fn new() -> Arc<World> {
        let cache = BlockCache::new(2);
        let slots = Slots::new([3].into_iter(), cache.hit_counter());
        Arc::new(World { cache, slots })
    }

    /// Loads a block of one byte, its number.
    fn load(&self, block: u8) {
        let page = Arc::new(Page::new([block].into()));
        let kept = self.cache.insert(&self.slots, 0, block as usize, page, 1);
        assert_eq!(kept.bytes[..], [block]);
    }

    /// Reads two blocks under one pin, as a point read does, and one of them beyond it.
    fn read(&self) {
        {
            let pages = self.slots.pin();
            for block in [0, 1] {
                assert!(pages.get(0, block).is_none_or(|page| page.bytes[..] == [block as u8]));
            }
        }
        let page = self.slots.get(0, 0, Purpose::Scan);
        assert!(page.is_none_or(|page| page.bytes[..] == [0]));
    }

    fn check(&self) {
        self.cache.with_queues(|queues| queues.check());
    }
}

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(body);
}

/// Two threads load blocks, one of them the same, into a full cache while a third reads. Every
/// reader gets the block it asks for, and the counted bytes are those of the cached pages.
///
/// Planted: a block that two threads load at once enters the queues twice (`Filled::Already` taken
/// for `Filled::Now`).
#[test]
fn readers_get_their_blocks_while_others_are_evicted() {
    model(|| {
        let world = World::new();
        world.load(0);
        let others = [[1, 2], [2, 0]].map(|blocks| {
            let world = world.clone();
            thread::spawn(move || blocks.iter().for_each(|block| world.load(*block)))
        });
        world.read();
        others.into_iter().for_each(|other| other.join().unwrap());
        world.check();
    });
}

/// A segment's blocks are dropped while others load and read them. A load that comes later may
/// cache its block again; a second drop leaves nothing.
///
/// Planted: `Slots::fill` outside the mutex of the queues, so that a page in a slot has no entry.
#[test]
fn dropped_blocks_are_counted_out_once() {
    model(|| {
        let world = World::new();
        world.load(0);
        let loader = {
            let world = world.clone();
            thread::spawn(move || world.load(1))
        };
        let reader = {
            let world = world.clone();
            thread::spawn(move || world.read())
        };
        world.cache.forget(&world.slots);
        loader.join().unwrap();
        reader.join().unwrap();
        world.check();
        world.cache.forget(&world.slots);
        assert_eq!(world.cache.memory_bytes(), 0);
    });
}
