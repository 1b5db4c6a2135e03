//! Settings of a log.

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size in bytes at which a chunk is sealed and the next one started.
    pub chunk_bytes: u64,
    /// Identity of a new database, from the host's entropy. Distinguishes the files of different
    /// databases. An existing database keeps its identity.
    pub database_id: u64,
    /// Whether to go on without records that are missing at the end of the log, instead of failing
    /// with `corrupt`. [`Log::losses`](crate::Log::losses) says what was given up.
    pub accept_loss: bool,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { chunk_bytes: 64 << 20, database_id: 0, accept_loss: false }
    }
}
