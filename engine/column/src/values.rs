//! Flat values of one physical type, without nulls.

use crate::Bitmap;
use nacre_types::{PhysicalType, invariant, key};

/// Variable-length values: value `i` is `offsets[i]..offsets[i + 1]` of `data`. There is one more
/// offset than rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesColumn {
    /// Ascending, the first is 0.
    pub offsets: Vec<u32>,
    /// The bytes of all values.
    pub data: Vec<u8>,
}

impl Default for BytesColumn {
    fn default() -> Self {
        BytesColumn { offsets: vec![0], data: Vec::new() }
    }
}

impl BytesColumn {
    /// Number of values.
    pub fn len(&self) -> usize {
        debug_assert!(!self.offsets.is_empty(), "a column of text without offsets");
        self.offsets.len() - 1
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Value `i`.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        debug_assert!(i < self.len(), "value {i} of {}", self.len());
        &self.data[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
    /// Appends a value. A column holds at most 4 GiB.
    ///
    /// # Panics
    /// If the column would exceed 4 GiB.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        let bytes = self.data.len();
        invariant!(bytes <= u32::MAX as usize, "{bytes} bytes of text in one column");
        self.offsets.push(self.data.len() as u32);
    }
}

/// Flat values of one physical type.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// [`PhysicalType::Bool`]
    Bool(Vec<bool>),
    /// [`PhysicalType::I64`]
    I64(Vec<i64>),
    /// [`PhysicalType::I128`]
    I128(Vec<i128>),
    /// [`PhysicalType::F64`]
    F64(Vec<f64>),
    /// [`PhysicalType::Bytes`]
    Bytes(BytesColumn),
}

impl Values {
    /// No values.
    pub fn empty(physical: PhysicalType) -> Values {
        match physical {
            PhysicalType::Bool => Values::Bool(Vec::new()),
            PhysicalType::I64 => Values::I64(Vec::new()),
            PhysicalType::I128 => Values::I128(Vec::new()),
            PhysicalType::F64 => Values::F64(Vec::new()),
            PhysicalType::Bytes => Values::Bytes(BytesColumn::default()),
        }
    }

    /// Estimated memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Values::Bool(v) => v.len(),
            Values::I64(v) => v.len() * 8,
            Values::I128(v) => v.len() * 16,
            Values::F64(v) => v.len() * 8,
            Values::Bytes(v) => v.data.len() + v.offsets.len() * 4,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Bool(v) => v.len(),
            Values::I64(v) => v.len(),
            Values::I128(v) => v.len(),
            Values::F64(v) => v.len(),
            Values::Bytes(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The physical type.
    pub fn physical(&self) -> PhysicalType {
        match self {
            Values::Bool(_) => PhysicalType::Bool,
            Values::I64(_) => PhysicalType::I64,
            Values::I128(_) => PhysicalType::I128,
            Values::F64(_) => PhysicalType::F64,
            Values::Bytes(_) => PhysicalType::Bytes,
        }
    }

    /// Appends a non-null value as a column of an encoded key ([`nacre_types::key`]).
    #[inline]
    pub fn put_key(&self, row: usize, out: &mut Vec<u8>) {
        debug_assert!(row < self.len(), "value {row} of {}", self.len());
        out.push(1);
        match self {
            Values::Bool(v) => out.push(u8::from(v[row])),
            Values::I64(v) => key::put_i64(out, v[row]),
            Values::I128(v) => key::put_i128(out, v[row]),
            Values::F64(v) => key::put_f64(out, v[row]),
            Values::Bytes(v) => key::put_escaped(out, v.get(row)),
        }
    }

    /// The values at these positions, in this order.
    pub fn take(&self, positions: impl ExactSizeIterator<Item = u32>) -> Values {
        match self {
            Values::Bool(v) => Values::Bool(positions.map(|i| v[i as usize]).collect()),
            Values::I64(v) => Values::I64(positions.map(|i| v[i as usize]).collect()),
            Values::I128(v) => Values::I128(positions.map(|i| v[i as usize]).collect()),
            Values::F64(v) => Values::F64(positions.map(|i| v[i as usize]).collect()),
            Values::Bytes(v) => {
                let mut out = BytesColumn::default();
                out.offsets.reserve(positions.len());
                positions.for_each(|i| out.push(v.get(i as usize)));
                Values::Bytes(out)
            }
        }
    }

    /// Like [`Values::take`], but copies no bytes for null rows.
    pub(crate) fn take_valid(
        &self,
        positions: impl ExactSizeIterator<Item = u32>,
        validity: Option<&Bitmap>,
    ) -> Values {
        debug_assert!(
            validity.is_none_or(|v| v.len() == positions.len()),
            "validity of other rows than the {} taken",
            positions.len()
        );
        let (Values::Bytes(column), Some(validity)) = (self, validity) else {
            return self.take(positions);
        };
        let mut out = BytesColumn::default();
        out.offsets.reserve(positions.len());
        for (row, position) in positions.enumerate() {
            out.push(if validity.get(row) { column.get(position as usize) } else { &[] });
        }
        Values::Bytes(out)
    }

    /// Length of the longest value, in bytes; 0 if empty.
    pub(crate) fn longest(&self) -> usize {
        match self {
            Values::Bool(_) => 1,
            Values::I64(_) | Values::F64(_) => 8,
            Values::I128(_) => 16,
            Values::Bytes(v) => {
                v.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
            }
        }
    }
}
