//! Counters of a running statement.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A number that several threads add to.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to it.
    pub fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// Decisions that can be described once a profiled statement has ended.
pub trait Describe: Debug + Send + Sync {
    /// The description; `None` if nothing was decided.
    fn describe(&self) -> Option<String>;
}

/// The counters of one statement. Operators add through a shared reference, on any thread.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Rows decoded from segments or read from the rowstore.
    pub rows_read: Counter,
    /// The rows among them that came from the rowstore.
    pub memory_rows: Counter,
    /// Estimated bytes of the blocks read.
    pub bytes_read: Counter,
    /// Partitions ruled out by the shard key.
    pub partitions_skipped: Counter,
    /// Segments of which at least one block was read.
    pub segments_read: Counter,
    /// Segments ruled out by their metadata.
    pub segments_skipped: Counter,
    /// Blocks read.
    pub blocks_read: Counter,
    /// Zones of segments, groups of blocks and blocks that were compared with filters.
    pub zones_tested: Counter,
    /// Blocks ruled out by their zone maps.
    pub blocks_skipped: Counter,
    /// Rows looked up by primary key instead of scanning.
    pub point_reads: Counter,
    /// Segments and rowstores merged by scans in key order.
    pub runs: Counter,
    /// Key ranges looked up in indexes.
    pub index_probes: Counter,
    /// Hash tables of indexes searched for the segments of a key.
    pub tables_probed: Counter,
    /// Key ranges among `index_probes` that came from joins above the scan.
    pub join_keys: Counter,
    /// Rows that scans dropped because a join above has no partner for them.
    pub join_filtered: Counter,
    /// Rows that joins collected from their right sides.
    pub build_rows: Counter,
    /// Bytes written to temporary files because memory could not hold the rows.
    pub bytes_spilled: Counter,
    indexes: Mutex<Vec<String>>,
    /// How scans filtered, while the statement is profiled.
    filters: Mutex<Vec<Arc<dyn Describe>>>,
}

impl Statistics {
    /// Adds the counts of another.
    pub fn add(&self, other: &Statistics) {
        let pairs = self.counters().into_iter().zip(other.counters());
        let pairs = pairs.map(|((_, own), (_, theirs))| (own, theirs));
        for (own, theirs) in pairs.chain([(&self.zones_tested, &other.zones_tested)]) {
            // Threads share them.
            if theirs.get() > 0 {
                own.add(theirs.get() as usize);
            }
        }
        other.indexes().into_iter().for_each(|name| self.note_index(name));
        let theirs = other.filters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        theirs.into_iter().for_each(|filter| self.describe(filter));
    }

    /// How scans filtered.
    pub fn filters(&self) -> Vec<String> {
        let filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        filters.iter().filter_map(|filter| filter.describe()).collect()
    }

    /// Adds what will describe how a scan filtered.
    pub fn describe(&self, filter: Arc<dyn Describe>) {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner).push(filter);
    }

    /// Names of the indexes that were used.
    pub fn indexes(&self) -> Vec<String> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that an index was used, once per name.
    pub fn note_index(&self, name: String) {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if !indexes.contains(&name) {
            indexes.push(name);
        }
    }

    /// All counters by name.
    pub fn counters(&self) -> [(&'static str, &Counter); 16] {
        [
            ("rows_read", &self.rows_read),
            ("memory_rows", &self.memory_rows),
            ("bytes_read", &self.bytes_read),
            ("partitions_skipped", &self.partitions_skipped),
            ("segments_read", &self.segments_read),
            ("segments_skipped", &self.segments_skipped),
            ("blocks_read", &self.blocks_read),
            ("blocks_skipped", &self.blocks_skipped),
            ("point_reads", &self.point_reads),
            ("runs", &self.runs),
            ("index_probes", &self.index_probes),
            ("tables_probed", &self.tables_probed),
            ("join_keys", &self.join_keys),
            ("join_filtered", &self.join_filtered),
            ("build_rows", &self.build_rows),
            ("bytes_spilled", &self.bytes_spilled),
        ]
    }
}
