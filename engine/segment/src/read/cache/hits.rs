//! Counting what was found in the cache.

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Segments that are read beside each other mostly count in different cells.
const CELLS: usize = 16;

/// A counter in a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Cell(AtomicU64);

/// The hits of all segments of a cache.
pub(crate) struct Hits {
    cells: [Cell; CELLS],
    /// Number of segments that count here.
    segments: AtomicUsize,
}

impl Hits {
    pub fn new() -> Arc<Hits> {
        let cells = array::from_fn(|_| Cell::default());
        Arc::new(Hits { cells, segments: AtomicUsize::new(0) })
    }

    /// All hits so far.
    pub fn total(&self) -> u64 {
        let total = self.cells.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum();
        let segments = self.segments.load(Ordering::Relaxed);
        debug_assert!(segments > 0 || total == 0, "{total} hits and no segment");
        total
    }
}

/// The hits of one segment.
pub(crate) struct SegmentHits {
    hits: Arc<Hits>,
    cell: usize,
}

impl SegmentHits {
    pub fn new(hits: &Arc<Hits>) -> SegmentHits {
        let cell = hits.segments.fetch_add(1, Ordering::Relaxed) % CELLS;
        SegmentHits { hits: hits.clone(), cell }
    }

    /// Counts one. Concurrent hits may count as one: to miss none would take another atomic exchange
    /// for each.
    #[inline]
    pub fn count(&self) {
        debug_assert!(self.cell < CELLS, "cell {} of {CELLS}", self.cell);
        let Cell(cell) = &self.hits.cells[self.cell];
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
