//! Settings of the tiers.

use core::time::Duration;

/// Settings of the tiers.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// Bytes of segment files and cached blocks that the local disk may hold. What has not been uploaded yet,
    /// and the log, come on top.
    pub disk_limit: u64,
    /// Time from a commit to the upload that makes it survive the loss of the disk, while the blob store keeps
    /// up.
    pub lag: Duration,
    /// Bytes that may wait for their upload. Beyond it, statements that write wait, and then fail.
    pub unsent_limit: u64,
    /// Bytes that are fetched and evicted together.
    pub block_bytes: u64,
    /// Time for which blobs are kept that no manifest names any more, for those that read an older one.
    pub retention: Duration,
    /// Time for which a read waits for a blob store that is away.
    pub patience: Duration,
}

impl Default for TierOptions {
    fn default() -> TierOptions {
        TierOptions {
            disk_limit: u64::MAX,
            lag: Duration::from_secs(1),
            unsent_limit: 4 << 30,
            block_bytes: 32 << 10,
            retention: Duration::from_secs(24 * 60 * 60),
            patience: Duration::from_secs(30),
        }
    }
}
