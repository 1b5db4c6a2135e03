//! Settings of a store.

use nacre_host::Host;
use nacre_log::LogOptions;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After it is synced.
    Strict,
    /// Immediately. The first commit or [`Store::maintain`](crate::Store::maintain) after the
    /// interval syncs it at the latest.
    Relaxed {
        /// Maximum time in milliseconds that acknowledged commits stay unsynced.
        interval_ms: u32,
    },
}

/// Default of [`StoreOptions::merge_from`].
pub(crate) const MERGE_FROM: usize = 4;

/// Settings of a store. The defaults suit most uses.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Bytes of segment blocks kept in memory.
    pub cache_bytes: usize,
    /// Maximum rows of a segment.
    pub segment_rows: usize,
    /// A segment takes no more rows once its values exceed this many bytes in memory.
    pub segment_bytes: usize,
    /// A rowstore larger than this many bytes is flushed; so is the largest one once all together
    /// exceed four times as many.
    pub flush_bytes: usize,
    /// A new snapshot is written once the log since the last one exceeds this many bytes.
    pub snapshot_bytes: u64,
    /// This many sorted runs of one level of a partition are merged into one of the next level.
    pub merge_from: usize,
    /// Hash tables of an index or the primary key are built once a key is in the ranges of this
    /// many large segments on average. Below that, Bloom filters suffice.
    pub hash_from: f64,
    /// Partitions of a new table with a shard key; 0 for the number of tasks the host runs at once.
    pub partitions: usize,
    /// Row locks taken since its last round that a load looks at under the commit lock.
    pub load_rest: usize,
    /// A statement that deletes at least this many rows sets delete bits of those in segments
    /// instead of moving them to the rowstore.
    pub bulk_rows: usize,
    /// Whether to open the database only to read it, beside an instance that may be writing it.
    pub read_only: bool,
    /// Whether to open a database although commits at the end of its log are missing.
    pub accept_loss: bool,
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
            merge_from: MERGE_FROM,
            hash_from: 8.0,
            partitions: 0,
            load_rest: 256,
            bulk_rows: 1 << 14,
            read_only: false,
            accept_loss: false,
        }
    }
}

impl StoreOptions {
    /// Approximate bytes of rows to gather at once.
    pub(crate) fn gather_bytes(&self) -> usize {
        self.segment_bytes / 16
    }

    /// Approximate bytes of a snapshot to write per step.
    pub(crate) fn snapshot_piece_bytes(&self) -> usize {
        (self.snapshot_bytes / 16).clamp(64, 128 << 10) as usize
    }

    /// Bytes for delete bitmaps of old snapshots, in addition to the block cache.
    pub(crate) fn bitmap_bytes(&self) -> usize {
        self.cache_bytes / 16
    }

    /// Settings of the log. Chunks are sealed at a quarter of the snapshot distance.
    pub(crate) fn log_options(&self, host: &Host) -> LogOptions {
        LogOptions {
            chunk_bytes: (self.snapshot_bytes / 4).max(1 << 16),
            database_id: host.entropy.next_u64(),
            accept_loss: self.accept_loss,
        }
    }
}
