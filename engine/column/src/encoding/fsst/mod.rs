//! FSST: text and binary as codes of frequent short strings (Boncz, Neumann and Leis, *FSST: Fast
//! Random Access String Compression*, VLDB 2020).
//!
//! Body: a `u32` number of symbols (at most 255), four zero bytes, 8 bytes per symbol (padded with
//! zeroes), one byte per symbol for its length (1 to 8), then the codes of every row as a plain
//! body of bytes. A code below 255 stands for the symbol of that number, 255 escapes the next byte
//! as a literal. Reading one row takes its offsets and its codes. Each block has its own symbol
//! table and can be read alone.
//!
//! A library trains the table and compresses. Decompression is implemented here, because stored
//! bytes are untrusted.

use super::plain::{self, Plain};
use super::read::{corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::kernel::{Pattern, Predicate};
use crate::{Bitmap, BytesColumn, Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Escape code: the next byte is a literal.
const ESCAPE: u8 = 255;
/// Maximum length of a symbol, in bytes.
const LONGEST: usize = 8;
/// Number of codes of a row for which [`Body::touch`] prefetches the symbols.
const TOUCHED: usize = 24;
const ENDS_EARLY: &str = "symbol table ends early";

/// Appends the body if the values are text or binary.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Values::Bytes(values) = input.values else { return false };
    let lines: Vec<&[u8]> = (0..input.len)
        .map(|row| if input.is_valid(row) { values.get(input.start + row) } else { &[] })
        .collect();
    let compressor = ::fsst::Compressor::train(&lines);
    let symbols = compressor.n_symbols();
    invariant!(symbols <= ESCAPE as usize, "a table of {symbols} symbols");
    debug_assert!(
        compressor.symbol_lengths()[..symbols].iter().all(|len| (1..=LONGEST as u8).contains(len)),
        "a symbol without bytes, or with more than {LONGEST}"
    );
    out.put_u32(symbols as u32);
    out.put_u32(0);
    compressor.symbol_table().iter().take(symbols).for_each(|symbol| out.put_u64(symbol.to_u64()));
    out.extend_from_slice(&compressor.symbol_lengths()[..symbols]);
    let mut codes = BytesColumn::default();
    codes.offsets.reserve(lines.len());
    lines.iter().for_each(|line| codes.push(&compressor.compress(line)));
    invariant!(codes.len() == input.len, "{} compressed rows of {}", codes.len(), input.len);
    plain::encode(Input::new(&Values::Bytes(codes), None), out);
    true
}

/// Lower bound of the size of the body that [`encode`] would append, in bytes.
pub(crate) fn least_bytes(input: Input<'_>) -> usize {
    let Values::Bytes(values) = input.values else { return 0 };
    let valid = (0..input.len).filter(|row| input.is_valid(*row));
    valid.map(|row| values.get(input.start + row).len().div_ceil(LONGEST)).sum()
}

/// A body of codes with its symbol table.
pub(crate) struct Fsst<'a> {
    symbols: &'a [[u8; LONGEST]],
    lengths: &'a [u8],
    codes: Plain<'a>,
}

impl Fsst<'_> {
    /// The bytes of a code; `None` for the escape and for codes without a symbol.
    #[inline]
    fn symbol(&self, code: u8) -> Option<&[u8]> {
        let (symbol, length) =
            (self.symbols.get(code as usize)?, *self.lengths.get(code as usize)?);
        Some(&symbol[..(length as usize).min(LONGEST)])
    }

    /// Appends the decoded symbols: at most [`LONGEST`] bytes per code.
    #[inline]
    fn expand(&self, codes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        // Writes all eight bytes of a symbol; the next one overwrites those past its length. That
        // is cheaper than copying a variable number of bytes.
        let mut at = out.len();
        out.resize(at + codes.len() * LONGEST, 0);
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            if let (Some(symbol), Some(&length)) =
                (self.symbols.get(code as usize), self.lengths.get(code as usize))
                && let Some(room) = out.get_mut(at..at + LONGEST)
            {
                room.copy_from_slice(symbol);
                at += (length as usize).min(LONGEST);
            } else if let (ESCAPE, Some(&byte)) = (code, codes.next())
                && let Some(room) = out.get_mut(at)
            {
                *room = byte;
                at += 1;
            } else {
                return Err(corrupt("code without a symbol"));
            }
        }
        debug_assert!(at <= out.len(), "symbols past the room for them");
        out.truncate(at);
        Ok(())
    }

    fn expand_all(&self, form: Form) -> Result<Form> {
        let Form::Flat(Values::Bytes(codes)) = form else {
            return Err(corrupt("codes of text are not bytes"));
        };
        let mut out = BytesColumn::default();
        out.offsets.reserve(codes.len());
        out.data.reserve(codes.data.len() * 3);
        for row in 0..codes.len() {
            self.expand(codes.get(row), &mut out.data)?;
            out.offsets.push(out.data.len() as u32);
        }
        debug_assert_eq!(out.len(), codes.len(), "texts of expanded rows");
        match u32::try_from(out.data.len()) {
            Ok(_) => Ok(Form::Flat(Values::Bytes(out))),
            Err(_) => Err(corrupt("codes expand to too many bytes")),
        }
    }
}

/// An automaton that reads codes.
struct Steps<'a> {
    body: &'a Fsst<'a>,
    pattern: &'a Pattern,
    /// The state in which a symbol ends, by the state in which it begins and its code. Found out
    /// when they first meet.
    next: Vec<[u8; 256]>,
}

impl<'a> Steps<'a> {
    const UNKNOWN: u8 = u8::MAX;

    fn new(body: &'a Fsst<'_>, pattern: &'a Pattern) -> Steps<'a> {
        debug_assert!(pattern.states() < Steps::UNKNOWN as usize, "{} states", pattern.states());
        Steps { body, pattern, next: vec![[Steps::UNKNOWN; 256]; pattern.states()] }
    }

    /// Whether a row passes.
    #[inline]
    fn passes(&mut self, row: usize) -> Result<bool> {
        let mut state = 0;
        let mut codes = self.body.codes.bytes(row)?.iter();
        while let Some(&code) = codes.next() {
            state = match self.next[state as usize][code as usize] {
                Steps::UNKNOWN => self.step(state, code, &mut codes)?,
                next => next,
            };
            if self.pattern.is_settled(state) {
                break;
            }
        }
        Ok(self.pattern.passes_in(state))
    }

    /// The state after a code, and after the literal that follows if it is the escape.
    #[cold]
    fn step(&mut self, state: u8, code: u8, rest: &mut std::slice::Iter<'_, u8>) -> Result<u8> {
        if let Some(symbol) = self.body.symbol(code) {
            let next = self.pattern.after(state, symbol);
            self.next[state as usize][code as usize] = next;
            return Ok(next);
        }
        match (code, rest.next()) {
            (ESCAPE, Some(literal)) => Ok(self.pattern.after(state, std::slice::from_ref(literal))),
            _ => Err(corrupt("code without a symbol")),
        }
    }
}

impl<'a> Scheme<'a> for Fsst<'a> {
    const NAME: &'static str = "fsst";
    const OFFER: Offer = Offer::ByColumn;
    const SEEK_ONE_IN: usize = 2;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    fn open(source: Source<'a>) -> Result<Fsst<'a>> {
        let Source { bytes, physical, rows, .. } = source;
        let count = u32_at(bytes, 0, ENDS_EARLY)?;
        if physical != PhysicalType::Bytes || count > ESCAPE as usize {
            return Err(corrupt("symbol table of the wrong type or size"));
        }
        let (symbols, _) = slice(bytes, 8, count * LONGEST, ENDS_EARLY)?.as_chunks();
        let at = 8 + count * LONGEST;
        let lengths = slice(bytes, at, count, ENDS_EARLY)?;
        debug_assert_eq!(symbols.len(), lengths.len(), "symbols and their lengths");
        Ok(Fsst { symbols, lengths, codes: Plain::read(&bytes[at + count..], physical, rows)? })
    }

    /// Without the symbols, which would take as much memory as the values of many rows.
    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        let body = Fsst::open(source)?;
        see(slice(source.bytes, 0, 8, ENDS_EARLY)?);
        let at = 8 + body.lengths.len() * (LONGEST + 1);
        Plain::head(&source.bytes[at..], source.physical, source.rows, see)
    }
}

impl<'a> Body<'a> for Fsst<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        let mut out = Vec::new();
        self.expand(self.codes.bytes(row)?, &mut out)?;
        Ok(Scalar::Bytes(Cow::Owned(out)))
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        debug_assert_eq!(self.symbols.len(), self.lengths.len(), "symbols and their lengths");
        see(self.symbols.as_flattened());
        see(self.lengths);
        self.codes.parts(row, see);
    }

    /// Also touches the symbols, which are scattered over the table.
    fn touch(&self, row: usize) -> u8 {
        // Damage is reported when the row is read.
        let codes = self.codes.bytes(row).unwrap_or_default();
        let symbols =
            codes.iter().take(TOUCHED).filter_map(|code| self.symbols.get(*code as usize));
        symbols.fold(0, |touched, symbol| touched ^ symbol[0])
    }

    /// Compares symbol by symbol, up to the first difference.
    fn order_to(&self, row: usize, other: &[u8]) -> Result<Ordering> {
        let mut rest = other;
        let mut codes = self.codes.bytes(row)?.iter();
        while let Some(&code) = codes.next() {
            let escaped;
            let symbol = match self.symbol(code) {
                Some(symbol) => symbol,
                None => match (code, codes.next()) {
                    (ESCAPE, Some(&byte)) => {
                        escaped = [byte];
                        &escaped[..]
                    }
                    _ => return Err(corrupt("code without a symbol")),
                },
            };
            match rest.strip_prefix(symbol) {
                Some(after) => rest = after,
                None => return Ok(symbol.cmp(rest)),
            }
        }
        Ok(if rest.is_empty() { Ordering::Equal } else { Ordering::Less })
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        self.expand_all(self.codes.decode(start, len)?)
    }

    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let mut text = Vec::new();
        let rows = start..start + len;
        let Some(pattern) = predicate.pattern() else {
            for row in rows {
                text.clear();
                self.expand(self.codes.bytes(row)?, &mut text)?;
                out.push(predicate.accepts_bytes(&text));
            }
            return Ok(());
        };
        let mut steps = Steps::new(self, &pattern);
        for row in rows {
            out.push(steps.passes(row)?);
        }
        Ok(())
    }

    fn matches(&self, pattern: &Pattern, start: usize, rows: &Bitmap) -> Result<Option<Bitmap>> {
        let mut steps = Steps::new(self, pattern);
        let mut passed = Bitmap::filled(rows.len(), false);
        for row in rows.ones() {
            passed.set(row as usize, steps.passes(start + row as usize)?);
        }
        Ok(Some(passed))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        self.expand_all(self.codes.take(rows)?)
    }
}
