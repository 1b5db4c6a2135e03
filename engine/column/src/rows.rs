//! Rows of columns that are kept in blocks, by number: sorting them by key, and gathering their
//! values.

use crate::{BlockValues, Scalar, Values};
use nacre_types::invariant;
use nacre_types::key::order_f64;
use nacre_types::limits::BLOCK_ROWS;
use std::cmp::Ordering;
use std::ops::Range;

/// Rows to sort in one step; what is sorted is then merged.
const RUN_ROWS: usize = if cfg!(test) { 100 } else { 8 * BLOCK_ROWS };
/// Rows whose sorting in a run, and whose merging, cost as much as writing a block.
const RUN_COST_ROWS: usize = 2048;
const MERGE_COST_ROWS: usize = 256;

/// Puts the numbers of rows in key order, step by step. Equal keys are ordered by row number.
pub struct RowSorter {
    /// Row numbers, in sorted runs up to `sorted`.
    rows: Vec<u32>,
    sorted: usize,
    run_rows: usize,
    /// What is left of each run, as a heap: the least first row first.
    runs: Vec<Range<usize>>,
    merged: Vec<u32>,
}

impl RowSorter {
    /// Starts to sort ascending rows. Without a bound for a step, `usize::MAX`, they are one run.
    pub fn new(rows: Vec<u32>, step: usize) -> RowSorter {
        debug_assert!(rows.is_sorted(), "rows to sort do not ascend");
        let run_rows = if step == usize::MAX { rows.len().max(1) } else { RUN_ROWS };
        RowSorter { rows, sorted: 0, run_rows, runs: Vec::new(), merged: Vec::new() }
    }

    /// Sorts a run or merges a block, given the blocks of each key column; returns what it cost, in
    /// written blocks. `None` once all rows are in order.
    pub fn step(&mut self, keys: &[&[BlockValues]]) -> Option<usize> {
        let count = self.rows.len();
        debug_assert!(
            keys.iter().all(|column| column.len() * BLOCK_ROWS >= count),
            "a key column has fewer than {count} rows"
        );
        debug_assert!(
            self.merged.len() + self.runs.iter().map(Range::len).sum::<usize>() == self.sorted,
            "rows are lost or doubled between {} runs",
            self.runs.len()
        );
        if self.sorted < count {
            let end = count.min(self.sorted + self.run_rows);
            sort_by(keys, &mut self.rows[self.sorted..end]);
            self.runs.push(self.sorted..end);
            let cost = (end - self.sorted).div_ceil(RUN_COST_ROWS);
            self.sorted = end;
            self.sift_up(keys);
            return Some(cost);
        }
        if self.runs.len() <= 1 {
            let rest = self.runs.pop().unwrap_or(0..0);
            self.merged.extend_from_slice(&self.rows[rest]);
        }
        if self.merged.len() == count {
            return None;
        }
        for _ in 0..BLOCK_ROWS {
            let Some(least) = self.runs.first_mut() else { break };
            self.merged.push(self.rows[least.start]);
            least.start += 1;
            if least.start == least.end {
                self.runs.swap_remove(0);
            }
            self.sift_down(keys);
        }
        Some(BLOCK_ROWS / MERGE_COST_ROWS)
    }

    /// All row numbers, in order.
    pub fn finish(self) -> Vec<u32> {
        invariant!(
            self.merged.len() == self.rows.len(),
            "{} of {} rows are in order",
            self.merged.len(),
            self.rows.len()
        );
        self.merged
    }

    fn is_before(&self, keys: &[&[BlockValues]], a: usize, b: usize) -> bool {
        let first = |run: usize| self.rows[self.runs[run].start];
        compare(keys, first(a), first(b)).is_lt()
    }

    /// Restores the heap after a run was added at its end.
    fn sift_up(&mut self, keys: &[&[BlockValues]]) {
        invariant!(!self.runs.is_empty(), "no run was added to the heap");
        let mut at = self.runs.len() - 1;
        while at > 0 && self.is_before(keys, at, (at - 1) / 2) {
            self.runs.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// Restores the heap after its first run was changed.
    fn sift_down(&mut self, keys: &[&[BlockValues]]) {
        let mut at = 0;
        loop {
            let children = (2 * at + 1..2 * at + 3).filter(|child| *child < self.runs.len());
            let least = children.reduce(|a, b| if self.is_before(keys, b, a) { b } else { a });
            let Some(least) = least.filter(|least| self.is_before(keys, *least, at)) else {
                return;
            };
            self.runs.swap(at, least);
            at = least;
        }
    }
}

/// Sorts ascending rows by all columns.
///
/// Packs the leading part of the sort key into one number per row, its rank: whether there is a
/// value, its first eight bytes after those shared by all rows, their number, and last the row.
/// Rows with equal ranks are sorted by what comes next: the column's next bytes, or the next
/// column. They are queued in a list instead of recursing, because texts can share any number of
/// bytes.
fn sort_by(keys: &[&[BlockValues]], rows: &mut [u32]) {
    // Column, number of shared bytes, positions.
    let mut left = vec![(0, 0, 0..rows.len())];
    let mut ranks: Vec<u128> = Vec::new();
    while let Some((column, known, places)) = left.pop() {
        let rows = &mut rows[places.clone()];
        let Some(blocks) = keys.get(column).filter(|_| rows.len() > 1) else { continue };
        let common = common_bytes(blocks, rows, known);
        ranks.clear();
        ranks.extend(rows.iter().map(|row| rank(blocks, *row, common)));
        // A rank ends in its row, so no two are equal.
        ranks.sort();
        rows.iter_mut().zip(&ranks).for_each(|(row, rank)| *row = *rank as u32);
        let is_wide = matches!(blocks.first(), Some((Values::I128(_), _)));
        let mut start = 0;
        for run in ranks.chunk_by(|a, b| a >> ROW_BITS == b >> ROW_BITS) {
            let same = start..start + run.len();
            start = same.end;
            let is_equal = (run[0] >> ROW_BITS) as u32 & LENGTH_MASK < LONGER;
            if same.len() < 2 || (is_equal && column + 1 == keys.len()) {
                continue;
            }
            if is_wide || same.len() <= FEW {
                rows[same].sort_unstable_by(|a, b| compare(&keys[column..], *a, *b));
                continue;
            }
            let same = places.start + same.start..places.start + same.end;
            left.push(if is_equal {
                (column + 1, 0, same)
            } else {
                (column, common + FIRST_BYTES, same)
            });
        }
    }
}

/// Bits of a row number and of a length in a rank.
const ROW_BITS: u32 = 32;
const LENGTH_BITS: u32 = 4;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;
/// Number of bytes of a text in a rank.
const FIRST_BYTES: usize = 8;
/// The length in a rank of a value with more bytes than the rank holds.
const LONGER: u32 = 9;
const _: () = assert!(LONGER <= LENGTH_MASK && FIRST_BYTES < LONGER as usize);
/// Maximum number of rows sorted by comparing whole keys.
const FEW: usize = 16;

/// The rank of a row among others whose values share their first `common` bytes.
fn rank(blocks: &[BlockValues], row: u32, common: usize) -> u128 {
    debug_assert!((row as usize) / BLOCK_ROWS < blocks.len(), "row {row} past the last block");
    let (values, validity) = &blocks[row as usize / BLOCK_ROWS];
    let at = row as usize % BLOCK_ROWS;
    if validity.as_ref().is_some_and(|v| !v.get(at)) {
        return u128::from(row);
    }
    let (first, length) = match values {
        Values::Bool(v) => (u64::from(v[at]), 0),
        Values::I64(v) => (v[at] as u64 ^ 1 << 63, 0),
        Values::F64(v) => (order_f64(v[at]), 0),
        Values::I128(v) => ((v[at] >> 64) as u64 ^ 1 << 63, LONGER),
        Values::Bytes(v) => {
            let value = v.get(at);
            debug_assert!(value.len() >= common, "a value shorter than what all rows share");
            let rest = &value[common..];
            let mut first = [0; FIRST_BYTES];
            let taken = rest.len().min(FIRST_BYTES);
            first[..taken].copy_from_slice(&rest[..taken]);
            (
                u64::from_be_bytes(first),
                if rest.len() > FIRST_BYTES { LONGER } else { rest.len() as u32 },
            )
        }
    };
    let key = 1 << 64 | u128::from(first);
    let rank = (key << LENGTH_BITS | u128::from(length)) << ROW_BITS | u128::from(row);
    debug_assert!(rank as u32 == row, "the rank of row {row} ends in row {}", rank as u32);
    rank
}

/// Number of leading bytes shared by the values of all rows, given that they share `known`.
fn common_bytes(blocks: &[BlockValues], rows: &[u32], known: usize) -> usize {
    let mut common: Option<&[u8]> = None;
    for row in rows {
        let (values, validity) = &blocks[*row as usize / BLOCK_ROWS];
        let at = *row as usize % BLOCK_ROWS;
        let Values::Bytes(values) = values else { return 0 };
        if validity.as_ref().is_some_and(|v| !v.get(at)) {
            continue;
        }
        let value = values.get(at);
        debug_assert!(value.len() >= known, "a value shorter than what all rows share");
        let value = &value[known..];
        let same = match common {
            Some(common) if value.starts_with(common) => continue,
            Some(common) => common.iter().zip(value).take_while(|(a, b)| a == b).count(),
            None => value.len(),
        };
        if same == 0 {
            return known;
        }
        common = Some(&value[..same]);
    }
    known + common.map_or(0, <[u8]>::len)
}

fn compare(keys: &[&[BlockValues]], a: u32, b: u32) -> Ordering {
    let orders = keys.iter().map(|blocks| scalar(blocks, a).order(&scalar(blocks, b)));
    orders.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(&b))
}

fn scalar(blocks: &[BlockValues], row: u32) -> Scalar<'_> {
    let (values, validity) = &blocks[row as usize / BLOCK_ROWS];
    let at = row as usize % BLOCK_ROWS;
    if validity.as_ref().is_none_or(|v| v.get(at)) { Scalar::at(values, at) } else { Scalar::Null }
}

/// What a block of texts costs to write, in blocks of numbers, besides its bytes: in WebAssembly
/// 4,096 texts of ten bytes take 1.2 ms, numbers 0.1 to 0.3 ms.
const TEXT_COST: usize = 4;
/// Bytes of text that cost one more.
const TEXT_BYTES: usize = 32 << 10;

/// What a block costs to write, in blocks of numbers.
pub fn write_cost(values: &Values) -> usize {
    match values {
        Values::Bytes(texts) => TEXT_COST + texts.data.len() / TEXT_BYTES,
        _ => 1,
    }
}

/// Appends the values of some rows of a column. All blocks have the same type.
pub fn gather(blocks: &[BlockValues], rows: &[u32], out: &mut Values) {
    let (physical, before) = (out.physical(), out.len());
    for (values, _) in blocks {
        let found = values.physical();
        invariant!(found == physical, "a block of {found:?} in a column of {physical:?}");
    }
    let places = rows.iter().map(|row| (*row as usize / BLOCK_ROWS, *row as usize % BLOCK_ROWS));
    macro_rules! pick {
        ($kind:ident, $out:ident) => {
            $out.extend(places.filter_map(|(block, at)| match &blocks[block].0 {
                Values::$kind(values) => Some(values[at]),
                _ => None,
            }))
        };
    }
    match out {
        Values::Bool(out) => pick!(Bool, out),
        Values::I64(out) => pick!(I64, out),
        Values::I128(out) => pick!(I128, out),
        Values::F64(out) => pick!(F64, out),
        Values::Bytes(out) => {
            out.offsets.reserve(rows.len());
            for (block, at) in places {
                if let Values::Bytes(values) = &blocks[block].0 {
                    out.push(values.get(at));
                }
            }
        }
    }
    debug_assert!(out.len() == before + rows.len(), "values of {} rows were added", rows.len());
}

#[cfg(test)]
mod tests {
    use super::{BlockValues, RowSorter, compare};
    use crate::{Bitmap, BytesColumn, Values};
    use nacre_types::limits::BLOCK_ROWS;

    /// The numbers of rows in key order, from steps of this size.
    fn order_of(keys: &[&[BlockValues]], rows: usize, step: usize) -> Vec<u32> {
        let mut sorter = RowSorter::new((0..rows as u32).collect(), step);
        while sorter.step(keys).is_some() {}
        sorter.finish()
    }

    /// Pseudo-random numbers from a fixed seed.
    fn random(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// A column with many equal or nearly equal values, some of them null.
    fn column(
        kind: u64,
        rows: usize,
        nulls: bool,
        next: &mut dyn FnMut(u64) -> u64,
    ) -> Vec<BlockValues> {
        let mut block = |rows: usize| -> BlockValues {
            let mut many = |most: u64| (0..rows).map(|_| next(most)).collect::<Vec<u64>>();
            let values = match kind {
                0 => Values::I64(many(50).iter().map(|n| *n as i64 - 25).collect()),
                1 => Values::F64(
                    many(6)
                        .iter()
                        .map(|n| [0.0, -0.0, f64::NAN, -1.5, f64::NEG_INFINITY, 7.0][*n as usize])
                        .collect(),
                ),
                2 => Values::Bool(many(2).iter().map(|n| *n == 1).collect()),
                3 => Values::I128(
                    many(9)
                        .iter()
                        .map(|n| (i128::from(*n % 3) - 1) << 64 | i128::from(n % 2))
                        .collect(),
                ),
                _ => {
                    // Shared prefixes, trailing zero bytes, and late differences.
                    let mut out = BytesColumn::default();
                    for n in many(400) {
                        let mut text = b"in common ".to_vec();
                        text.extend((0..n % 5).map(|_| b'x'));
                        text.extend((0..n / 5 % 4).map(|_| 0));
                        text.extend_from_slice(&b"a long end of a value"[..(n as usize / 20) % 20]);
                        out.push(&text[if kind == 5 && n == 0 { text.len() } else { 0 }..]);
                    }
                    Values::Bytes(out)
                }
            };
            let validity = nulls.then(|| {
                let mut bits = Bitmap::default();
                (0..rows).for_each(|_| bits.push(next(4) > 0));
                bits
            });
            (values, validity)
        };
        let blocks = rows.div_ceil(BLOCK_ROWS);
        (0..blocks).map(|at| block(BLOCK_ROWS.min(rows - at * BLOCK_ROWS))).collect()
    }

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        let mut next = random(3);
        for round in 0..60 {
            let rows = [0, 1, 2, 17, 300, BLOCK_ROWS + 5][round % 6];
            let columns = 1 + next(3);
            let columns: Vec<Vec<BlockValues>> =
                (0..columns).map(|_| column(next(6), rows, next(2) == 0, &mut next)).collect();
            let keys: Vec<&[BlockValues]> = columns.iter().map(Vec::as_slice).collect();
            let mut expected: Vec<u32> = (0..rows as u32).collect();
            expected.sort_by(|a, b| compare(&keys, *a, *b));
            for step in [1, usize::MAX] {
                assert_eq!(order_of(&keys, rows, step), expected, "round {round}");
            }
        }
    }

    /// Each text is a prefix of all longer ones, up to its last byte: no eight bytes distinguish
    /// two of them.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn texts_with_long_shared_prefixes_need_no_deep_stack() {
        const ROWS: usize = 2_000;
        let sort = || {
            let mut texts = BytesColumn::default();
            (0..ROWS).for_each(|row| texts.push(&[vec![b'a'; 8 * row], vec![b'b']].concat()));
            let blocks = [(Values::Bytes(texts), None)];
            let expected: Vec<u32> = (0..ROWS as u32).rev().collect();
            assert_eq!(order_of(&[&blocks], ROWS, usize::MAX), expected);
        };
        std::thread::Builder::new().stack_size(160 << 10).spawn(sort).unwrap().join().unwrap();
    }
}
