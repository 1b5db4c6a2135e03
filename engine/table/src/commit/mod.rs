//! Commits: timestamps, the commit lock, durability, and which timestamps readers see.

pub(crate) mod commits;
pub(crate) mod snapshots;
