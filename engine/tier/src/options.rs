//! Settings of the tiers.

use core::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The default time of a lease.
const LEASE: Duration = Duration::from_secs(60);

/// Settings of the tiers.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// Bytes of segment files and fetched blocks that the local disk may hold; the log and what is not uploaded
    /// yet come on top. Unlimited by default; where the files are in memory, a quarter of the
    /// database's memory at most.
    pub disk_limit: u64,
    /// Time from a commit to the upload that makes it survive the loss of the disk, while the blob store keeps
    /// up; 1 second by default.
    pub lag: Duration,
    /// Whether a commit is acknowledged only once it is uploaded, without waiting for `lag`: then the loss of the
    /// disk loses nothing that was acknowledged. `false` by default.
    pub holds_commits: bool,
    /// Bytes that may wait for their upload, beyond which statements that write wait for the lock timeout, and
    /// then fail with `unavailable`; 4 GB by default.
    pub unsent_limit: u64,
    /// Bytes that are evicted together; 32 KB by default. They are fetched together, too, or in eighths where a read
    /// needs bytes of more than three such blocks.
    pub block_bytes: u64,
    /// Whether the footers and indexes of all tables are brought to the local disk after opening, while there is
    /// nothing to upload: up to a quarter of the room for blocks. `true` by default.
    pub warms: bool,
    /// Time for which blobs are kept that no manifest names any more, for those that read an older one without a
    /// lease; one day by default.
    pub retention: Duration,
    /// Time for which every state of the past can be opened, restored and branched, by its position in the log; one
    /// day by default, zero for none. Files that are removed before they were uploaded are uploaded all the same.
    pub history: Duration,
    /// Time for which a database that only reads has its lease, and keeps blobs from being removed, after each
    /// renewal; zero for none. One minute by default. It needs the right to write below `leases/`.
    pub lease: Duration,
    /// Time for which opening, reading absent bytes, held commits, and closing wait for a blob store that is
    /// away; 30 seconds by default.
    pub patience: Duration,
}

impl TierOptions {
    /// For how long blobs are kept that no manifest names any more.
    pub(crate) fn kept(&self) -> Duration {
        self.retention.max(self.history)
    }
}

impl Default for TierOptions {
    fn default() -> TierOptions {
        TierOptions {
            disk_limit: u64::MAX,
            lag: Duration::from_secs(1),
            holds_commits: false,
            unsent_limit: 4 << 30,
            block_bytes: 32 << 10,
            warms: true,
            retention: DAY,
            history: DAY,
            lease: LEASE,
            patience: Duration::from_secs(30),
        }
    }
}
