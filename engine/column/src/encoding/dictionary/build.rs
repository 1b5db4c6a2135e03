//! Building the dictionary of a column: its distinct values, sorted, and the codes of its blocks.
//!
//! Each step looks at one block, or puts some of the values in order. The values stay in the blocks
//! until they are sorted: they are known by the rows where they are first.

use super::order::ascends;
use crate::{BlockValues, RowSorter, Values, gather, write_cost};
use nacre_types::hash::{hash_bytes, hash_u64};
use nacre_types::invariant;
use nacre_types::limits::BLOCK_ROWS;

/// Slots of the first hash table.
const FIRST_SLOTS: usize = 1 << 10;

/// The dictionary of a column: its values, ascending, and the codes of every block.
pub(crate) struct Built {
    pub values: Values,
    pub codes: Vec<Vec<u32>>,
}

/// The dictionary of a column while it is built. Each step takes the same blocks.
pub(crate) struct Building {
    max_values: usize,
    /// A hash table of the numbers of values plus 1, with linear probing; 0 is a free slot.
    slots: Vec<u32>,
    /// The hash of each value.
    hashes: Vec<u64>,
    /// The first row of each value. Its place is the number of the value, later its code.
    rows: Vec<u32>,
    /// Of each block the numbers of its values, in the end their codes. Null rows have 0.
    codes: Vec<Vec<u32>>,
    /// The code of each number.
    code_of: Vec<u32>,
    values: Values,
    stage: Stage,
}

enum Stage {
    Number,
    Sort(RowSorter),
    Gather,
    /// Turns numbers into codes, from this block on.
    Code(usize),
    Failed,
}

impl Building {
    /// Starts a dictionary of at most `max_values` values.
    pub fn new(blocks: &[BlockValues], max_values: usize) -> Building {
        debug_assert!(
            blocks.iter().rev().skip(1).all(|(values, _)| values.len() == BLOCK_ROWS),
            "a block before the last is not full"
        );
        let values = blocks
            .first()
            .map_or(Values::Bool(Vec::new()), |(values, _)| Values::empty(values.physical()));
        Building {
            max_values,
            slots: vec![0; FIRST_SLOTS],
            hashes: Vec::new(),
            rows: Vec::new(),
            codes: Vec::with_capacity(blocks.len()),
            code_of: Vec::new(),
            values,
            stage: Stage::Number,
        }
    }

    /// Does a part of the work; returns what it cost, in blocks of numbers. `None` once the
    /// dictionary is built, or cannot be.
    pub fn step(&mut self, blocks: &[BlockValues]) -> Option<usize> {
        match &mut self.stage {
            Stage::Number => {
                let Some((values, _)) = blocks.get(self.codes.len()) else {
                    self.begin_sort();
                    return Some(0);
                };
                if !self.number_block(blocks) || self.rows.len() > self.max_values {
                    self.stage = Stage::Failed;
                }
                Some(write_cost(values).div_ceil(2))
            }
            Stage::Sort(sorter) => {
                let cost = sorter.step(&[blocks]);
                if cost.is_none() {
                    self.begin_gather();
                }
                Some(cost.unwrap_or(0))
            }
            Stage::Gather => {
                let from = self.values.len();
                let rows = &self.rows[from..self.rows.len().min(from + BLOCK_ROWS)];
                for (code, row) in (from as u32..).zip(rows) {
                    let number = self.codes[*row as usize / BLOCK_ROWS][*row as usize % BLOCK_ROWS];
                    self.code_of[number as usize] = code;
                }
                gather(blocks, rows, &mut self.values);
                if self.values.len() == self.rows.len() {
                    self.stage = Stage::Code(0);
                }
                Some(blocks.first().map_or(1, |(values, _)| write_cost(values)))
            }
            Stage::Code(next) => {
                let codes = self.codes.get_mut(*next)?;
                codes.iter_mut().for_each(|code| *code = self.code_of[*code as usize]);
                *next += 1;
                Some(1)
            }
            Stage::Failed => None,
        }
    }

    /// The dictionary, once every step is done. `None` if there are no values, more than a dictionary
    /// may have, or values that keys order as equal but that differ in their bits (NaN, negative
    /// zero).
    pub fn finish(self) -> Option<Built> {
        let Building { values, codes, stage, .. } = self;
        let Stage::Code(next) = stage else { return None };
        invariant!(next == codes.len(), "{next} of {} blocks have codes", codes.len());
        invariant!(ascends(&values), "a dictionary of {} values does not ascend", values.len());
        debug_assert!(
            codes.iter().flatten().all(|code| (*code as usize) < values.len()),
            "a code outside its dictionary of {} values",
            values.len()
        );
        Some(Built { values, codes })
    }

    /// Numbers the values of the next block. Returns whether a dictionary can hold them.
    fn number_block(&mut self, blocks: &[BlockValues]) -> bool {
        let start = self.codes.len() * BLOCK_ROWS;
        let (values, validity) = &blocks[self.codes.len()];
        let mut numbers: Vec<u32> = Vec::with_capacity(values.len());
        let mut previous: Option<usize> = None;
        for row in 0..values.len() {
            if validity.as_ref().is_some_and(|v| !v.get(row)) {
                numbers.push(0);
                continue;
            }
            let number = match previous {
                Some(before) if is_equal(values, row, values, before) => numbers[before],
                _ => match hash(values, row) {
                    Some(hash) => self.number(blocks, start + row, hash),
                    None => return false,
                },
            };
            previous = Some(row);
            numbers.push(number);
        }
        debug_assert_eq!(numbers.len(), values.len(), "numbers of a block");
        self.codes.push(numbers);
        true
    }

    /// The number of the value of a row.
    #[inline]
    fn number(&mut self, blocks: &[BlockValues], row: usize, hash: u64) -> u32 {
        let (values, at) = (&blocks[row / BLOCK_ROWS].0, row % BLOCK_ROWS);
        let mut slot = hash as usize & (self.slots.len() - 1);
        while self.slots[slot] != 0 {
            let number = self.slots[slot] - 1;
            if self.hashes[number as usize] == hash {
                let first = self.rows[number as usize] as usize;
                let (others, other) = (&blocks[first / BLOCK_ROWS].0, first % BLOCK_ROWS);
                if is_exact(values) || is_equal(values, at, others, other) {
                    return number;
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.rows.push(row as u32);
        self.hashes.push(hash);
        debug_assert_eq!(self.hashes.len(), self.rows.len(), "hashes of values");
        self.slots[slot] = self.rows.len() as u32;
        if self.rows.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.rows.len() as u32 - 1
    }

    /// Doubles the hash table.
    fn grow(&mut self) {
        let mask = 2 * self.slots.len() - 1;
        let mut slots = vec![0; mask + 1];
        for (number, hash) in (1..).zip(&self.hashes) {
            let mut slot = *hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number;
        }
        debug_assert!(self.rows.len() < slots.len(), "a full table of {} values", self.rows.len());
        self.slots = slots;
    }

    fn begin_sort(&mut self) {
        (self.slots, self.hashes) = (Vec::new(), Vec::new());
        self.stage = match self.rows.is_empty() {
            true => Stage::Failed,
            false => Stage::Sort(RowSorter::new(std::mem::take(&mut self.rows), 1)),
        };
    }

    fn begin_gather(&mut self) {
        let Stage::Sort(sorter) = std::mem::replace(&mut self.stage, Stage::Gather) else { return };
        self.rows = sorter.finish();
        self.code_of = vec![0; self.rows.len()];
        debug_assert!(self.values.is_empty(), "values of a dictionary that is not sorted");
    }
}

/// The hash of a value; `None` if a dictionary cannot hold it. Numbers of 64 bits with the same hash
/// are the same ([`is_exact`]).
#[inline]
fn hash(values: &Values, row: usize) -> Option<u64> {
    match values {
        Values::Bool(_) => None,
        Values::I64(v) => Some(hash_u64(v[row] as u64)),
        Values::I128(v) => Some(hash_bytes(&v[row].to_le_bytes())),
        Values::F64(v) if v[row].is_nan() || v[row].to_bits() == (-0.0f64).to_bits() => None,
        Values::F64(v) => Some(hash_u64(v[row].to_bits())),
        Values::Bytes(v) => Some(hash_bytes(v.get(row))),
    }
}

/// Whether values with the same hash are the same.
fn is_exact(values: &Values) -> bool {
    matches!(values, Values::I64(_) | Values::F64(_))
}

/// Whether two values of the same type have the same bits.
#[inline]
fn is_equal(values: &Values, row: usize, others: &Values, other: usize) -> bool {
    match (values, others) {
        (Values::I64(a), Values::I64(b)) => a[row] == b[other],
        (Values::I128(a), Values::I128(b)) => a[row] == b[other],
        (Values::F64(a), Values::F64(b)) => a[row].to_bits() == b[other].to_bits(),
        (Values::Bytes(a), Values::Bytes(b)) => a.get(row) == b.get(other),
        _ => false,
    }
}

/// Builds the dictionary of a column.
#[cfg(test)]
pub(crate) fn build(blocks: &[BlockValues], max_values: usize) -> Option<Built> {
    let mut building = Building::new(blocks, max_values);
    while building.step(blocks).is_some() {}
    building.finish()
}
