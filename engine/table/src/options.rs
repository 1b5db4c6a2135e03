//! Settings of a store.

use nacre_host::Host;
use nacre_log::LogOptions;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After it is synced.
    Strict,
    /// At once. It is synced at the latest by the first commit or
    /// [`Store::maintain`](crate::Store::maintain) after the interval.
    Relaxed {
        /// Longest time in milliseconds that acknowledged commits may stay unsynced.
        interval_ms: u32,
    },
}

/// Settings of a store. The defaults suit most uses.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Bytes of segment blocks kept in memory.
    pub cache_bytes: usize,
    /// Most rows of a segment.
    pub segment_rows: usize,
    /// Bytes of values, as they are in memory, above which a segment takes no more rows.
    pub segment_bytes: usize,
    /// A rowstore above this many bytes is flushed, and the largest one when all together have four
    /// times as many.
    pub flush_bytes: usize,
    /// Bytes of log since the last snapshot above which a new snapshot is written.
    pub snapshot_bytes: u64,
    /// Hash tables of an index, or of the primary key, are made once a key is in the ranges of this
    /// many big segments on average. Fewer segments are told apart by their Bloom filters.
    pub hash_from: f64,
    /// Partitions of a new table with a shard key; 0 for as many as the host runs tasks at once.
    pub partitions: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            durability: Durability::Strict,
            cache_bytes: 256 << 20,
            segment_rows: nacre_types::limits::MAX_SEGMENT_ROWS,
            segment_bytes: 256 << 20,
            flush_bytes: 32 << 20,
            snapshot_bytes: 64 << 20,
            hash_from: 8.0,
            partitions: 0,
        }
    }
}

impl StoreOptions {
    /// Bytes of rows that are put together at once, about.
    pub(crate) fn gather_bytes(&self) -> usize {
        self.segment_bytes / 16
    }

    /// Bytes for delete bitmaps of old snapshots, in addition to the block cache.
    pub(crate) fn bitmap_bytes(&self) -> usize {
        self.cache_bytes / 16
    }

    /// Settings of the log: a chunk is sealed at a quarter of the snapshot distance.
    pub(crate) fn log_options(&self, host: &Host) -> LogOptions {
        LogOptions {
            chunk_bytes: (self.snapshot_bytes / 4).max(1 << 16),
            database_id: host.entropy.next_u64(),
        }
    }
}
