//! Tests whether a key may be in a segment.

use super::opened::Opened;
use nacre_column::Scalar;
use nacre_format::filter::bits;
use nacre_types::{Error, Result};

impl Opened {
    /// Whether a key may be in the segment, by the filter in column `filter`; `false` is certain.
    /// `hash` is [`hash_bytes`](nacre_types::hash::hash_bytes) of the encoded key
    /// ([`nacre_types::key`]), which has no null.
    pub fn may_have(&self, filter: usize, hash: u64) -> Result<bool> {
        if self.rows() == 0 {
            return Ok(false);
        }
        let (block, bits) = bits(self.rows(), hash);
        debug_assert!(block < self.blocks(), "a hash in block {block} of {}", self.blocks());
        self.look(filter, block, |block| {
            for (row, bit) in bits {
                match block.get(row)? {
                    Scalar::I64(word) if word >> bit & 1 == 1 => {}
                    Scalar::I64(_) => return Ok(false),
                    _ => return Err(Error::corrupt("filter column is not an integer column")),
                }
            }
            Ok(true)
        })
    }
}
