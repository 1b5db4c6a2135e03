//! Three tiers: a local store whose files are uploaded to a blob store in the background, and may then
//! leave the local disk.
//!
//! [`Tier`] is a [`LocalStore`](nacre_host::LocalStore) over another one. The engine above it writes its
//! log, snapshots and segments as always. Each upload takes a *capture* of the store: a position of the log
//! that is durable locally, and the files that a database at this position needs. Once all of their bytes are
//! blobs, a *manifest* names them; a conditional write replaces the manifest before.
//!
//! Invariants:
//! - A manifest names only blobs that were written completely, and a state that recovery accepts: the log up
//!   to its position, the newest snapshot before it, and every file that the log names there.
//! - A file leaves the disk only once the newest manifest names it and the log names it; its blocks are then
//!   absent until they are fetched.
//! - A file that the engine removes stays on the disk while a capture needs its bytes.
//! - A blob is removed only after a manifest has let it go, and nothing holds it that was there before.
//! - Of two writers, the one that took the greater number goes on. The other stops before it acknowledges
//!   anything once it learns of that, at the latest with its next manifest.
//! - A folder whose blobs cannot be reached when it is opened goes on apart: it uploads nothing, and nothing of it
//!   leaves, until it has taken a number.
//! - Commits wait for no blob, unless [`TierOptions::holds_commits`].
//!
//! Deliberately absent: the meaning of the files, but for the headers of log chunks; threads and timers
//! (the host calls [`Uploads::step`](nacre_host::Uploads::step)); how a blob store is reached.

mod ahead;
mod apart;
mod at_once;
mod attach;
mod blocks;
mod branch;
mod capture;
mod claim;
mod collect;
mod collecting;
mod entry;
mod evict;
mod fetch;
mod file;
mod follow;
mod history;
mod hold;
mod join;
mod kept;
mod lease;
mod leasing;
mod manifest;
mod options;
mod origins;
mod parts;
mod restore;
mod retry;
mod shared;
mod store;
#[cfg(test)]
mod tests;
mod upload;
mod warm;
mod warmer;

pub use attach::check_filled;
pub use branch::{Place, branch, drop_branch};
pub use history::AsOf;
pub use manifest::{MANIFEST, describe};
pub use options::TierOptions;
pub use restore::restore;
pub use store::Tier;
