//! Small hash tables from keys to consecutive ids: the open-addressing slot table for grouping and
//! joining, and the interner that turns text and 128-bit values into such ids, so that keys are
//! fixed-width words whatever their types.

use crate::buffer::fit;
use crate::buffer::limits::{BATCH_BYTES, MAX_GROUPS, MOST_TEXT_BYTES, NO_ROW};
use crate::expr::ActiveRows;
use nacre_column::{Bitmap, BytesColumn, Form, Values, Vector};
use nacre_types::hash::{combine, hash_bytes, hash_u64};
use nacre_types::{DataType, Error, PhysicalType, Result};
use std::sync::Arc;

const EMPTY: u32 = u32::MAX;
/// Dictionaries whose ids are cached; a scan returns one segment after another.
const REMEMBERED_DICTIONARIES: usize = 8;

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    id: u32,
}

/// The part of a hash that a slot keeps.
#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Linear probing over `(hash tag, id)`, in the order of the tags: the table grows by moving its slots,
/// from first to last, and needs no keys for that. The owner stores the keys. At most half full.
pub struct SlotTable {
    slots: Vec<Slot>,
    /// How many low bits of a tag its place does not depend on.
    shift: u32,
}

impl SlotTable {
    /// An empty table.
    pub fn new() -> SlotTable {
        SlotTable::of_size(6)
    }

    fn of_size(bits: u32) -> SlotTable {
        SlotTable {
            slots: vec![Slot { tag: 0, id: EMPTY }; 1 << bits],
            shift: 32u32.saturating_sub(bits),
        }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    /// The id of a key, or the free slot where it belongs.
    #[inline]
    pub fn find(
        &self,
        hash: u64,
        mut equals: impl FnMut(u32) -> bool,
    ) -> std::result::Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let tag = tag_of(hash);
        let mut at = (tag >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot.id == EMPTY {
                return Err(at & mask);
            }
            if slot.tag == tag && equals(slot.id) {
                return Ok(slot.id);
            }
            at += 1;
        }
    }

    /// The id in the first slot of each hash if it may be the key's, otherwise [`NO_ROW`]. The loads
    /// depend on nothing else, so the processor waits for many of them at a time.
    pub fn guess(&self, hashes: &[u64], out: &mut Vec<u32>) {
        out.clear();
        out.extend(hashes.iter().map(|hash| {
            let slot = self.slots[(tag_of(*hash) >> self.shift) as usize];
            if slot.tag == tag_of(*hash) { slot.id } else { NO_ROW }
        }));
    }

    /// Fills the slot that `find` returned. `id` must be the number of keys already inserted.
    #[inline]
    pub fn insert(&mut self, slot: usize, hash: u64, id: u32) {
        self.slots[slot] = Slot { tag: tag_of(hash), id };
        if (id as usize + 1) * 2 > self.slots.len() {
            self.grow();
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let mut grown = SlotTable::of_size(self.slots.len().trailing_zeros() + 1);
        let mask = grown.slots.len() - 1;
        for slot in self.slots.iter().filter(|slot| slot.id != EMPTY) {
            let mut at = (slot.tag >> grown.shift) as usize;
            while grown.slots[at & mask].id != EMPTY {
                at += 1;
            }
            grown.slots[at & mask] = *slot;
        }
        *self = grown;
    }
}

fn hash_wide(v: i128) -> u64 {
    combine(hash_u64(v as u64), (v >> 64) as u64)
}

/// Computes the ids of these rows, in order. Calls `id_of` once per run of equal values and once
/// per dictionary entry.
fn each(
    vector: &Vector,
    rows: ActiveRows<'_>,
    seen: &mut Dictionaries,
    out: &mut Vec<u32>,
    mut id_of: impl FnMut(&Values, usize) -> u32,
) {
    out.clear();
    out.reserve(rows.count());
    match vector.form() {
        Form::Dictionary { codes, values } => {
            let mut ids = seen.take(values);
            let is_small = ids.len() <= rows.count();
            if is_small && vector.validity().is_none() && !ids.contains(&NO_ROW) {
                let id = |row: usize| ids[codes[row] as usize];
                match rows.selection {
                    None => out.extend((0..rows.len).map(id)),
                    Some(rows) => out.extend(rows.iter().map(|row| id(*row as usize))),
                }
                return seen.remember(values, ids);
            }
            for row in rows.iter() {
                if vector.is_null(row) {
                    out.push(0);
                    continue;
                }
                let code = codes[row] as usize;
                if ids[code] == NO_ROW {
                    ids[code] = id_of(values, code);
                }
                out.push(ids[code]);
            }
            seen.remember(values, ids);
        }
        Form::Constant(values) => {
            let id = if vector.is_null(0) { 0 } else { id_of(values, 0) };
            out.extend(std::iter::repeat_n(id, rows.count()));
        }
        Form::Flat(values) => {
            for row in rows.iter() {
                out.push(if vector.is_null(row) { 0 } else { id_of(values, row) });
            }
        }
    }
}

/// Distinct values in the order first seen. Id 0 is null; value `n` has id `n + 1`.
pub struct Interner {
    values: Values,
    table: SlotTable,
    seen: Dictionaries,
    /// Whether a text did not fit.
    full: bool,
}

/// Ids of the entries of recently used dictionaries; [`NO_ROW`] if not looked up yet.
#[derive(Default)]
pub struct Dictionaries(Vec<(Arc<Values>, Vec<u32>)>);

impl Dictionaries {
    fn take(&mut self, values: &Arc<Values>) -> Vec<u32> {
        match self.0.iter().position(|(known, _)| Arc::ptr_eq(known, values)) {
            Some(at) => self.0.swap_remove(at).1,
            None => vec![NO_ROW; values.len()],
        }
    }

    fn remember(&mut self, values: &Arc<Values>, ids: Vec<u32>) {
        if self.0.len() >= REMEMBERED_DICTIONARIES {
            self.0.remove(0);
        }
        self.0.push((values.clone(), ids));
    }

    fn memory_bytes(&self) -> usize {
        self.0.iter().map(|(_, ids)| ids.len() * 4).sum()
    }
}

impl Interner {
    /// For values of the physical type `Bytes` or `I128`.
    pub fn new(physical: PhysicalType) -> Interner {
        Interner {
            values: Values::empty(physical),
            table: SlotTable::new(),
            seen: Dictionaries::default(),
            full: false,
        }
    }

    /// The largest id plus one.
    pub fn ids(&self) -> usize {
        self.values.len() + 1
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Bytes(v) => v.data.capacity() + v.offsets.capacity() * 4,
            other => other.len() * 16,
        };
        values + self.table.memory_bytes() + self.seen.memory_bytes()
    }

    fn find_bytes(&self, value: &[u8], hash: u64) -> std::result::Result<u32, usize> {
        let Values::Bytes(values) = &self.values else { return Ok(0) };
        self.table.find(hash, |id| values.get(id as usize) == value)
    }

    fn find_wide(&self, value: i128) -> std::result::Result<u32, usize> {
        let Values::I128(values) = &self.values else { return Ok(0) };
        self.table.find(hash_wide(value), |id| values[id as usize] == value)
    }

    fn insert_bytes(&mut self, value: &[u8], hash: u64) -> u32 {
        let slot = match self.find_bytes(value, hash) {
            Ok(id) => return id + 1,
            Err(slot) => slot,
        };
        let Values::Bytes(values) = &mut self.values else { return 0 };
        if value.len() > MOST_TEXT_BYTES - values.data.len() {
            self.full = true;
            return 0;
        }
        let id = values.len() as u32;
        values.push(value);
        self.table.insert(slot, hash, id);
        id + 1
    }

    fn insert_wide(&mut self, value: i128) -> u32 {
        let slot = match self.find_wide(value) {
            Ok(id) => return id + 1,
            Err(slot) => slot,
        };
        let Values::I128(values) = &mut self.values else { return 0 };
        let id = values.len() as u32;
        values.push(value);
        self.table.insert(slot, hash_wide(value), id);
        id + 1
    }

    /// The ids of texts that are where they are expected, 0 for null, and [`NO_ROW`] for the others;
    /// returns the hashes. Memory is read in passes over all rows, so that the processor waits for
    /// many of them at a time.
    fn known(
        &self,
        texts: &BytesColumn,
        vector: &Vector,
        rows: ActiveRows<'_>,
        out: &mut Vec<u32>,
    ) -> Vec<u64> {
        let mut hashes = Vec::with_capacity(rows.count());
        let mut last: (&[u8], u64) = (&[], hash_bytes(&[]));
        for row in rows.iter() {
            let text = texts.get(row);
            if text != last.0 {
                last = (text, hash_bytes(text));
            }
            hashes.push(last.1);
        }
        self.table.guess(&hashes, out);
        let Values::Bytes(values) = &self.values else { return hashes };
        let first = |id: &u32| values.get(*id as usize).first().copied().unwrap_or_default();
        let touched = out.iter().filter(|id| **id != NO_ROW).map(first);
        std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
        for (row, id) in rows.iter().zip(out) {
            if vector.is_null(row) {
                *id = 0;
            } else if *id != NO_ROW {
                let is_same = values.get(*id as usize) == texts.get(row);
                *id = if is_same { *id + 1 } else { NO_ROW };
            }
        }
        hashes
    }

    /// Returns the ids of these rows in order, 0 for null. Assigns new ids to new values.
    pub fn intern(
        &mut self,
        vector: &Vector,
        rows: ActiveRows<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if let Form::Flat(Values::Bytes(texts)) = vector.form() {
            let hashes = self.known(texts, vector, rows, out);
            for ((row, id), hash) in rows.iter().zip(out).zip(hashes) {
                if *id == NO_ROW {
                    *id = self.insert_bytes(texts.get(row), hash);
                }
            }
        } else {
            let mut seen = std::mem::take(&mut self.seen);
            each(vector, rows, &mut seen, out, |values, at| match values {
                Values::Bytes(v) => self.insert_bytes(v.get(at), hash_bytes(v.get(at))),
                Values::I128(v) => self.insert_wide(v[at]),
                _ => 0,
            });
            self.seen = seen;
        }
        if self.full || self.values.len() > MAX_GROUPS {
            return Err(Error::limit(format!(
                "more than {MAX_GROUPS} distinct values of one key column, or {MOST_TEXT_BYTES} bytes \
                 of them"
            )));
        }
        Ok(())
    }

    /// Like [`Interner::intern`], but returns [`NO_ROW`] for unknown values.
    pub fn lookup(
        &self,
        vector: &Vector,
        rows: ActiveRows<'_>,
        seen: &mut Dictionaries,
        out: &mut Vec<u32>,
    ) {
        let known = |found: std::result::Result<u32, usize>| found.map_or(NO_ROW, |id| id + 1);
        if let Form::Flat(Values::Bytes(texts)) = vector.form() {
            let hashes = self.known(texts, vector, rows, out);
            for ((row, id), hash) in rows.iter().zip(out).zip(hashes) {
                if *id == NO_ROW {
                    *id = known(self.find_bytes(texts.get(row), hash));
                }
            }
            return;
        }
        each(vector, rows, seen, out, |values, at| match values {
            Values::Bytes(v) => known(self.find_bytes(v.get(at), hash_bytes(v.get(at)))),
            Values::I128(v) => known(self.find_wide(v[at])),
            _ => 0,
        });
    }

    /// The values of these ids, as a vector that stores each long text once.
    pub fn vector(&self, data_type: DataType, ids: impl ExactSizeIterator<Item = u32>) -> Vector {
        let mut validity = Bitmap::filled(ids.len(), true);
        let mut positions = Vec::with_capacity(ids.len());
        let mut nulls = false;
        for (at, id) in ids.enumerate() {
            if id == 0 {
                nulls = true;
                validity.set(at, false);
            }
            positions.push(id.saturating_sub(1));
        }
        if self.values.is_empty() {
            return Vector::constant(data_type, &nacre_types::Value::Null, positions.len());
        }
        let validity = nulls.then_some(validity);
        match &self.values {
            Values::Bytes(texts) if !fit(texts, positions.iter().copied(), BATCH_BYTES) => {
                coded(data_type, texts, &positions, validity)
            }
            values => Vector::new(data_type, values.take(positions.into_iter()), validity),
        }
    }
}

/// The texts at these positions, as a dictionary of the distinct ones.
fn coded(
    data_type: DataType,
    texts: &BytesColumn,
    positions: &[u32],
    validity: Option<Bitmap>,
) -> Vector {
    let mut distinct = positions.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let codes = positions
        .iter()
        .map(|position| distinct.partition_point(|d| d < position) as u32)
        .collect();
    let mut values = BytesColumn::default();
    distinct.iter().for_each(|position| values.push(texts.get(*position as usize)));
    Vector::dictionary(data_type, codes, Arc::new(Values::Bytes(values)), validity)
}
