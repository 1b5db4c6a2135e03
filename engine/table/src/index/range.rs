//! Ranges of index keys.

use crate::index::definition::Index;
use nacre_types::hash::hash_bytes;
use nacre_types::{Result, Value};
use std::ops::Bound;

/// Index keys with a given prefix, and bounds on the column after it. Values must be of their
/// column's type. A null in the prefix matches nulls; a bound matches none.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Values of the leading columns, none to all of them.
    pub prefix: Vec<Value>,
    /// Lower bound of the column after them.
    pub low: Bound<Value>,
    /// Upper bound of the column after them.
    pub high: Bound<Value>,
}

/// One end of a range: before the first key with a prefix, or after the last one.
pub(crate) struct RangeEnd {
    pub prefix: Vec<Value>,
    pub after_all: bool,
}

/// The first key of a range, and the exclusive end.
type EncodedRange = (Vec<u8>, Option<Vec<u8>>);

impl KeyRange {
    /// All keys with this prefix.
    pub fn equal(prefix: Vec<Value>) -> KeyRange {
        KeyRange { prefix, low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// The whole index, nulls first.
    pub fn all() -> KeyRange {
        KeyRange::equal(Vec::new())
    }

    /// The hash of its key, if the range is a single key without nulls.
    pub(crate) fn hash(&self, index: &Index) -> Result<Option<u64>> {
        let is_one =
            self.prefix.len() == index.types().len() && !self.prefix.iter().any(Value::is_null);
        debug_assert!(!is_one || !self.is_bounded(), "bounds after all columns of an index");
        if is_one {
            index.encode(&self.prefix).map(|bytes| Some(hash_bytes(&bytes)))
        } else {
            Ok(None)
        }
    }

    /// Whether the column after the prefix has a bound.
    pub(crate) fn is_bounded(&self) -> bool {
        !matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded))
    }

    fn with(&self, value: &Value) -> Vec<Value> {
        let mut values = self.prefix.clone();
        values.push(value.clone());
        values
    }

    /// The start of the range.
    pub(crate) fn begin(&self) -> RangeEnd {
        debug_assert!(!is_null(&self.low), "a lower bound that no key matches");
        let (prefix, after_all) = match &self.low {
            Bound::Included(value) => (self.with(value), false),
            Bound::Excluded(value) => (self.with(value), true),
            // Nulls sort first and match no bound.
            Bound::Unbounded if self.is_bounded() => (self.with(&Value::Null), true),
            Bound::Unbounded => (self.prefix.clone(), false),
        };
        RangeEnd { prefix, after_all }
    }

    /// The end of the range.
    pub(crate) fn end(&self) -> RangeEnd {
        debug_assert!(!is_null(&self.high), "an upper bound that no key matches");
        let (prefix, after_all) = match &self.high {
            Bound::Included(value) => (self.with(value), true),
            Bound::Excluded(value) => (self.with(value), false),
            Bound::Unbounded => (self.prefix.clone(), true),
        };
        RangeEnd { prefix, after_all }
    }

    /// The range as encoded keys: the first key, and the exclusive end.
    pub(crate) fn encode(&self, index: &Index) -> Result<EncodedRange> {
        self.encode_with(&|values| index.encode(values))
    }

    /// Like [`KeyRange::encode`], for keys that `encode` encodes.
    pub(crate) fn encode_with(
        &self,
        encode: &dyn Fn(&[Value]) -> Result<Vec<u8>>,
    ) -> Result<EncodedRange> {
        let bound = |end: RangeEnd| -> Result<Option<Vec<u8>>> {
            let bytes = encode(&end.prefix)?;
            Ok(if end.after_all { successor(bytes) } else { Some(bytes) })
        };
        let from = bound(self.begin())?;
        let to = bound(self.end())?;
        debug_assert!(
            self.is_bounded() || to.as_ref().is_none_or(|to| from.as_ref().is_some_and(|f| f < to)),
            "a range without bounds has no keys"
        );
        // The range is empty if no key can follow its start.
        Ok(match from {
            Some(from) => (from, to),
            None => (Vec::new(), Some(Vec::new())),
        })
    }
}

/// Whether a bound is null, which is above and below no key.
fn is_null(bound: &Bound<Value>) -> bool {
    matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
}

/// The least byte string above all with this prefix; `None` if there is none.
pub(crate) fn successor(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            debug_assert!(bytes.last() > Some(&0), "the successor of a prefix is not above it");
            return Some(bytes);
        }
    }
    None
}
