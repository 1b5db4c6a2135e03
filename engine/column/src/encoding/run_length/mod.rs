//! Run-length: equal neighbours as one value and the row their run ends before.
//!
//! Body: a `u32` number of runs, a `u32` kind of the values (1 plain, 3 bit-packed: the numbers of
//! those encodings), one `u16` end a run (the row after its last, ascending; the last one is the
//! number of rows), then the values of the runs as a body of that kind. Nulls belong to the run they
//! are in. So one row costs a binary search over the ends and one value.

use super::bitpacked::{self, BitPacked};
use super::plain::{self, Plain};
use super::{Body, Encoding, Input, corrupt, slice, u32_at};
use crate::kernel::Predicate;
use crate::{Bitmap, Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result};

/// Text of runs expands to at most this many times the bytes of its block: more would be damage.
const MAX_RATIO: usize = 256;
const ENDS_EARLY: &str = "runs end early";
const BAD_END: &str = "run ends out of order";

/// The first row of every run; the first run starts at 0 even if its first rows are null.
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
        // By bits: zeroes of both signs, and NaNs, must come back as they were.
        Values::F64(v) => starts(input, |row| v[row].to_bits()),
        Values::Bytes(v) => starts(input, |row| v.get(row)),
    }
}

/// About the bytes of the body [`encode`] would append.
pub fn estimated_size(input: Input<'_>) -> usize {
    let starts = starts(input);
    let each = match input.values {
        Values::Bool(_) => 1,
        Values::I128(_) => 16,
        Values::Bytes(v) => v.data.len() / v.len().max(1) + 2,
        _ => 8,
    };
    8 + starts.len() * (2 + each)
}

/// Appends the body, if there are fewer runs than rows: at most one for two rows.
pub fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let starts = starts(input);
    if starts.is_empty() || starts.len() * 2 > input.len || input.len > u16::MAX as usize {
        return false;
    }
    let body = out.len();
    let values = input.values.take(starts.iter().map(|row| row + input.start as u32));
    let runs = Input { values: &values, validity: None, start: 0, len: values.len() };
    let plain_size = values.len() * if values.physical() == PhysicalType::I128 { 16 } else { 8 };
    let packed = bitpacked::encoded_size(runs).is_some_and(|size| size < plain_size);
    out.put_u32(starts.len() as u32);
    out.put_u32(if packed { Encoding::BitPacked } else { Encoding::Plain } as u32);
    let ends = starts[1..].iter().copied().chain([input.len as u32]);
    ends.clone().for_each(|end| out.put_u16(end as u16));
    if packed {
        bitpacked::encode(runs, out);
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

enum Runs<'a> {
    Plain(Plain<'a>),
    BitPacked(BitPacked<'a>),
}

/// A run-length body.
pub struct RunLength<'a> {
    ends: &'a [[u8; 2]],
    runs: Runs<'a>,
    rows: usize,
    bytes: usize,
}

impl<'a> RunLength<'a> {
    /// Reads the head of a body.
    pub fn open(bytes: &'a [u8], physical: PhysicalType, rows: usize) -> Result<RunLength<'a>> {
        let count = u32_at(bytes, 0, ENDS_EARLY)?;
        let kind = u32_at(bytes, 4, ENDS_EARLY)?;
        if count == 0 || count > rows {
            return Err(corrupt("more runs than rows, or none"));
        }
        let (ends, _) = slice(bytes, 8, count * 2, ENDS_EARLY)?.as_chunks();
        let values = &bytes[8 + count * 2..];
        let runs = match kind {
            k if k == Encoding::Plain as usize => {
                Runs::Plain(Plain::open(values, physical, count)?)
            }
            k if k == Encoding::BitPacked as usize => {
                Runs::BitPacked(BitPacked::open(values, physical, count)?)
            }
            _ => return Err(corrupt("unknown kind of values of runs")),
        };
        Ok(RunLength { ends, runs, rows, bytes: bytes.len() })
    }

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

    /// The run a row is in; any run, or none, where ends are damaged.
    #[inline]
    fn run(&self, row: usize) -> usize {
        self.ends.partition_point(|end| u16::from_le_bytes(*end) as usize <= row)
    }

    /// Values of runs, by the positions of rows among them.
    fn expand(&self, values: Form, positions: Vec<u32>) -> Result<Form> {
        let Form::Flat(values) = values else { return Err(corrupt("values of runs are not flat")) };
        Ok(Form::Flat(values.take(positions.into_iter())))
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
        debug_assert!(rows.iter().all(|row| (*row as usize) < self.rows));
        self.expand(self.values().take(&runs)?, positions)
    }
}
