//! Assigns each distinct key an id, in the order keys are first seen, for grouping, `DISTINCT` and
//! hash joins.
//!
//! A key is packed into 64-bit words: narrow integers take the bits of their type, text and 128-bit
//! values become interned ids. While the keys span few combinations, ids come from a dense table
//! addressed by the values; beyond that, from a hash table over the words. Nulls are equal to each
//! other.

use super::codes::Codes;
use super::dense::{Axis, dense_lookup, dense_slots, known_groups};
use super::intern::{Dictionaries, Interner, SlotTable};
use crate::buffer::limits::{MAX_GROUPS, NO_ROW};
use crate::expr::ActiveRows;
use nacre_column::Vector;
use nacre_types::hash::{combine, hash_u64};
use nacre_types::{DataType, Error, PhysicalType, Result};
use std::sync::Arc;

/// Slots that a dense table may always have. More are allowed in proportion to the number of
/// groups.
const DENSE_SLOTS: usize = 1 << 14;
const DENSE_SLOTS_A_GROUP: usize = 16;
/// The number of groups at which a hash table is first considered for conversion to a dense table,
/// then again whenever it doubles.
const CONSIDERED_GROUPS: usize = 4 << 10;

/// Where a column is packed. Narrow columns store `value - low + 1`, so that zero means null.
struct Field {
    data_type: DataType,
    interner: Option<Interner>,
    /// Least value of a narrow type; `None` if the value takes a whole word.
    low: Option<i64>,
    word: usize,
    shift: u32,
    bits: u32,
    /// Position of the null bit of a whole-word column. `None` for a single column.
    null: Option<(usize, u32)>,
}

/// Assigns ids to keys.
pub struct Grouper {
    fields: Vec<Field>,
    stride: usize,
    keys: Vec<u64>,
    groups: usize,
    /// The group of null for a single whole-word column.
    null_group: u32,
    table: SlotTable,
    pub(super) dense: Option<(Vec<Axis>, Vec<u32>)>,
    /// The number of groups at which to consider a dense table next.
    consider_at: usize,
    ids: Vec<u32>,
}

fn narrow_range(data_type: DataType) -> Option<(i64, u32)> {
    Some(match data_type {
        DataType::Null | DataType::Boolean => (0, 2),
        DataType::Int8 => (i8::MIN as i64, 9),
        DataType::UInt8 => (0, 9),
        DataType::Int16 => (i16::MIN as i64, 17),
        DataType::UInt16 => (0, 17),
        DataType::Int32 | DataType::Date => (i32::MIN as i64, 33),
        DataType::UInt32 => (0, 33),
        DataType::Time => (0, 40),
        _ => return None,
    })
}

impl Grouper {
    /// Creates a grouper for keys of these types.
    pub fn new(types: &[DataType]) -> Grouper {
        let mut fields: Vec<Field> = types
            .iter()
            .map(|&data_type| {
                let physical = data_type.physical();
                let interned = matches!(physical, PhysicalType::Bytes | PhysicalType::I128);
                let (low, bits) = match narrow_range(data_type) {
                    _ if interned => (Some(1), 32),
                    Some((low, bits)) => (Some(low), bits),
                    None => (None, 64),
                };
                let interner = interned.then(|| Interner::new(physical));
                Field { data_type, interner, low, word: 0, shift: 0, bits, null: None }
            })
            .collect();
        // Whole words first, then each narrower column into the first word with enough bits left.
        let mut free: Vec<u32> = Vec::new();
        let alone = fields.len() == 1;
        for field in fields.iter_mut().filter(|f| f.low.is_none()) {
            field.word = free.len();
            free.push(0);
        }
        let mut place = |bits: u32| {
            let word = free.iter().position(|room| *room >= bits).unwrap_or_else(|| {
                free.push(64);
                free.len() - 1
            });
            free[word] -= bits;
            (word, 64 - free[word] - bits)
        };
        for field in &mut fields {
            if field.low.is_some() {
                (field.word, field.shift) = place(field.bits);
            } else if !alone {
                field.null = Some(place(1));
            }
        }
        let dense =
            fields.iter().all(|f| !f.data_type.is_float()).then(|| (Vec::new(), Vec::new()));
        Grouper {
            stride: free.len().max(1),
            fields,
            keys: Vec::new(),
            groups: 0,
            null_group: NO_ROW,
            table: SlotTable::new(),
            dense,
            consider_at: CONSIDERED_GROUPS,
            ids: Vec::new(),
        }
    }

    /// Number of distinct keys.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let interners: usize = self
            .fields
            .iter()
            .filter_map(|f| f.interner.as_ref())
            .map(Interner::memory_bytes)
            .sum();
        let dense = self.dense.as_ref().map_or(0, |(_, slots)| slots.len() * 4);
        self.keys.capacity() * 8 + self.table.memory_bytes() + dense + interners
    }

    /// Like [`Grouper::assign`], but returns [`NO_ROW`] for unknown keys. Threads may look up
    /// concurrently, each with its own dictionary cache.
    pub fn lookup(
        &self,
        keys: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        seen: &mut Seen,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.clear();
        if self.fields.is_empty() {
            out.resize(rows.count(), if self.groups == 0 { NO_ROW } else { 0 });
            return Ok(());
        }
        seen.0.resize_with(self.fields.len(), Dictionaries::default);
        let mut codes: Vec<Codes> = Vec::with_capacity(keys.len());
        let mut ids = Vec::new();
        for ((field, vector), seen) in self.fields.iter().zip(keys).zip(&mut seen.0) {
            codes.push(match &field.interner {
                Some(interner) => {
                    interner.lookup(vector, rows, seen, &mut ids);
                    Codes::of_ids(&ids, vector)
                }
                None => Codes::of(vector, rows)?,
            });
        }
        match &self.dense {
            Some((axes, slots)) => dense_lookup(axes, slots, &codes, rows.count(), out),
            None => self.hashed_lookup(&codes, rows.count(), out),
        }
        Ok(())
    }

    /// Returns the group of each row in order. Assigns new groups to new keys.
    pub fn assign(
        &mut self,
        keys: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.clear();
        if self.fields.is_empty() {
            self.groups = 1;
            out.resize(rows.count(), 0);
            return Ok(());
        }
        if let (Some((axes, slots)), [vector]) = (&self.dense, keys)
            && self.fields[0].interner.is_none()
            && rows.selection.is_none()
            && known_groups(axes, slots, vector, out)
        {
            return Ok(());
        }
        out.clear();
        let n = rows.count();
        let mut codes: Vec<Codes> = Vec::with_capacity(keys.len());
        for (field, vector) in self.fields.iter_mut().zip(keys) {
            codes.push(match &mut field.interner {
                Some(interner) => {
                    let mut ids = std::mem::take(&mut self.ids);
                    interner.intern(vector, rows, &mut ids)?;
                    let codes = Codes::of_ids(&ids, vector);
                    self.ids = ids;
                    codes
                }
                None => Codes::of(vector, rows)?,
            });
        }
        if self.dense.is_some() && self.extend_dense(&codes) {
            self.assign_dense(&codes, n, out);
        } else {
            self.assign_hashed(&codes, n, out);
            self.consider_dense();
        }
        if self.groups > MAX_GROUPS {
            return Err(Error::limit(format!("more than {MAX_GROUPS} groups")));
        }
        Ok(())
    }

    /// Extends the dense table to cover these values. If it would grow too large, converts to a
    /// hash table for good and returns false.
    fn extend_dense(&mut self, codes: &[Codes]) -> bool {
        let Some((axes, slots)) = &mut self.dense else { return false };
        let fresh = axes.is_empty();
        let mut changed = fresh;
        let mut wanted = Vec::with_capacity(codes.len());
        for (index, (field, codes)) in self.fields.iter().zip(codes).enumerate() {
            let known = axes
                .get(index)
                .filter(|a| a.size > 1)
                .map(|a| (a.low, a.low.saturating_add(a.size as i64 - 2)));
            let seen = match &field.interner {
                Some(interner) => Some((1, interner.ids() as i64)),
                None => codes.range(),
            };
            let axis = match (known, seen) {
                (None, None) => Axis { low: 0, size: 1 },
                (Some(_), None) => axes[index],
                (Some((low, high)), Some((a, b))) if low <= a && b <= high => axes[index],
                (known, Some((a, b))) => {
                    let (low, high) = known.map_or((a, b), |(low, high)| (low.min(a), high.max(b)));
                    let Some(span) = high.checked_sub(low).filter(|s| *s < 1 << 30) else {
                        self.dense = None;
                        return self.leave_dense();
                    };
                    changed = true;
                    // Leave spare room on the side that grew, so that rebuilding stays rare.
                    let size = (span as usize + 2).next_power_of_two();
                    let spare = (size - span as usize - 2) as i64;
                    let downwards = known.is_some_and(|(low, high)| a < low && b <= high);
                    let low = if downwards { low.saturating_sub(spare) } else { low };
                    Axis { low, size }
                }
            };
            wanted.push(axis);
        }
        if !changed {
            return true;
        }
        let limit = DENSE_SLOTS.max(self.groups.saturating_mul(DENSE_SLOTS_A_GROUP));
        let total = wanted.iter().try_fold(1usize, |product, axis| product.checked_mul(axis.size));
        match total.filter(|total| *total <= limit) {
            Some(total) => {
                *axes = wanted;
                slots.clear();
                slots.resize(total, NO_ROW);
                for group in 0..self.groups {
                    if let Some(at) = self.dense_slot_of_group(group)
                        && let Some((_, slots)) = &mut self.dense
                    {
                        slots[at] = group as u32;
                    }
                }
                true
            }
            None => {
                self.dense = None;
                self.leave_dense()
            }
        }
    }

    /// Moves all groups to the hash table. Returns false: no longer dense.
    fn leave_dense(&mut self) -> bool {
        for group in 0..self.groups as u32 {
            if group == self.null_group {
                // Null has no slot. The slot table counts ids, so it may only be fuller than
                // necessary.
                continue;
            }
            let hash = hash_words(self.words(group));
            if let Err(slot) = self.table.find(hash, |_| false) {
                self.table.insert(slot, hash, group);
            }
        }
        false
    }

    fn words(&self, group: u32) -> &[u64] {
        words_of(&self.keys, self.stride, group)
    }

    /// The value of one column of a group; `None` if null.
    fn code_of_group(&self, field: &Field, group: usize) -> Option<i64> {
        let words = self.words(group as u32);
        match field.low {
            Some(low) => {
                let raw = (words[field.word] >> field.shift) & ((1u64 << field.bits) - 1);
                (raw != 0).then(|| low.wrapping_add(raw as i64 - 1))
            }
            None => {
                let null = match field.null {
                    Some((word, shift)) => words[word] >> shift & 1 == 1,
                    None => group as u32 == self.null_group,
                };
                (!null).then_some(words[field.word] as i64)
            }
        }
    }

    /// The values of an integer key column by group, `None` for other types. The value of a null
    /// group is arbitrary.
    pub fn integers(&self, column: usize) -> Option<impl ExactSizeIterator<Item = i64> + Clone> {
        let field = self.fields.get(column)?;
        let is_integer = field.interner.is_none() && !field.data_type.is_float();
        is_integer.then(|| {
            (0..self.groups).map(|group| self.code_of_group(field, group).unwrap_or_default())
        })
    }

    fn dense_slot_of_group(&self, group: usize) -> Option<usize> {
        let (axes, _) = self.dense.as_ref()?;
        let mut at = 0;
        for (field, axis) in self.fields.iter().zip(axes) {
            let code = self
                .code_of_group(field, group)
                .map_or(0, |v| v.wrapping_sub(axis.low) as usize + 1);
            at = at * axis.size + code;
        }
        Some(at)
    }

    fn assign_dense(&mut self, codes: &[Codes], n: usize, out: &mut Vec<u32>) {
        let Some((axes, mut slots)) = self.dense.take() else { return };
        for (k, at) in dense_slots(&axes, codes, n).into_iter().enumerate() {
            let mut group = slots[at];
            if group == NO_ROW {
                group = self.push_group(codes, k);
                slots[at] = group;
            }
            out.push(group);
        }
        self.dense = Some((axes, slots));
    }

    /// Adds a group with the key of row `k`.
    fn push_group(&mut self, codes: &[Codes], k: usize) -> u32 {
        let group = self.groups as u32;
        let start = self.keys.len();
        self.keys.resize(start + self.stride, 0);
        for (field, codes) in self.fields.iter().zip(codes) {
            let null = codes.is_null(k);
            if null && field.low.is_none() && field.null.is_none() {
                self.null_group = group;
            }
            pack(field, codes.values[k], null, &mut self.keys[start..]);
        }
        self.groups += 1;
        group
    }

    /// Packs the keys of the rows.
    fn pack_all(&self, codes: &[Codes], n: usize) -> Vec<u64> {
        let stride = self.stride;
        let mut words = vec![0u64; n * stride];
        for (field, codes) in self.fields.iter().zip(codes) {
            match (field.low, &codes.nulls) {
                (None, None) => {
                    for (key, v) in words.chunks_exact_mut(stride).zip(&codes.values) {
                        key[field.word] = *v as u64;
                    }
                }
                _ => {
                    for (k, key) in words.chunks_exact_mut(stride).enumerate() {
                        pack(field, codes.values[k], codes.is_null(k), key);
                    }
                }
            }
        }
        words
    }

    /// The null mask, if null has no bit in the packed key.
    fn out_of_band<'a>(&self, codes: &'a [Codes]) -> Option<&'a Vec<bool>> {
        let field = self.fields.first().filter(|field| field.low.is_none() && field.null.is_none());
        field.and_then(|_| codes.first()).and_then(|c| c.nulls.as_ref())
    }

    #[inline]
    fn find(&self, key: &[u64], hash: u64) -> std::result::Result<u32, usize> {
        let (keys, stride) = (&self.keys, self.stride);
        match key {
            [word] => self.table.find(hash, |id| keys[id as usize] == *word),
            _ => self.table.find(hash, |id| words_of(keys, stride, id) == key),
        }
    }

    /// Switches to a dense table if the keys, sparse at first, have since filled their range.
    fn consider_dense(&mut self) {
        let [field] = self.fields.as_slice() else { return };
        if self.groups < self.consider_at || field.interner.is_some() || field.data_type.is_float()
        {
            return;
        }
        self.consider_at = self.groups * 2;
        let values = || (0..self.groups).filter_map(|group| self.code_of_group(field, group));
        let (Some(low), Some(high)) = (values().min(), values().max()) else { return };
        let Some(span) = high.checked_sub(low).filter(|span| *span < 1 << 30) else { return };
        let size = (span as usize + 2).next_power_of_two();
        if size > self.groups.saturating_mul(DENSE_SLOTS_A_GROUP) {
            return;
        }
        self.dense = Some((vec![Axis { low, size }], Vec::new()));
        let mut slots = vec![NO_ROW; size];
        for group in 0..self.groups {
            if let Some(at) = self.dense_slot_of_group(group) {
                slots[at] = group as u32;
            }
        }
        self.dense = Some((vec![Axis { low, size }], slots));
        self.table = SlotTable::new();
    }

    /// The groups of packed keys that are where they are expected, and [`NO_ROW`] for the others;
    /// returns the hashes. See [`SlotTable::guess`].
    fn known(&self, words: &[u64], out: &mut Vec<u32>) -> Vec<u64> {
        let (keys, stride) = (&self.keys, self.stride);
        let hashes: Vec<u64> = words.chunks_exact(stride).map(hash_words).collect();
        self.table.guess(&hashes, out);
        let first = |group: u32| {
            // Of no group it is beyond all keys, and beyond what fits in 32 bits.
            let at = (group as usize).saturating_mul(stride);
            keys.get(at).copied().unwrap_or_default()
        };
        for (group, key) in out.iter_mut().zip(words.chunks_exact(stride)) {
            // Nearly all are right: whether one is, is no reason for the processor to wait.
            let is_right = first(*group) == key[0];
            *group = if is_right { *group } else { NO_ROW };
        }
        if stride > 1 {
            for (group, key) in out.iter_mut().zip(words.chunks_exact(stride)) {
                if *group != NO_ROW && words_of(keys, stride, *group) != key {
                    *group = NO_ROW;
                }
            }
        }
        hashes
    }

    fn hashed_lookup(&self, codes: &[Codes], n: usize, out: &mut Vec<u32>) {
        let nulls = self.out_of_band(codes);
        let words = self.pack_all(codes, n);
        let hashes = self.known(&words, out);
        let mut before: (&[u64], u32) = (&[], NO_ROW);
        for (k, (key, group)) in words.chunks_exact(self.stride).zip(out).enumerate() {
            if nulls.is_some_and(|nulls| nulls[k]) {
                *group = self.null_group;
            } else if *group == NO_ROW {
                // Input is often sorted or clustered by a key.
                if !is_same(key, before.0) {
                    before = (key, self.find(key, hashes[k]).unwrap_or(NO_ROW));
                }
                *group = before.1;
            }
        }
    }

    fn assign_hashed(&mut self, codes: &[Codes], n: usize, out: &mut Vec<u32>) {
        let stride = self.stride;
        let nulls = self.out_of_band(codes);
        let words = self.pack_all(codes, n);
        let hashes = self.known(&words, out);
        let mut before: (&[u64], u32) = (&[], NO_ROW);
        for (k, (key, known)) in words.chunks_exact(stride).zip(out).enumerate() {
            if nulls.is_some_and(|nulls| nulls[k]) {
                if self.null_group == NO_ROW {
                    self.push_group(codes, k);
                }
                *known = self.null_group;
            } else if *known == NO_ROW {
                // Input is often sorted or clustered by a key.
                if !is_same(key, before.0) {
                    before = (key, self.find_or_add(key, hashes[k]));
                }
                *known = before.1;
            }
        }
    }

    fn find_or_add(&mut self, key: &[u64], hash: u64) -> u32 {
        match self.find(key, hash) {
            Ok(group) => group,
            Err(slot) => {
                let group = self.groups as u32;
                self.keys.extend_from_slice(key);
                self.groups += 1;
                self.table.insert(slot, hash, group);
                group
            }
        }
    }

    /// The keys of a range of groups, one vector per column.
    pub fn key_vectors(&self, from: usize, to: usize) -> Vec<Arc<Vector>> {
        self.fields
            .iter()
            .map(|field| {
                let codes = (from..to).map(|group| self.code_of_group(field, group));
                if let Some(interner) = &field.interner {
                    let ids: Vec<u32> = codes.map(|c| c.unwrap_or(0) as u32).collect();
                    return Arc::new(interner.vector(field.data_type, ids.into_iter()));
                }
                let mut builder = nacre_column::VectorBuilder::new(field.data_type);
                for code in codes {
                    match (code, field.data_type.physical()) {
                        (None, _) => builder.push_null(),
                        (Some(v), PhysicalType::Bool) => builder.push_bool(v != 0),
                        (Some(v), PhysicalType::F64) => builder.push_f64(from_order(v as u64)),
                        (Some(v), _) => builder.push_i64(v),
                    }
                }
                Arc::new(builder.finish())
            })
            .collect()
    }
}

#[inline]
fn is_same(key: &[u64], before: &[u64]) -> bool {
    match (key, before) {
        ([a], [b]) => a == b,
        _ => key == before,
    }
}

/// A thread's dictionary cache for lookups.
#[derive(Default)]
pub struct Seen(Vec<Dictionaries>);

fn pack(field: &Field, value: i64, null: bool, words: &mut [u64]) {
    match (field.low, field.null) {
        (Some(_), _) if null => {}
        (Some(low), _) => {
            words[field.word] |= (value.wrapping_sub(low).wrapping_add(1) as u64) << field.shift
        }
        (None, Some((word, shift))) if null => words[word] |= 1 << shift,
        (None, None) if null => {}
        (None, _) => words[field.word] = value as u64,
    }
}

#[inline]
fn words_of(keys: &[u64], stride: usize, group: u32) -> &[u64] {
    let start = group as usize * stride;
    &keys[start..start + stride]
}

#[inline]
fn hash_words(words: &[u64]) -> u64 {
    match words {
        [one] => hash_u64(*one),
        [first, rest @ ..] => rest.iter().fold(hash_u64(*first), |hash, word| combine(hash, *word)),
        [] => 0,
    }
}

fn from_order(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}
