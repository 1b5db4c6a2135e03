//! Run-length: equal neighbours as one value and the end of their run.
//!
//! Body: a `u32` number of runs, a `u32` encoding of their values (1 plain, 3 bit-packed: the
//! numbers of those encodings), one `u16` end per run (the row after its last one; ends ascend, the
//! last one is the number of rows), then the values of the runs as a body of that encoding. A null
//! belongs to the surrounding run. Reading one row thus takes a binary search over the ends and one
//! value.

use super::bitpacked::{self, BitPacked};
use super::plain::{self, Plain};
use super::read::{corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, Shared, Source};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};

/// Encodings of the values of runs, by their numbers in the list.
pub(super) const PLAIN: u32 = 1;
pub(super) const BIT_PACKED: u32 = 3;
/// Maximum ratio of expanded text to the bytes of its body: more is damage.
const MAX_RATIO: usize = 256;
const ENDS_EARLY: &str = "runs end early";
const BAD_END: &str = "run ends out of order";

/// The first non-null row of each run. The first run nevertheless extends back to row 0.
fn starts(input: Input<'_>) -> Vec<u32> {
    fn starts<T: PartialEq>(input: Input<'_>, at: impl Fn(usize) -> T) -> Vec<u32> {
        let mut out = Vec::new();
        let mut current = None;
        for row in (0..input.len).filter(|row| input.is_valid(*row)) {
            let value = Some(at(input.start + row));
            if value != current {
                out.push(row as u32);
                current = value;
            }
        }
        out
    }
    match input.values {
        Values::Bool(v) => starts(input, |row| v[row]),
        Values::I64(v) => starts(input, |row| v[row]),
        Values::I128(v) => starts(input, |row| v[row]),
        // By bits: both zeroes and every NaN must round-trip.
        Values::F64(v) => starts(input, |row| v[row].to_bits()),
        Values::Bytes(v) => starts(input, |row| v.get(row)),
    }
}

/// Estimates the length of the body that [`encode`] would append, in bytes.
pub(crate) fn estimated_size(input: Input<'_>) -> usize {
    let starts = starts(input);
    let each = match input.values {
        Values::Bool(_) => 1,
        Values::I128(_) => 16,
        Values::Bytes(v) => v.data.len() / v.len().max(1) + 2,
        _ => 8,
    };
    8 + starts.len() * (2 + each)
}

/// Appends the body if there are at least two rows per run.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let starts = starts(input);
    if starts.is_empty() || starts.len() * 2 > input.len || input.len > u16::MAX as usize {
        return false;
    }
    let body = out.len();
    let values = input.values.take(starts.iter().map(|row| row + input.start as u32));
    let runs = Input::new(&values, None);
    let plain_size = values.len() * if values.physical() == PhysicalType::I128 { 16 } else { 8 };
    let packed = bitpacked::encoded_size(runs).is_some_and(|size| size < plain_size);
    out.put_u32(starts.len() as u32);
    out.put_u32(if packed { BIT_PACKED } else { PLAIN });
    let ends = starts[1..].iter().copied().chain([input.len as u32]);
    debug_assert!(ends.clone().is_sorted_by(|a, b| a < b), "ends of runs do not ascend");
    invariant!(values.len() == starts.len(), "{} values of {} runs", values.len(), starts.len());
    ends.clone().for_each(|end| out.put_u16(end as u16));
    if packed {
        let held = bitpacked::encode(runs, out);
        invariant!(held, "values of runs do not pack");
    } else {
        plain::encode(runs, out);
    }
    let Values::Bytes(column) = &values else { return true };
    let mut start = 0;
    let expanded = ends.enumerate().map(|(run, end)| {
        let rows = end as usize - start;
        start = end as usize;
        rows * column.get(run).len()
    });
    let fits = expanded.sum::<usize>() <= (out.len() - body).saturating_mul(MAX_RATIO);
    if !fits {
        out.truncate(body);
    }
    fits
}

/// The values of runs.
enum Runs<'a> {
    Plain(Plain<'a>),
    BitPacked(BitPacked<'a>),
}

/// A run-length body.
pub(crate) struct RunLength<'a> {
    ends: &'a [[u8; 2]],
    runs: Runs<'a>,
    rows: usize,
    bytes: usize,
}

impl<'a> RunLength<'a> {
    #[inline]
    fn values(&self) -> &dyn Body<'a> {
        match &self.runs {
            Runs::Plain(body) => body,
            Runs::BitPacked(body) => body,
        }
    }

    #[inline]
    fn end(&self, run: usize) -> Result<usize> {
        self.ends
            .get(run)
            .map(|end| u16::from_le_bytes(*end) as usize)
            .ok_or_else(|| corrupt(BAD_END))
    }

    /// The run that contains a row. Any run, or none, if the ends are damaged.
    #[inline]
    fn run(&self, row: usize) -> usize {
        self.ends.partition_point(|end| u16::from_le_bytes(*end) as usize <= row)
    }

    /// The value of every row, given the index of its run in `values`.
    fn expand(&self, values: Form, positions: Vec<u32>) -> Result<Form> {
        let Form::Flat(values) = values else { return Err(corrupt("values of runs are not flat")) };
        Ok(Form::Flat(values.take(positions.into_iter())))
    }
}

impl<'a> Scheme<'a> for RunLength<'a> {
    const NAME: &'static str = "run_length";
    const OFFER: Offer = Offer::InsteadOfAny;
    const SEEK_ONE_IN: usize = 4;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    fn open(source: Source<'a>) -> Result<RunLength<'a>> {
        let Source { bytes, physical, rows, .. } = source;
        let count = u32_at(bytes, 0, ENDS_EARLY)?;
        let encoding = u32_at(bytes, 4, ENDS_EARLY)? as u32;
        if count == 0 || count > rows {
            return Err(corrupt("more runs than rows, or none"));
        }
        let (ends, _) = slice(bytes, 8, count * 2, ENDS_EARLY)?.as_chunks();
        let values = &bytes[8 + count * 2..];
        let runs = match encoding {
            PLAIN => Runs::Plain(Plain::read(values, physical, count)?),
            BIT_PACKED => Runs::BitPacked(BitPacked::read(values, physical, count)?),
            _ => return Err(corrupt("unknown encoding of the values of runs")),
        };
        debug_assert_eq!(ends.len(), count, "ends of runs");
        Ok(RunLength { ends, runs, rows, bytes: bytes.len() })
    }
}

impl<'a> Body<'a> for RunLength<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        match self.run(row) {
            run if run < self.ends.len() => self.values().get(run),
            _ => Err(corrupt(BAD_END)),
        }
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let first = self.run(start);
        let mut positions = Vec::with_capacity(len);
        let mut run = first;
        let mut at = start;
        while at < start + len {
            let end = self.end(run)?.min(start + len);
            if end <= at {
                return Err(corrupt(BAD_END));
            }
            positions.resize(end - start, (run - first) as u32);
            at = end;
            run += 1;
        }
        debug_assert_eq!(positions.len(), len, "rows of decoded runs");
        let values = self.values().decode(first, run - first)?;
        if let Form::Flat(Values::Bytes(column)) = &values {
            let expanded: usize = positions.iter().map(|run| column.get(*run as usize).len()).sum();
            if expanded > self.bytes.saturating_mul(MAX_RATIO) {
                return Err(corrupt("runs claim an impossible length"));
            }
        }
        self.expand(values, positions)
    }

    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        debug_assert!(
            len > 0 && start + len <= self.rows,
            "rows {start}+{len} of {} to filter",
            self.rows
        );
        let first = self.run(start);
        let past = self.run(start + len - 1).min(self.ends.len() - 1) + 1;
        let mut passes = Bitmap::default();
        if first < past {
            self.values().filter(predicate, first, past - first, &mut passes)?;
        }
        let mut at = start;
        for run in first..past {
            let end = self.end(run)?.min(start + len);
            if end <= at {
                break;
            }
            out.extend_run(passes.get(run - first), end - at);
            at = end;
        }
        if at < start + len { Err(corrupt(BAD_END)) } else { Ok(()) }
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let Some(&first) = rows.first() else { return self.decode(0, 0) };
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let mut run = self.run(first as usize);
        let mut runs: Vec<u32> = Vec::new();
        let mut positions = Vec::with_capacity(rows.len());
        for &row in rows {
            while self.end(run)? <= row as usize {
                run += 1;
            }
            if runs.last() != Some(&(run as u32)) {
                runs.push(run as u32);
            }
            positions.push(runs.len() as u32 - 1);
        }
        debug_assert!(
            rows.iter().all(|row| (*row as usize) < self.rows),
            "a row to take is past the {} rows of its body",
            self.rows
        );
        self.expand(self.values().take(&runs)?, positions)
    }
}
