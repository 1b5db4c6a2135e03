//! The block cache, bounded in bytes over all segments that share it.
//!
//! A hit takes one shared lock and neither hashes nor moves anything: `slots` finds a block by its
//! position in the segment and raises a small counter in its page. Loads and evictions are rare
//! and take one mutex: `queues` decides what stays, by S3-FIFO (Yang et al., *FIFO Queues are All
//! You Need for Cache Eviction*, SOSP 2023). `docs/decisions/0023-block-cache.md` has the reasons
//! and figures.
//!
//! Lock order: queues before slots.

mod block_cache;
mod footers;
mod hits;
#[cfg(test)]
#[cfg(feature = "loom")]
mod models;
mod queues;
mod scratch;
mod slots;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

pub use block_cache::BlockCache;
pub(crate) use footers::{FooterCell, Pinned, Weigh};
pub(crate) use slots::{Page, Pages, Purpose, SLOT_BYTES, Slots};
