//! The cache: few and batched reads, and bounded memory.

use super::*;
use nacre_testing::{Call, Watched};

#[test]
fn reads_are_few_and_batched() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS * 4).map(all_row).collect();
    let (reads, ranges) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (reads.clone(), ranges.clone());
    let file = Watched::file("s", write(&all_specs(), &rows, 1000), move |_, call| {
        if let Call::Read { ranges, .. } = call {
            counts.0.fetch_add(1, Ordering::Relaxed);
            counts.1.fetch_add(ranges, Ordering::Relaxed);
        }
        Ok(())
    });
    let cache = BlockCache::new(64 << 20);
    let segment = Segment::open(file.clone(), "s", 1, cache.clone()).unwrap();
    assert_eq!(reads.swap(0, Ordering::Relaxed), 1, "open reads once");
    ranges.store(0, Ordering::Relaxed);
    let wanted: Vec<(usize, usize)> = (0..4).flat_map(|block| [(9, block), (2, block)]).collect();
    segment.load(&wanted).unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 1, "load reads once");
    assert_eq!(
        ranges.load(Ordering::Relaxed),
        2,
        "neighbours are one range, the dictionary with them"
    );
    let read = cache.read_bytes();
    assert!(read > 0 && cache.memory_bytes() > 0);
    segment.load(&wanted).unwrap();
    for row in (0..rows.len()).step_by(99) {
        segment.get(9, row).unwrap();
        segment.get(2, row).unwrap();
    }
    segment.take(2, &(0..rows.len() as u32).collect::<Vec<_>>()).unwrap();
    assert_eq!((reads.load(Ordering::Relaxed), cache.read_bytes()), (1, read), "hits read nothing");
    let other = Segment::open(file.clone(), "s", 2, cache.clone()).unwrap();
    reads.store(1, Ordering::Relaxed);
    other.forget_blocks();
    assert!(cache.memory_bytes() > 0);
    segment.forget_blocks();
    assert_eq!(cache.memory_bytes(), 0);
    segment.get(2, 0).unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 3, "the footer went with the blocks");
    drop(segment);
    assert_eq!(cache.memory_bytes(), 0, "a dropped segment leaves nothing");
}

#[test]
// Real threads test concurrent use of the cache.
#[allow(clippy::disallowed_methods)]
fn the_cache_stays_small_and_readers_get_their_blocks() {
    let rows: Vec<Vec<Value>> = (0..BLOCK_ROWS * 6).map(all_row).collect();
    let file = write(&all_specs(), &rows, 1000);
    for limit in [0, 30_000, 200_000] {
        let cache = BlockCache::new(limit);
        let segments: Vec<Segment> =
            (0..2).map(|id| Segment::open(file.clone(), "s", id, cache.clone()).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (segments, rows, cache) = (&segments, &rows, &cache);
                scope.spawn(move || {
                    for i in 0..600 {
                        let row = pseudo(i * 4 + thread) as usize % rows.len();
                        let column = pseudo(i) as usize % rows[0].len();
                        assert_eq!(segments[i % 2].get(column, row).unwrap(), rows[row][column]);
                        // Each reader may hold one more block for a moment.
                        assert!(cache.memory_bytes() <= limit + 4 * 2 * 300_000);
                    }
                });
            }
        });
        assert!(cache.memory_bytes() <= limit);
    }
}
