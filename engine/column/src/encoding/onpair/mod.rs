//! OnPair: text and binary as codes of the tokens of their column, frequent strings of up to 16
//! bytes: words, and pairs of words (Gargiulo and Venturini, *OnPair: Short Strings Compression for
//! Fast Random Access*, 2025).
//!
//! The tokens are the column's dictionary: a block of its own, a block header of the plain encoding,
//! then a plain body of at most 4,096 values, strictly ascending. Unlike the values of a dictionary,
//! they may split characters. The body of a column block: the bits of a code (`u8`), three zero
//! bytes, the lengths in bytes of the bases and of the counts (`u32` each), four zero bytes, then the
//! bases and the counts, both as bit-packed bodies of 64-bit integers, then the codes. There is one
//! count per row, its number of codes, and one base for every 32 rows, the number of codes before
//! them. Codes follow each other without gaps, least significant bit first; three zero bytes end
//! them. Reading one row takes its base, at most 32 counts, its codes and their tokens.

pub(crate) mod tokens;
mod train;

pub(crate) use train::Training;

use super::bitpacked::{self, BitPacked};
use super::dictionary::ascends;
use super::plain::Plain;
use super::read::{corrupt, slice, u32_at};
use super::scheme::{Body, Dictionary, Input, Offer, Scheme, See, Shared, Source};
use super::values::open_values;
use crate::{BytesColumn, Form, Scalar, Values};
use nacre_types::{PhysicalType, Result};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use tokens::{LONGEST, MAX_TOKENS, TokenSet};

/// Rows that share a base. Divides the number of rows of a bit-packed sub-block.
const GROUP: usize = 32;
const _: () = assert!(bitpacked::SUB_ROWS.is_multiple_of(GROUP));
/// Bytes before the bases.
const HEAD: usize = 16;
/// Zero bytes after the codes, so that four bytes can be read from where a code starts.
const PADDING: usize = 3;
/// Maximum bits of a code. With the bit where it starts, it must fit in four bytes.
const WIDEST: u32 = MAX_TOKENS.ilog2();
/// Average distance between rows up to which decoding all rows in between beats seeking one by one.
const SEEK_BELOW: usize = 4;
/// Number of codes of a row for which [`Body::touch`] prefetches the tokens.
const TOUCHED: usize = 16;
const ENDS_EARLY: &str = "codes of tokens end early";
const NO_TOKEN: &str = "code without a token";

/// Codes being written.
#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
    pending: u32,
    bits: u32,
}

impl Packer {
    fn push(&mut self, code: usize, width: u32) {
        debug_assert!(code >> width == 0, "code {code} of {width} bits");
        self.pending |= (code as u32) << self.bits;
        self.bits += width;
        while self.bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.bits -= 8;
        }
    }
}

/// Appends the body if the values are text or binary.
fn encode(input: Input<'_>, tokens: &TokenSet, out: &mut Vec<u8>) -> bool {
    let Values::Bytes(values) = input.values else { return false };
    let width = tokens.width();
    let mut codes = Packer::default();
    let (mut bases, mut counts) = (Vec::new(), Vec::with_capacity(input.len));
    let mut total = 0i64;
    for row in 0..input.len {
        if row % GROUP == 0 {
            bases.push(total);
        }
        let mut count = 0;
        if input.is_valid(row) {
            let at = |row: usize| values.offsets[input.start + row] as usize;
            tokens.split(&values.data, at(row), at(row + 1), |code| {
                codes.push(code, width);
                count += 1;
            });
        }
        counts.push(count);
        total += count;
    }
    let padding = PADDING + (codes.bits > 0) as usize;
    codes.bytes.push(codes.pending as u8);
    codes.bytes.resize(codes.bytes.len() - 1 + padding, 0);
    let head = out.len();
    out.resize(head + HEAD, 0);
    out[head] = width as u8;
    for (at, numbers) in [(4, bases), (8, counts)] {
        let before = out.len();
        if !bitpacked::encode(Input::new(&Values::I64(numbers), None), out) {
            return false;
        }
        let length = (out.len() - before) as u32;
        out[head + at..head + at + 4].copy_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(&codes.bytes);
    debug_assert!(
        Stored::read(&out[head..], input.len).is_ok_and(|stored| {
            let all = stored.range(0, total as usize);
            stored.width == width && all.is_ok_and(|codes| codes.len() == total as usize)
        }),
        "a body of {total} codes does not read back"
    );
    true
}

/// Lower bound of the size of the body that [`encode`] would append, in bytes.
pub(crate) fn least_bytes(input: Input<'_>, tokens: &TokenSet) -> usize {
    let Values::Bytes(values) = input.values else { return 0 };
    let valid = (0..input.len).filter(|row| input.is_valid(*row));
    let codes = valid.map(|row| values.get(input.start + row).len().div_ceil(LONGEST));
    codes.sum::<usize>() * tokens.width() as usize / 8
}

/// A body without the tokens.
struct Stored<'a> {
    width: u32,
    bases: BitPacked<'a>,
    counts: BitPacked<'a>,
    codes: &'a [u8],
    rows: usize,
}

impl<'a> Stored<'a> {
    fn read(bytes: &'a [u8], rows: usize) -> Result<Stored<'a>> {
        let [width, 0, 0, 0] = *slice(bytes, 0, 4, ENDS_EARLY)? else {
            return Err(corrupt("reserved bytes of the width of codes are not zero"));
        };
        if !(1..=WIDEST).contains(&(width as u32)) {
            return Err(corrupt("codes of tokens have an impossible width"));
        }
        let bases = slice(bytes, HEAD, u32_at(bytes, 4, ENDS_EARLY)?, ENDS_EARLY)?;
        let at = HEAD + bases.len();
        let counts = slice(bytes, at, u32_at(bytes, 8, ENDS_EARLY)?, ENDS_EARLY)?;
        let codes = &bytes[at + counts.len()..];
        Ok(Stored {
            width: width as u32,
            bases: BitPacked::read(bases, PhysicalType::I64, rows.div_ceil(GROUP))?,
            counts: BitPacked::read(counts, PhysicalType::I64, rows)?,
            codes,
            rows,
        })
    }

    /// Which codes are those of a row.
    #[inline]
    fn span(&self, row: usize) -> Result<Range<usize>> {
        debug_assert!(row < self.rows, "row {row} of {}", self.rows);
        let first: i64 = self.bases.one(row / GROUP)?;
        let start = first.wrapping_add(self.counts.sum(row - row % GROUP, row % GROUP)?);
        let end = start.wrapping_add(self.counts.one(row)?);
        match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) if start <= end => Ok(start..end),
            _ => Err(corrupt("codes of a row out of order")),
        }
    }

    /// The bytes that hold codes, at least one, with the padding after them.
    #[inline]
    fn bytes(&self, codes: &Range<usize>) -> Result<&'a [u8]> {
        let width = self.width as u64;
        let start = (codes.start as u64).saturating_mul(width) / 8;
        let end = (codes.end as u64).saturating_mul(width).div_ceil(8);
        let range = start as usize..(end as usize).saturating_add(PADDING);
        let inside = end <= self.codes.len() as u64;
        self.codes.get(range).filter(|_| inside).ok_or_else(|| corrupt(ENDS_EARLY))
    }

    /// Passes codes to `see`.
    #[inline]
    fn each(&self, codes: Range<usize>, mut see: impl FnMut(usize)) -> Result<()> {
        debug_assert!(self.width <= WIDEST, "codes of {} bits", self.width);
        let bytes = self.bytes(&codes)?;
        let width = self.width as usize;
        let mask = (1u32 << width) - 1;
        let mut bit = (codes.start as u64 * width as u64 % 8) as usize;
        for _ in codes {
            let word = bytes.get(bit / 8..).and_then(|rest| rest.first_chunk());
            let word = word.map_or(0, |word| u32::from_le_bytes(*word));
            see((word >> (bit % 8) & mask) as usize);
            bit += width;
        }
        Ok(())
    }

    /// The codes of a range.
    fn range(&self, start: usize, len: usize) -> Result<Vec<u16>> {
        let range = start..start.saturating_add(len);
        // Before memory is reserved for them.
        self.bytes(&range)?;
        let mut out = Vec::with_capacity(len);
        self.each(range, |code| out.push(code as u16))?;
        Ok(out)
    }

    /// The number of codes of each row of a range, the first of them, and how many there are.
    fn counts(&self, start: usize, len: usize) -> Result<(Vec<i64>, usize, usize)> {
        let out_of_order = || corrupt("codes of a row out of order");
        let counts: Vec<i64> = self.counts.range(start, len)?;
        let first = self.span(start)?.start;
        let mut total = first as i64;
        let mut ordered = true;
        let bases: Vec<i64> =
            self.bases.range(start / GROUP, (start % GROUP + len).div_ceil(GROUP))?;
        let mut bases = bases.iter().skip(1);
        for (row, count) in (start..).zip(&counts) {
            if row.is_multiple_of(GROUP) && row > start {
                ordered &= bases.next() == Some(&total);
            }
            ordered &= *count >= 0;
            total = total.checked_add(*count).ok_or_else(out_of_order)?;
        }
        match usize::try_from(total) {
            Ok(total) if ordered => Ok((counts, first, total - first)),
            _ => Err(out_of_order()),
        }
    }
}

/// A body of codes, with the tokens of its column.
pub(crate) struct OnPair<'a> {
    stored: Stored<'a>,
    dictionary: Dictionary<'a>,
    tokens: Plain<'a>,
}

impl<'a> OnPair<'a> {
    /// A token, with whatever is stored after it, and its length.
    #[inline]
    fn token(&self, code: usize) -> Result<(&'a [u8], usize)> {
        match code < self.dictionary.count {
            true => self.tokens.bytes_on(code).and_then(|(data, len)| match len <= LONGEST {
                true => Ok((data, len)),
                false => Err(corrupt("token is too long")),
            }),
            false => Err(corrupt(NO_TOKEN)),
        }
    }

    /// Appends a row.
    #[inline]
    fn expand(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let span = self.stored.span(row)?;
        self.stored.bytes(&span)?;
        // Copies 16 bytes of a token if there are as many; the next one overwrites those past its
        // length.
        let mut at = out.len();
        out.resize(at + span.len() * LONGEST, 0);
        let mut result = Ok(());
        self.stored.each(span, |code| match (self.token(code), out.get_mut(at..at + LONGEST)) {
            (Ok((data, len)), Some(room)) => {
                match data.first_chunk::<LONGEST>() {
                    Some(token) => room.copy_from_slice(token),
                    None => room[..len].copy_from_slice(&data[..len]),
                }
                at += len;
            }
            (Ok(_), None) => result = Err(corrupt(NO_TOKEN)),
            (Err(error), _) => result = Err(error),
        })?;
        out.truncate(at);
        result
    }

    /// All tokens, followed by as many bytes as the longest has: each can be copied with a fixed
    /// number of bytes.
    fn all_tokens(&self) -> Result<Arc<Values>> {
        let Dictionary { count, decoded, .. } = self.dictionary;
        if let Some(values) = decoded.get() {
            return Ok(values.clone());
        }
        let mut values = self.tokens.values(0, count)?;
        if !ascends(&values) {
            return Err(corrupt("tokens are not sorted"));
        }
        if let Values::Bytes(tokens) = &mut values {
            tokens.data.resize(tokens.data.len() + LONGEST, 0);
        }
        Ok(decoded.get_or_init(|| Arc::new(values)).clone())
    }

    /// The texts of rows with these numbers of codes.
    fn expand_all(&self, codes: &[u16], counts: &[i64]) -> Result<BytesColumn> {
        let tokens = self.all_tokens()?;
        let Values::Bytes(tokens) = &*tokens else { return Err(corrupt(NO_TOKEN)) };
        let place = |code: &u16| {
            let at = tokens.offsets.get(*code as usize..).and_then(|at| at.first_chunk::<2>());
            at.map_or((0, usize::MAX), |[start, end]| (*start as usize, (end - start) as usize))
        };
        let mut offsets = Vec::with_capacity(counts.len() + 1);
        offsets.push(0);
        let (mut rest, mut size, mut longest) = (codes, 0, 0);
        for count in counts {
            let Some((row, after)) = rest.split_at_checked(*count as usize) else {
                return Err(corrupt(ENDS_EARLY));
            };
            for code in row {
                let (_, len) = place(code);
                longest = len.max(longest);
                size += len.min(LONGEST);
            }
            offsets.push(size as u32);
            rest = after;
        }
        if longest > LONGEST || u32::try_from(size).is_err() {
            return Err(corrupt(NO_TOKEN));
        }
        // Copies all bytes that a token could have; the next one overwrites those past its length.
        let mut data = vec![0; size + LONGEST];
        let mut at = 0;
        for code in codes {
            let (start, len) = place(code);
            match (data.get_mut(at..at + LONGEST), tokens.data.get(start..start + LONGEST)) {
                (Some(room), Some(token)) => room.copy_from_slice(token),
                _ => return Err(corrupt(NO_TOKEN)),
            }
            at += len;
        }
        debug_assert_eq!(at, size, "bytes of expanded tokens");
        data.truncate(size);
        Ok(BytesColumn { offsets, data })
    }

    fn texts(&self, start: usize, len: usize) -> Result<BytesColumn> {
        if len == 0 {
            return Ok(BytesColumn::default());
        }
        let (counts, first, total) = self.stored.counts(start, len)?;
        let out = self.expand_all(&self.stored.range(first, total)?, &counts)?;
        debug_assert_eq!(out.len(), len, "texts of a range");
        Ok(out)
    }
}

impl<'a> Scheme<'a> for OnPair<'a> {
    const NAME: &'static str = "onpair";
    const OFFER: Offer = Offer::ByColumn;
    const SEEK_ONE_IN: usize = 4;
    const SHARES: bool = true;

    fn encode(input: Input<'_>, shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        let Shared::Tokens(tokens) = shared else { return false };
        encode(input, tokens, out)
    }

    fn open(source: Source<'a>) -> Result<OnPair<'a>> {
        let missing = || corrupt("block of tokens of a column that has none");
        let dictionary = source.dictionary.ok_or_else(missing)?;
        if source.physical != PhysicalType::Bytes || dictionary.count > MAX_TOKENS {
            return Err(corrupt("tokens of the wrong type or number"));
        }
        let tokens = open_values(dictionary.bytes, source.physical, dictionary.count)?;
        Ok(OnPair { stored: Stored::read(source.bytes, source.rows)?, dictionary, tokens })
    }

    /// Includes the bases, which tell the place of a row's codes nearly exactly.
    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        let stored = Stored::read(source.bytes, source.rows)?;
        see(slice(source.bytes, 0, HEAD + u32_at(source.bytes, 4, ENDS_EARLY)?, ENDS_EARLY)?);
        stored.counts.head(see);
        Ok(true)
    }
}

impl<'a> Body<'a> for OnPair<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        let mut out = Vec::new();
        self.expand(row, &mut out)?;
        Ok(Scalar::Bytes(Cow::Owned(out)))
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        self.stored.counts.parts(row - row % GROUP, row, see);
        // Damage is reported when the row is read.
        let codes = self.stored.span(row).and_then(|span| self.stored.bytes(&span));
        see(codes.unwrap_or_default());
    }

    /// Touches the tokens, which are scattered over the dictionary.
    fn touch(&self, row: usize) -> u8 {
        let mut touched = 0;
        // Damage is reported when the row is read.
        let Ok(span) = self.stored.span(row) else { return touched };
        let span = span.start..span.end.min(span.start + TOUCHED);
        let _ = self.stored.each(span, |code| {
            touched ^= self.token(code).map_or(0, |(data, _)| data.first().copied().unwrap_or(0));
        });
        touched
    }

    /// Compares token by token, up to the first difference.
    fn order_to(&self, row: usize, other: &[u8]) -> Result<Ordering> {
        let mut rest = other;
        let mut order = Ok(Ordering::Equal);
        self.stored.each(self.stored.span(row)?, |code| {
            if !matches!(order, Ok(Ordering::Equal)) {
                return;
            }
            match self.token(code) {
                Ok((data, len)) => match rest.strip_prefix(&data[..len]) {
                    Some(after) => rest = after,
                    None => order = Ok(data[..len].cmp(rest)),
                },
                Err(error) => order = Err(error),
            }
        })?;
        Ok(order?.then(if rest.is_empty() { Ordering::Equal } else { Ordering::Less }))
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(Values::Bytes(self.texts(start, len)?)))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else {
            return self.decode(0, 0);
        };
        let span = (last - first) as usize + 1;
        if rows.len().saturating_mul(SEEK_BELOW) >= span {
            let all = Values::Bytes(self.texts(first as usize, span)?);
            return Ok(Form::Flat(all.take(rows.iter().map(|row| row - first))));
        }
        let mut out = BytesColumn::default();
        for row in rows {
            self.expand(*row as usize, &mut out.data)?;
            let end = u32::try_from(out.data.len());
            out.offsets.push(end.map_err(|_| corrupt("codes expand to too many bytes"))?);
        }
        Ok(Form::Flat(Values::Bytes(out)))
    }
}

#[cfg(test)]
mod tests;
