//! The queues against a simple model, and what they promise about scans.

use super::queues::{MOST_SPARED, PROMOTED_FROM, small_limit};
use super::slots::MOST_USES;
use super::{BlockCache, Page, Purpose, Slots};
use nacre_types::hash::hash_u64;
use std::collections::VecDeque;
use std::sync::Arc;

/// Segment, column, block.
type Key = [u8; 3];

/// S3-FIFO as the paper describes it: two queues with use counters, and a list of what was evicted.
struct Model {
    limit: usize,
    small: VecDeque<(Key, usize, u8)>,
    main: VecDeque<(Key, usize, u8)>,
    /// Evictions from the small queue, oldest first. The flag is cleared once the block must not be
    /// recognised any more.
    ghosts: Vec<(Key, usize, bool)>,
}

impl Model {
    fn new(limit: usize) -> Model {
        Model { limit, small: VecDeque::new(), main: VecDeque::new(), ghosts: Vec::new() }
    }

    fn bytes(&self) -> usize {
        self.small.iter().chain(&self.main).map(|(_, bytes, _)| bytes).sum()
    }

    /// Whether the block is cached; counts a use.
    fn read(&mut self, key: Key, purpose: Purpose) -> bool {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        let Some((_, _, uses)) = all.find(|(other, _, _)| *other == key) else { return false };
        *uses = match purpose {
            Purpose::Point => (*uses + 1).min(MOST_USES),
            Purpose::Scan => (*uses).max(1),
        };
        true
    }

    fn is_ghost(&self, key: Key) -> bool {
        let Some(at) = self.ghosts.iter().rposition(|(other, _, _)| *other == key) else {
            return false;
        };
        let since: usize = self.ghosts[at..].iter().map(|(_, bytes, _)| bytes).sum();
        self.ghosts[at].2 && since <= self.limit - small_limit(self.limit)
    }

    fn forget_ghosts(&mut self, is_gone: impl Fn(&Key) -> bool) {
        self.ghosts.iter_mut().filter(|(key, _, _)| is_gone(key)).for_each(|ghost| ghost.2 = false);
    }

    fn insert(&mut self, key: Key, bytes: usize) {
        let queue = if self.is_ghost(key) { &mut self.main } else { &mut self.small };
        queue.push_back((key, bytes, 0));
        while self.bytes() > self.limit {
            let small: usize = self.small.iter().map(|(_, bytes, _)| bytes).sum();
            if small > small_limit(self.limit) || self.main.is_empty() {
                let (key, bytes, uses) = self.small.pop_front().unwrap();
                match uses >= PROMOTED_FROM {
                    true => self.main.push_back((key, bytes, 0)),
                    false => self.ghosts.push((key, bytes, true)),
                }
                continue;
            }
            for _ in 0..MOST_SPARED {
                if self.main[0].2 == 0 {
                    break;
                }
                let (key, bytes, uses) = self.main.pop_front().unwrap();
                self.main.push_back((key, bytes, uses - 1));
            }
            let (evicted, _, _) = self.main.pop_front().unwrap();
            self.forget_ghosts(|key| *key == evicted);
        }
    }

    fn forget(&mut self, segment: u8) {
        self.small.retain(|(key, _, _)| key[0] != segment);
        self.main.retain(|(key, _, _)| key[0] != segment);
        self.forget_ghosts(|key| key[0] == segment);
    }

    /// What the queues of the cache must hold.
    fn contents(&self) -> [Vec<(Vec<u8>, u8)>; 2] {
        [&self.small, &self.main]
            .map(|queue| queue.iter().map(|(key, _, uses)| (key.to_vec(), *uses)).collect())
    }
}

/// A cache with slots of some segments of 4 columns and `blocks` blocks.
struct World {
    cache: Arc<BlockCache>,
    segments: Vec<Arc<Slots>>,
}

impl World {
    fn new(limit: usize, segments: usize, blocks: usize) -> World {
        let cache = BlockCache::new(limit);
        let slots = |_| Slots::new([blocks; 4].into_iter(), cache.hit_counter());
        let segments = (0..segments).map(slots).collect();
        World { cache, segments }
    }

    /// Reads a block as a segment does. Returns whether it was cached.
    fn read(&self, key: Key, bytes: usize, purpose: Purpose) -> bool {
        let (slots, column, index) = (&self.segments[key[0] as usize], key[1] as usize, key[2]);
        let found = slots.get(column, index as usize, purpose);
        if let Some(page) = &found {
            assert_eq!(page.bytes[..3], key);
            return true;
        }
        let mut content = vec![0; bytes];
        content[..3].copy_from_slice(&key);
        let page = Arc::new(Page::new(content.into()));
        self.cache.insert(slots, column, index as usize, page, bytes).count_use(purpose);
        false
    }

    /// Reads every block of a segment, a block at a time, each of them twice.
    fn scan(&self, segment: u8, blocks: u8, bytes: usize) {
        for index in 0..blocks {
            for _ in 0..2 {
                self.read([segment, 0, index], bytes, Purpose::Scan);
            }
        }
    }

    fn cached(&self, keys: impl Iterator<Item = Key>) -> usize {
        keys.filter(|[segment, column, index]| {
            self.segments[*segment as usize].has(*column as usize, *index as usize)
        })
        .count()
    }
}

#[test]
fn the_queues_agree_with_a_model() {
    for seed in 0..60u64 {
        let mut state = seed;
        let mut below = |n: u64| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            hash_u64(state) % n
        };
        let limit = [0, 50, 400, 2_000, 10_000][below(5) as usize];
        let (world, mut model) = (World::new(limit, 3, 9), Model::new(limit));
        for step in 0..3_000 {
            if below(400) == 0 {
                let segment = below(3) as u8;
                world.cache.forget(&world.segments[segment as usize]);
                model.forget(segment);
            }
            // Some blocks are read more often than others. A block always has the same size.
            let index = below(10).min(below(10)) as u8;
            let key = [below(3) as u8, below(4) as u8, index];
            let bytes =
                3 + hash_u64(u64::from(u32::from_le_bytes([key[0], key[1], key[2], 0]))) % 90;
            let purpose = if below(3) == 0 { Purpose::Scan } else { Purpose::Point };
            let found = world.read(key, bytes as usize, purpose);
            let expected = model.read(key, purpose);
            assert_eq!(found, expected, "seed {seed} step {step}");
            if !expected {
                model.insert(key, bytes as usize);
                model.read(key, purpose);
            }
            world.cache.with_queues(|queues| {
                queues.check();
                assert_eq!(queues.contents(), model.contents(), "seed {seed} step {step}");
                assert_eq!(queues.bytes(), model.bytes(), "seed {seed} step {step}");
            });
        }
        (0..3).for_each(|segment| world.cache.forget(&world.segments[segment]));
        assert_eq!(world.cache.memory_bytes(), 0, "seed {seed}");
    }
}

#[test]
fn a_scan_leaves_what_was_used_twice() {
    let world = World::new(10_000, 2, 200);
    let hot = || (0..60).map(|index| [0, 1, index]);
    for _ in 0..2 {
        for key in hot() {
            world.read(key, 100, Purpose::Point);
        }
    }
    // Ten times the cache, twice: the second scan finds none of its blocks either.
    for _ in 0..2 {
        world.scan(1, 200, 500);
        assert_eq!(world.cached(hot()), 60);
    }
    assert!(world.cache.memory_bytes() <= 10_000);
}

#[test]
fn a_block_that_is_missed_soon_again_stays_through_a_scan() {
    let world = World::new(10_000, 3, 200);
    world.read([0, 1, 0], 100, Purpose::Scan);
    world.scan(1, 100, 100);
    assert!(!world.read([0, 1, 0], 100, Purpose::Scan), "one use is not enough");
    world.scan(2, 200, 500);
    assert!(world.read([0, 1, 0], 100, Purpose::Scan), "it came back while it was remembered");
}

#[test]
fn hits_are_counted_over_all_segments() {
    let world = World::new(10_000, 3, 200);
    (0..3).for_each(|segment| assert!(!world.read([segment, 1, 0], 100, Purpose::Scan)));
    assert_eq!(world.cache.hits(), 0);
    (0..3).for_each(|segment| assert!(world.read([segment, 1, 0], 100, Purpose::Point)));
    assert!(!world.segments[0].has(1, 1) && world.segments[0].has(1, 0));
    assert_eq!(world.cache.hits(), 3, "looking is no use");
}

#[test]
fn dropping_a_segment_leaves_the_others() {
    let world = World::new(100_000, 3, 200);
    (0..3).for_each(|segment| world.scan(segment, 100, 100));
    let others = || (0..100).flat_map(|index| [[0, 0, index], [2, 0, index]]);
    assert_eq!((world.cache.memory_bytes(), world.cached(others())), (30_000, 200));
    world.cache.forget(&world.segments[1]);
    world.cache.forget(&world.segments[1]);
    assert_eq!((world.cache.memory_bytes(), world.cached(others())), (20_000, 200));
    world.cache.with_queues(|queues| queues.check());
}
