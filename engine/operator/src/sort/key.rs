//! Sort keys as bytes that compare like the rows: a tag for null, values in an order-preserving
//! encoding, inverted where the order is descending. Keys of at most 16 bytes are kept as integers.

use nacre_column::Vector;
use nacre_function::kernel::order::packed_length;
use nacre_function::vector::{
    rows::ActiveRows,
    view::{self, Texts},
};
use nacre_sql::plan::SortKey;
use nacre_types::invariant::broken;
use nacre_types::{DataType, PhysicalType, key};
use std::cmp::Ordering;
use std::sync::Arc;

/// Encoded keys of rows, in the order the rows came.
pub enum SortKeys {
    /// Right-aligned in 128 bits.
    Fixed(Vec<u128>),
    /// Of any length.
    Bytes {
        /// The key of row `i` is `data[offsets[i]..offsets[i + 1]]`.
        data: Vec<u8>,
        /// Where the keys begin, and where the last one ends.
        offsets: Vec<usize>,
        /// The first 16 bytes of each key, which decide most comparisons.
        prefixes: Vec<u128>,
    },
}

/// Bits of a value of fixed width; `None` when its width varies or it is too wide.
fn width(data_type: DataType) -> Option<u32> {
    Some(match data_type {
        DataType::Null | DataType::Boolean => 8,
        DataType::Int8 | DataType::UInt8 => 9,
        DataType::Int16 | DataType::UInt16 => 17,
        DataType::Int32 | DataType::UInt32 | DataType::Date => 33,
        DataType::Time => 40,
        _ => match data_type.physical() {
            PhysicalType::I64 | PhysicalType::F64 => 64,
            PhysicalType::Bool => 8,
            _ => return None,
        },
    })
}

const TAG_BITS: u32 = 1;

impl SortKeys {
    /// No rows.
    pub fn new(keys: &[SortKey]) -> SortKeys {
        let bits =
            keys.iter().try_fold(0, |sum, k| Some(sum + TAG_BITS + width(k.expr.data_type)?));
        match bits {
            Some(bits) if bits <= 128 => SortKeys::Fixed(Vec::new()),
            _ => SortKeys::Bytes { data: Vec::new(), offsets: vec![0], prefixes: Vec::new() },
        }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            SortKeys::Fixed(keys) => keys.capacity() * 16,
            SortKeys::Bytes { data, offsets, prefixes } => {
                data.capacity() + offsets.capacity() * 8 + prefixes.capacity() * 16
            }
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            SortKeys::Fixed(keys) => keys.len(),
            SortKeys::Bytes { prefixes, .. } => prefixes.len(),
        }
    }

    /// Appends the keys of these rows.
    pub fn append(&mut self, keys: &[SortKey], vectors: &[Arc<Vector>], rows: ActiveRows<'_>) {
        match self {
            SortKeys::Fixed(out) => {
                let start = out.len();
                out.resize(start + rows.count(), 0);
                for (key, vector) in keys.iter().zip(vectors) {
                    append_fixed(key, vector, rows, &mut out[start..]);
                }
            }
            SortKeys::Bytes { data, offsets, prefixes } => {
                let columns: Vec<KeyColumn<'_>> =
                    vectors.iter().map(|v| KeyColumn::new(v)).collect();
                for row in rows.iter() {
                    let start = data.len();
                    for ((key, vector), column) in keys.iter().zip(vectors).zip(&columns) {
                        append_bytes(key, vector, column, row, data);
                    }
                    offsets.push(data.len());
                    prefixes.push(prefix(&data[start..]));
                }
            }
        }
    }

    /// Compares two rows; equal keys in the order the rows came.
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        self.compare_keys(a as usize, b as usize).then(a.cmp(&b))
    }

    fn compare_keys(&self, a: usize, b: usize) -> Ordering {
        match self {
            SortKeys::Fixed(keys) => keys[a].cmp(&keys[b]),
            SortKeys::Bytes { data, offsets, prefixes } => {
                prefixes[a].cmp(&prefixes[b]).then_with(|| {
                    data[offsets[a]..offsets[a + 1]].cmp(&data[offsets[b]..offsets[b + 1]])
                })
            }
        }
    }

    /// Compares a row with one of other keys for the same columns.
    pub fn compare_with(&self, a: usize, other: &SortKeys, b: usize) -> Ordering {
        match (self, other) {
            (SortKeys::Fixed(own), SortKeys::Fixed(theirs)) => own[a].cmp(&theirs[b]),
            (
                SortKeys::Bytes { data, offsets, .. },
                SortKeys::Bytes { data: their_data, offsets: their_offsets, .. },
            ) => data[offsets[a]..offsets[a + 1]]
                .cmp(&their_data[their_offsets[b]..their_offsets[b + 1]]),
            _ => broken(format_args!("sort keys of different columns are compared")),
        }
    }

    /// Whether the keys are in order.
    pub fn is_sorted(&self) -> bool {
        (1..self.len()).all(|at| self.compare_keys(at - 1, at).is_le())
    }

    /// Whether two rows have equal keys.
    pub fn same(&self, a: u32, b: u32) -> bool {
        self.compare_keys(a as usize, b as usize).is_eq()
    }

    /// Whether row `row` comes before row `bound` by its key.
    pub fn is_before(&self, row: usize, bound: usize) -> bool {
        self.compare_keys(row, bound).is_lt()
    }

    /// All rows in order; the first `limit` only when given.
    pub fn order(&self, limit: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        if limit < order.len() {
            order = if limit > 0 { self.first_of(order, limit).0 } else { Vec::new() };
        }
        let first = match self {
            SortKeys::Fixed(keys) => keys,
            SortKeys::Bytes { prefixes, .. } => prefixes,
        };
        // Sorting keys in place causes far fewer cache misses than sorting positions.
        let mut pairs: Vec<(u128, u32)> =
            order.iter().map(|row| (first[*row as usize], *row)).collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1)));
        pairs.into_iter().map(|(_, row)| row).collect()
    }

    /// Those of these positions whose rows come first, at most `limit` of them, ascending; and the
    /// last of them in the order of the keys, if there are that many.
    pub fn first_of(&self, mut positions: Vec<u32>, limit: usize) -> (Vec<u32>, Option<u32>) {
        debug_assert!(limit > 0, "some rows are wanted");
        if positions.len() < limit {
            return (positions, None);
        }
        let (_, last, _) = positions.select_nth_unstable_by(limit - 1, |a, b| self.compare(*a, *b));
        let last = *last;
        positions.truncate(limit);
        positions.sort_unstable();
        (positions, Some(last))
    }

    /// Keeps only the keys at these positions, in this order.
    pub fn retain(&mut self, positions: &[u32]) {
        match self {
            SortKeys::Fixed(keys) => *keys = positions.iter().map(|i| keys[*i as usize]).collect(),
            SortKeys::Bytes { data, offsets, prefixes } => {
                let mut kept = (Vec::new(), vec![0], Vec::new());
                for &i in positions {
                    let i = i as usize;
                    kept.0.extend_from_slice(&data[offsets[i]..offsets[i + 1]]);
                    kept.1.push(kept.0.len());
                    kept.2.push(prefixes[i]);
                }
                (*data, *offsets, *prefixes) = kept;
            }
        }
    }
}

impl SortKeys {
    /// Keeps, of the rows from `start` on, only those at these ascending positions.
    pub fn keep_from(&mut self, start: usize, kept: &[u32]) {
        let len = start + kept.len();
        match self {
            SortKeys::Fixed(keys) => {
                for (to, from) in (start..).zip(kept) {
                    keys[to] = keys[*from as usize];
                }
                keys.truncate(len);
            }
            SortKeys::Bytes { data, offsets, prefixes } => {
                for (to, from) in (start..).zip(kept) {
                    let range = offsets[*from as usize]..offsets[*from as usize + 1];
                    let length = range.len();
                    data.copy_within(range, offsets[to]);
                    prefixes[to] = prefixes[*from as usize];
                    offsets[to + 1] = offsets[to] + length;
                }
                prefixes.truncate(len);
                offsets.truncate(len + 1);
                data.truncate(offsets[len]);
            }
        }
    }
}

fn prefix(bytes: &[u8]) -> u128 {
    let mut first = [0; 16];
    let n = bytes.len().min(16);
    first[..n].copy_from_slice(&bytes[..n]);
    u128::from_be_bytes(first)
}

/// The tags of null and of a value.
fn tags(key: &SortKey) -> (u8, u8) {
    if key.nulls_first { (0, 1) } else { (1, 0) }
}

fn append_fixed(key: &SortKey, vector: &Vector, rows: ActiveRows<'_>, out: &mut [u128]) {
    let Some(bits) = width(vector.data_type()) else { return };
    let (null_tag, value_tag) = tags(key);
    let mask = if bits == 64 { u64::MAX } else { (1u64 << bits) - 1 };
    let flip = if key.descending { mask } else { 0 };
    let column = KeyColumn::new(vector);
    for (out, row) in out.iter_mut().zip(rows.iter()) {
        let (tag, value) = if vector.is_null(row) {
            (null_tag, 0)
        } else {
            (value_tag, column.fixed(row, bits) ^ flip)
        };
        *out = (*out << (bits + TAG_BITS)) | ((tag as u128) << bits) | (value & mask) as u128;
    }
}

/// A key column, typed once for a batch.
enum KeyColumn<'a> {
    Narrow(view::View<'a, i64>),
    Wide(view::View<'a, i128>, bool),
    Float(view::View<'a, f64>),
    Bool(view::View<'a, bool>),
    Texts(Texts<'a>),
}

impl KeyColumn<'_> {
    fn new(vector: &Vector) -> KeyColumn<'_> {
        if let Some(v) = view::i64s(vector) {
            KeyColumn::Narrow(v)
        } else if let Some(v) = view::f64s(vector) {
            KeyColumn::Float(v)
        } else if let Some(v) = view::i128s(vector) {
            KeyColumn::Wide(v, vector.data_type() == DataType::Interval)
        } else if let Some(v) = view::bools(vector) {
            KeyColumn::Bool(v)
        } else {
            KeyColumn::Texts(Texts::new(vector))
        }
    }

    /// The value as an order-preserving unsigned integer of `bits` bits.
    fn fixed(&self, row: usize, bits: u32) -> u64 {
        match self {
            // The offset makes the least value of a narrow integer, of either sign, zero or more.
            KeyColumn::Narrow(v) => (v.get(row) as u64).wrapping_add(1 << (bits - 1)),
            KeyColumn::Float(v) => key::order_f64(v.get(row)),
            KeyColumn::Bool(v) => v.get(row) as u64,
            _ => 0,
        }
    }
}

fn append_bytes(
    sort: &SortKey,
    vector: &Vector,
    column: &KeyColumn<'_>,
    row: usize,
    out: &mut Vec<u8>,
) {
    let (null_tag, value_tag) = tags(sort);
    if vector.is_null(row) {
        out.push(null_tag);
        return;
    }
    out.push(value_tag);
    let start = out.len();
    match column {
        KeyColumn::Narrow(v) => key::put_i64(out, v.get(row)),
        KeyColumn::Wide(v, false) => key::put_i128(out, v.get(row)),
        KeyColumn::Wide(v, true) => key::put_i128(out, packed_length(v.get(row))),
        KeyColumn::Float(v) => key::put_f64(out, v.get(row)),
        KeyColumn::Bool(v) => out.push(v.get(row) as u8),
        KeyColumn::Texts(v) => key::put_escaped(out, v.bytes(row)),
    }
    if sort.descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}
