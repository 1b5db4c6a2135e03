//! Settings of a store.

use crate::layout::rules::CompileRules;
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
    /// Bytes of delete bitmaps cached for old snapshots.
    pub bitmap_bytes: usize,
    /// Bytes of segment footers kept in memory, with the files of these segments open. Those used
    /// least make room for others.
    pub metadata_bytes: usize,
    /// Bytes of all rowstores together, with their index entries, above which no write begins.
    pub rowstore_bytes: usize,
    /// Bytes that the operators of all statements may hold together.
    pub statement_bytes: usize,
    /// Maximum rows of a segment.
    pub segment_rows: usize,
    /// A segment takes no more rows once its values exceed this many bytes in memory.
    pub segment_bytes: usize,
    /// A rowstore larger than this many bytes is flushed; so is the largest one once all together
    /// exceed four times as many, or half of `rowstore_bytes`.
    pub flush_bytes: usize,
    /// A new snapshot is written once the log since the last one exceeds this many bytes, or is of many
    /// files.
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
    /// A statement that inserts at least this many rows writes segments instead of the rowstore.
    pub load_rows: usize,
    /// Whether to open the database only to read it, beside an instance that may be writing it.
    pub read_only: bool,
    /// Whether to open a database although commits at the end of its log are missing.
    pub accept_loss: bool,
    /// Compiles the rules in schemas. Without it, tables that have any are only read.
    pub rules: Option<CompileRules>,
}

/// The memory of a store by default, in bytes.
pub const DEFAULT_MEMORY_BYTES: usize = 2 << 30;
/// Limit above which rowstores are flushed, all tables together, in multiples of the limit for one.
const FULL_ROWSTORES: usize = 4;

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions::with_memory(DEFAULT_MEMORY_BYTES)
    }
}

impl StoreOptions {
    /// The defaults, with a share of `memory_bytes` for each part. The shares add up to the whole;
    /// the rows that a flush, merge or load is writing, of one segment each, come on top.
    pub fn with_memory(memory_bytes: usize) -> StoreOptions {
        StoreOptions {
            durability: Durability::Strict,
            statement_bytes: memory_bytes / 2,
            rowstore_bytes: memory_bytes / 4,
            cache_bytes: memory_bytes / 8,
            bitmap_bytes: memory_bytes / 128,
            metadata_bytes: memory_bytes / 8 - memory_bytes / 128,
            segment_rows: nacre_types::limits::MAX_SEGMENT_ROWS,
            segment_bytes: memory_bytes / 8,
            flush_bytes: memory_bytes / 64,
            snapshot_bytes: 64 << 20,
            merge_from: MERGE_FROM,
            hash_from: 8.0,
            partitions: 0,
            load_rest: 256,
            bulk_rows: 1 << 14,
            load_rows: 1 << 16,
            read_only: false,
            accept_loss: false,
            rules: None,
        }
    }

    /// Approximate bytes of rows to gather at once.
    pub(crate) fn gather_bytes(&self) -> usize {
        self.segment_bytes / 16
    }

    /// Approximate bytes of a snapshot to write per step.
    pub(crate) fn snapshot_piece_bytes(&self) -> usize {
        (self.snapshot_bytes / 16).clamp(64, 128 << 10) as usize
    }

    /// Bytes of all rowstores together above which the largest is flushed, and from which writers
    /// are slowed down.
    pub(crate) fn soft_rowstore_bytes(&self) -> usize {
        self.flush_bytes.saturating_mul(FULL_ROWSTORES).min(self.rowstore_bytes / 2)
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
