//! The primary key of a row to be written.

use crate::layout::table_layout::TableLayout;
use nacre_types::hash::hash_bytes;
use nacre_types::{Result, Value};

/// The primary key of a row.
pub struct RowKey {
    values: Vec<Value>,
    encoded: Vec<u8>,
}

impl RowKey {
    /// Encodes a key. `limit` if it is too long.
    pub(crate) fn new(layout: &TableLayout, values: Vec<Value>) -> Result<RowKey> {
        let encoded = layout.encode_key(&values)?;
        debug_assert!(!encoded.is_empty(), "a primary key of no columns");
        Ok(RowKey { encoded, values })
    }

    /// Its values, in key order.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Its encoding.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// A hash, the same for equal keys.
    pub fn hash(&self) -> u64 {
        hash_bytes(&self.encoded)
    }
}
