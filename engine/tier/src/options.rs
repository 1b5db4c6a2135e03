//! Settings of the tiers.

use core::time::Duration;

/// Settings of the tiers.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// Bytes of segment files and fetched blocks that the local disk may hold; the log and what is not uploaded
    /// yet come on top. Unlimited by default.
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
    /// Bytes that are fetched and evicted together; 32 KB by default.
    pub block_bytes: u64,
    /// Time for which blobs are kept that no manifest names any more, for those that read an older one; one day by
    /// default.
    pub retention: Duration,
    /// Time for which opening, reading absent bytes, held commits, and closing wait for a blob store that is
    /// away; 30 seconds by default.
    pub patience: Duration,
}

impl Default for TierOptions {
    fn default() -> TierOptions {
        TierOptions {
            disk_limit: u64::MAX,
            lag: Duration::from_secs(1),
            holds_commits: false,
            unsent_limit: 4 << 30,
            block_bytes: 32 << 10,
            retention: Duration::from_secs(24 * 60 * 60),
            patience: Duration::from_secs(30),
        }
    }
}
