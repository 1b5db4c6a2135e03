//! Keys of rows in columns, encoded row by row ([`nacre_types::key`]) without building values.

use nacre_column::{Values, Vector};
use nacre_types::hash::{combine, hash_bytes};
use std::borrow::{Borrow, Cow};

/// The columns of a key, in its order.
pub(crate) struct KeyRows<'a> {
    columns: Vec<(&'a Vector, Cow<'a, Values>)>,
}

impl<'a> KeyRows<'a> {
    /// Keys made of these columns, which have the same length.
    pub fn new<V: Borrow<Vector>>(columns: &'a [V]) -> KeyRows<'a> {
        debug_assert!(
            columns.windows(2).all(|pair| pair[0].borrow().len() == pair[1].borrow().len()),
            "columns of a key have different lengths"
        );
        KeyRows {
            columns: columns
                .iter()
                .map(|column| (column.borrow(), column.borrow().flat()))
                .collect(),
        }
    }

    /// Appends the key of a row. Returns whether any of its columns is null.
    #[inline]
    pub fn put(&self, row: usize, out: &mut Vec<u8>) -> bool {
        debug_assert!(
            self.columns.iter().all(|(vector, _)| row < vector.len()),
            "the key of row {row}, which a column does not have"
        );
        let before = out.len();
        let mut has_null = false;
        for (vector, values) in &self.columns {
            if vector.is_null(row) {
                out.push(0);
                has_null = true;
            } else {
                values.put_key(row, out);
            }
        }
        debug_assert!(out.len() >= before + self.columns.len(), "a column of a key takes 0 bytes");
        has_null
    }
}

/// Two hashes of a key. Different keys collide in both so rarely that sets of keys are compared by
/// fingerprints alone.
pub(crate) fn fingerprint(key: &[u8]) -> (u64, u64) {
    let hash = hash_bytes(key);
    let fold = |h: u64, b: &u8| (h ^ *b as u64).wrapping_mul(0x100_0000_01b3);
    (hash, combine(hash, key.iter().fold(0xcbf2_9ce4_8422_2325, fold)))
}
