//! Small hash tables from keys to ids that are given out in order: the open-addressing slot table under
//! grouping and joining, and the interner that turns text and 128-bit values into such ids, so that group
//! and join keys are fixed-width words whatever their types.

use crate::expr::{Rows, Texts};
use crate::store::NO_ROW;
use nacre_column::{BytesColumn, Form, Values, Vector};
use nacre_types::hash::{combine, hash_bytes, hash_u64};
use nacre_types::{DataType, Error, PhysicalType, Result};
use std::sync::Arc;

const EMPTY: u32 = u32::MAX;
/// Dictionaries whose ids are remembered; segments of one scan come one after another.
const REMEMBERED_DICTIONARIES: usize = 8;

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    id: u32,
}

/// Linear probing over `(hash tag, id)`; the keys live with the owner. At most half full.
pub(crate) struct SlotTable {
    slots: Vec<Slot>,
}

impl SlotTable {
    /// An empty table.
    pub fn new() -> SlotTable {
        SlotTable { slots: vec![Slot { tag: 0, id: EMPTY }; 64] }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }

    /// The id of a key, or the free slot where it belongs.
    #[inline]
    pub fn find(&self, hash: u64, mut equals: impl FnMut(u32) -> bool) -> std::result::Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY {
                return Err(at);
            }
            if slot.tag == tag && equals(slot.id) {
                return Ok(slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Fills a slot that `find` answered. `id` must be the number of keys before it.
    #[inline]
    pub fn insert(&mut self, slot: usize, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        self.slots[slot] = Slot { tag: (hash >> 32) as u32, id };
        if (id as usize + 1) * 2 > self.slots.len() {
            let doubled = vec![Slot { tag: 0, id: EMPTY }; self.slots.len() * 2];
            let mask = doubled.len() - 1;
            for slot in std::mem::replace(&mut self.slots, doubled) {
                if slot.id != EMPTY {
                    let mut at = hash_of(slot.id) as usize & mask;
                    while self.slots[at].id != EMPTY {
                        at = (at + 1) & mask;
                    }
                    self.slots[at] = slot;
                }
            }
        }
    }
}

/// Distinct values in the order they were first seen. Id 0 is null; value `n` of the store has id `n + 1`.
pub(crate) struct Interner {
    values: Values,
    table: SlotTable,
    /// Ids of the entries of dictionaries seen lately; `NO_ROW` where not looked up yet.
    dictionaries: Vec<(Arc<Values>, Vec<u32>)>,
}

impl Interner {
    /// For values of the physical type `Bytes` or `I128`.
    pub fn new(physical: PhysicalType) -> Interner {
        Interner { values: Values::empty(physical), table: SlotTable::new(), dictionaries: Vec::new() }
    }

    /// One more than the largest id.
    pub fn ids(&self) -> usize {
        self.values.len() + 1
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Bytes(v) => v.data.capacity() + v.offsets.capacity() * 4,
            other => other.len() * 16,
        };
        values + self.table.memory_bytes() + self.dictionaries.iter().map(|(_, ids)| ids.len() * 4).sum::<usize>()
    }

    fn bytes(&mut self, value: &[u8], insert: bool) -> u32 {
        let Values::Bytes(values) = &mut self.values else { return 0 };
        let hash = hash_bytes(value);
        match self.table.find(hash, |id| values.get(id as usize) == value) {
            Ok(id) => id + 1,
            Err(_) if !insert => NO_ROW,
            Err(slot) => {
                let id = values.len() as u32;
                values.push(value);
                let values: &BytesColumn = values;
                self.table.insert(slot, hash, id, |id| hash_bytes(values.get(id as usize)));
                id + 1
            }
        }
    }

    fn wide(&mut self, value: i128, insert: bool) -> u32 {
        let Values::I128(values) = &mut self.values else { return 0 };
        let hash_of = |v: i128| combine(hash_u64(v as u64), (v >> 64) as u64);
        match self.table.find(hash_of(value), |id| values[id as usize] == value) {
            Ok(id) => id + 1,
            Err(_) if !insert => NO_ROW,
            Err(slot) => {
                let id = values.len() as u32;
                values.push(value);
                let values: &[i128] = values;
                self.table.insert(slot, hash_of(value), id, |id| hash_of(values[id as usize]));
                id + 1
            }
        }
    }

    /// The id of a value at a position of values of this interner's physical type.
    fn one(&mut self, values: &Values, at: usize, insert: bool) -> u32 {
        match values {
            Values::Bytes(v) => self.bytes(v.get(at), insert),
            Values::I128(v) => self.wide(v[at], insert),
            _ => 0,
        }
    }

    /// Ids of these rows, in their order: 0 for null, [`NO_ROW`] for what is unknown when not inserting.
    pub fn intern(&mut self, vector: &Vector, rows: Rows<'_>, insert: bool, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        out.reserve(rows.count());
        match vector.form() {
            Form::Dictionary { codes, values } => {
                let mut ids = self.remembered(values);
                for row in rows.iter() {
                    if vector.is_null(row) {
                        out.push(0);
                        continue;
                    }
                    let code = codes[row] as usize;
                    if ids[code] == NO_ROW {
                        ids[code] = self.one(values, code, insert);
                    }
                    out.push(ids[code]);
                }
                self.remember(values, ids);
            }
            Form::Constant(values) => {
                let id = if vector.is_null(0) { 0 } else { self.one(values, 0, insert) };
                out.extend(std::iter::repeat_n(id, rows.count()));
            }
            Form::Flat(Values::Bytes(_)) => {
                let texts = Texts::new(vector);
                let mut last: Option<(&[u8], u32)> = None;
                for row in rows.iter() {
                    if vector.is_null(row) {
                        out.push(0);
                        continue;
                    }
                    let text = texts.bytes(row);
                    let id = match last {
                        Some((previous, id)) if previous == text => id,
                        _ => self.bytes(text, insert),
                    };
                    last = Some((text, id));
                    out.push(id);
                }
            }
            Form::Flat(values) => {
                for row in rows.iter() {
                    out.push(if vector.is_null(row) { 0 } else { self.one(values, row, insert) });
                }
            }
        }
        let bytes = if let Values::Bytes(v) = &self.values { v.data.len() } else { 0 };
        if bytes > u32::MAX as usize || self.values.len() >= NO_ROW as usize - 1 {
            return Err(Error::limit("too many distinct values of one key column"));
        }
        Ok(())
    }

    fn remembered(&mut self, values: &Arc<Values>) -> Vec<u32> {
        match self.dictionaries.iter().position(|(known, _)| Arc::ptr_eq(known, values)) {
            Some(at) => self.dictionaries.swap_remove(at).1,
            None => vec![NO_ROW; values.len()],
        }
    }

    fn remember(&mut self, values: &Arc<Values>, ids: Vec<u32>) {
        if self.dictionaries.len() >= REMEMBERED_DICTIONARIES {
            self.dictionaries.remove(0);
        }
        self.dictionaries.push((values.clone(), ids));
    }

    /// The values of these ids, as a vector.
    pub fn vector(&self, data_type: DataType, ids: impl ExactSizeIterator<Item = u32>) -> Vector {
        let mut validity = nacre_column::Bitmap::filled(ids.len(), true);
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
        Vector::new(data_type, self.values.take(positions.into_iter()), nulls.then_some(validity))
    }
}
