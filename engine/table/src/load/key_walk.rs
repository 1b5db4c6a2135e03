//! Walks the sorted keys of one file, a block at a time. Keys with a null are left out: they equal no
//! other key.

use crate::layout::keys::KeyRows;
use crate::layout::sorted_keys::SortedKeys;
use nacre_column::{Values, Vector};
use nacre_segment::Segment;
use nacre_types::{Error, Result, invariant, limits};
use std::ops::Range;

/// The keys of a block, without those that have a null.
pub(crate) enum Block {
    Integers(Vec<i64>),
    Encoded(Encoded),
}

#[derive(Default)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<u32>,
    /// Position of each key in the block.
    pub rows: Vec<u32>,
}

/// A key during a walk. Keys of one walk, and of walks that are compared, are of one kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WalkedKey<'a> {
    Integer(i64),
    Encoded(&'a [u8]),
}

impl Encoded {
    /// The key at a position of `rows`.
    pub fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        debug_assert!(start <= self.ends[at], "key {at} ends before it begins");
        &self.bytes[start as usize..self.ends[at] as usize]
    }
}

impl Block {
    fn len(&self) -> usize {
        match self {
            Block::Integers(keys) => keys.len(),
            Block::Encoded(keys) => keys.rows.len(),
        }
    }
}

/// A file's keys from one position to another.
pub(crate) struct KeyWalk {
    next: usize,
    end: usize,
    as_integers: bool,
    /// Whether to hold the keys of all rows in memory if rows are not in key order.
    is_whole: bool,
    /// Key columns of all rows, once they are needed.
    whole: Vec<Vector>,
    /// Position of the block's first key.
    pub start: usize,
    /// The block being walked.
    pub block: Block,
    /// The next key of the block.
    pub at: usize,
}

impl KeyWalk {
    /// Walks the keys at these positions, as integers only if the file's keys are.
    pub fn new(keys: &SortedKeys<'_>, range: Range<usize>, as_integers: bool) -> KeyWalk {
        debug_assert!(
            range.start <= range.end && range.end <= keys.len(),
            "keys {range:?} of {} are walked",
            keys.len()
        );
        let block = Block::Integers(Vec::new());
        KeyWalk {
            next: range.start,
            end: range.end,
            as_integers,
            is_whole: true,
            whole: Vec::new(),
            start: 0,
            block,
            at: 0,
        }
    }

    /// Holds no more than a block of keys in memory, which is slower if rows are not in key order.
    pub fn in_blocks(self) -> KeyWalk {
        KeyWalk { is_whole: false, ..self }
    }

    /// Whether the block has been walked.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.block.len()
    }

    /// The next key and its position in the file. [`KeyWalk::fill`] must have returned `true`.
    pub fn key(&self) -> (WalkedKey<'_>, usize) {
        debug_assert!(self.at < self.block.len(), "key {} of a block is walked", self.at);
        match &self.block {
            Block::Integers(keys) => (WalkedKey::Integer(keys[self.at]), self.start + self.at),
            Block::Encoded(keys) => {
                let position = self.start + keys.rows[self.at] as usize;
                (WalkedKey::Encoded(keys.key(self.at)), position)
            }
        }
    }

    /// Reads the next block of the file's keys if the last one has been walked; returns whether there are
    /// keys. Can be called again after a read of absent bytes.
    pub fn fill(&mut self, keys: &SortedKeys<'_>) -> Result<bool> {
        while self.at == self.block.len() {
            if self.next >= self.end {
                return Ok(false);
            }
            let stop = (self.next / limits::BLOCK_ROWS + 1) * limits::BLOCK_ROWS;
            let count = stop.min(self.end) - self.next;
            let columns = self.columns(keys, count)?;
            invariant!(
                columns.iter().all(|column| column.len() == count),
                "a block of {count} keys of {} is of another length",
                keys.file().name()
            );
            self.block = if self.as_integers {
                integers(keys.file(), &columns)?
            } else {
                encoded(&columns, count)
            };
            (self.start, self.at) = (self.next, 0);
            self.next += count;
            debug_assert!(
                self.next <= self.end && self.block.len() <= count,
                "a walk to key {} of {} reads {} of {count} keys",
                self.next,
                self.end,
                self.block.len()
            );
        }
        Ok(true)
    }

    /// The key's columns at the next positions.
    fn columns(&mut self, keys: &SortedKeys<'_>, count: usize) -> Result<Vec<Vector>> {
        if self.is_whole && keys.has_own_order() && self.whole.is_empty() {
            self.whole = keys.decode_rows()?;
        }
        keys.decode(self.next, count, &self.whole)
    }
}

fn integers(file: &Segment, columns: &[Vector]) -> Result<Block> {
    match columns.first().map(|column| column.flat().into_owned()) {
        Some(Values::I64(keys)) => Ok(Block::Integers(keys)),
        _ => Err(Error::corrupt(format!("segment {}: keys are not integers", file.name()))),
    }
}

fn encoded(columns: &[Vector], count: usize) -> Block {
    let keys = KeyRows::new(columns);
    let mut block = Encoded::default();
    for row in 0..count {
        let start = block.bytes.len();
        if keys.put(row, &mut block.bytes) {
            block.bytes.truncate(start);
        } else {
            block.ends.push(block.bytes.len() as u32);
            block.rows.push(row as u32);
        }
    }
    debug_assert!(
        block.ends.len() == block.rows.len()
            && block.ends.last().map_or(0, |end| *end as usize) == block.bytes.len(),
        "{} keys of {} rows end at {:?}",
        block.ends.len(),
        block.rows.len(),
        block.ends.last()
    );
    Block::Encoded(block)
}
