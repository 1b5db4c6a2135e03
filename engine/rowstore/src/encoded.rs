//! Encoded keys and rows, shared between versions, indexes and readers.

use std::sync::Arc;

/// An encoded key ([`nacre_types::key`]).
pub type Key = Arc<[u8]>;
/// An encoded row ([`nacre_types::row`]).
pub type Row = Arc<[u8]>;
