//! Finds the keys that two sorted files share: one of a load, and a segment of the table.
//!
//! Both files are walked once, block by block in parallel, unless one has far more keys than the
//! other in the overlapping range; then each key of the smaller file is searched for in the larger.
//! So a large load decodes existing keys instead of searching for each, which takes a hundred times
//! as long per key. Keys with a null never match.

use crate::layout::keys::KeyRows;
use crate::layout::sorted_keys::SortedKeys;
use nacre_column::{Values, Vector};
use nacre_segment::Segment;
use nacre_types::{Error, Result, Value, invariant, limits};
use std::ops::Range;

/// Integers that can be walked in the time of one search.
const INTEGERS_A_SEARCH: usize = 128;
/// Other keys that can be walked in the time of one search.
const KEYS_A_SEARCH: usize = 24;

/// Whether looking `few` keys up one by one among `many` others is faster than walking both.
pub(crate) fn is_few(keys: &SortedKeys<'_>, few: usize, many: usize) -> bool {
    few * if keys.is_integer() { INTEGERS_A_SEARCH } else { KEYS_A_SEARCH } < many
}

/// Where the key ranges of two files overlap, as positions in each; `None` if they do not.
pub(crate) fn overlap(
    old: &SortedKeys<'_>,
    new: &SortedKeys<'_>,
) -> Result<Option<(Range<usize>, Range<usize>)>> {
    if old.len() == 0 || new.len() == 0 {
        return Ok(None);
    }
    let (first, last) = (new.at(0)?, new.at(new.len() - 1)?);
    let olds = old.between(&first, &last)?;
    if olds.is_empty() {
        return Ok(None);
    }
    let news = new.between(&old.at(olds.start)?, &old.at(olds.end - 1)?)?;
    debug_assert!(news.end <= new.len(), "keys up to {} of {}", news.end, new.len());
    debug_assert!(olds.end <= old.len(), "keys up to {} of {}", olds.end, old.len());
    Ok((!news.is_empty()).then_some((olds, news)))
}

/// Calls `found(old position, new position)` for every key without nulls that is in both, in order.
/// A key may occur several times in the old file, and once in the new one.
pub(crate) fn each_common(
    old: &SortedKeys<'_>,
    new: &SortedKeys<'_>,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let Some((olds, news)) = overlap(old, new)? else { return Ok(()) };
    if is_few(new, news.len(), olds.len()) {
        for at in news {
            let key = new.at(at)?;
            if !key.iter().any(Value::is_null) {
                old.equal(&key)?.try_for_each(|place| found(place, at))?;
            }
        }
        return Ok(());
    }
    if is_few(old, olds.len(), news.len()) {
        for place in olds {
            let key = old.at(place)?;
            if !key.iter().any(Value::is_null) {
                new.equal(&key)?.try_for_each(|at| found(place, at))?;
            }
        }
        return Ok(());
    }
    let as_integers = old.is_integer() && new.is_integer();
    let (mut old, mut new) = (Walk::new(old, olds, as_integers), Walk::new(new, news, as_integers));
    while old.fill()? && new.fill()? {
        let (old_start, new_start) = (old.start, new.start);
        match (&old.block, &new.block) {
            (Block::Integers(a), Block::Integers(b)) => {
                (old.at, new.at) = side_by_side(
                    (a.len(), old.at),
                    (b.len(), new.at),
                    |i| a[i],
                    |j| b[j],
                    &mut |i, j| found(old_start + i, new_start + j),
                )?;
            }
            (Block::Encoded(a), Block::Encoded(b)) => {
                let (i, j) = ((a.rows.len(), old.at), (b.rows.len(), new.at));
                (old.at, new.at) = side_by_side(i, j, |i| a.key(i), |j| b.key(j), &mut |i, j| {
                    found(old_start + a.rows[i] as usize, new_start + b.rows[j] as usize)
                })?;
            }
            _ => {
                invariant!(false, "one file's keys are walked as integers, the other's are not");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Walks two sorted lists, given as lengths and starting positions, to the end of one. Returns the
/// positions reached.
#[inline]
fn side_by_side<T: Ord>(
    (a_len, mut i): (usize, usize),
    (b_len, mut j): (usize, usize),
    a: impl Fn(usize) -> T,
    b: impl Fn(usize) -> T,
    found: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<(usize, usize)> {
    debug_assert!(i <= a_len && j <= b_len, "a walk from {i} of {a_len} and {j} of {b_len}");
    while i < a_len && j < b_len {
        let order = a(i).cmp(&b(j));
        if order.is_eq() {
            found(i, j)?;
        }
        // The branch would be unpredictable, so advance without one.
        i += usize::from(order.is_le());
        j += usize::from(order.is_gt());
    }
    Ok((i, j))
}

/// The keys of a block, without those that have a null.
enum Block {
    Integers(Vec<i64>),
    Encoded(Encoded),
}

#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<u32>,
    /// Position of each key in the block.
    rows: Vec<u32>,
}

impl Encoded {
    fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        debug_assert!(start <= self.ends[at], "key {at} ends before it begins");
        &self.bytes[start as usize..self.ends[at] as usize]
    }
}

/// A file's keys from one position to another, a block at a time.
struct Walk<'a> {
    keys: &'a SortedKeys<'a>,
    next: usize,
    end: usize,
    as_integers: bool,
    /// Key columns of all rows, if rows are not in key order.
    whole: Vec<Vector>,
    /// Position of the block's first key.
    start: usize,
    block: Block,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(keys: &'a SortedKeys<'a>, range: Range<usize>, as_integers: bool) -> Walk<'a> {
        debug_assert!(
            range.start <= range.end && range.end <= keys.len(),
            "keys {range:?} of {} are walked",
            keys.len()
        );
        let block = Block::Integers(Vec::new());
        Walk {
            keys,
            next: range.start,
            end: range.end,
            as_integers,
            whole: Vec::new(),
            start: 0,
            block,
            at: 0,
        }
    }

    /// Reads the next block if the last one has been walked; returns whether there are keys.
    fn fill(&mut self) -> Result<bool> {
        let len = |block: &Block| match block {
            Block::Integers(keys) => keys.len(),
            Block::Encoded(keys) => keys.rows.len(),
        };
        while self.at == len(&self.block) {
            if self.next >= self.end {
                return Ok(false);
            }
            let stop = (self.next / limits::BLOCK_ROWS + 1) * limits::BLOCK_ROWS;
            let count = stop.min(self.end) - self.next;
            let columns = self.columns(count)?;
            invariant!(
                columns.iter().all(|column| column.len() == count),
                "a block of {count} keys of {} is of another length",
                self.keys.file().name()
            );
            self.block = if self.as_integers {
                integers(self.keys.file(), &columns)?
            } else {
                encoded(&columns, count)
            };
            (self.start, self.at) = (self.next, 0);
            self.next += count;
        }
        Ok(true)
    }

    /// The key's columns at the next positions.
    fn columns(&mut self, count: usize) -> Result<Vec<Vector>> {
        if self.keys.has_own_order() && self.whole.is_empty() {
            self.whole = self.keys.decode_rows()?;
        }
        self.keys.decode(self.next, count, &self.whole)
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
