//! The unit of positions and lengths in text, and the loop of functions from text to text.

use nacre_column::Vector;
use nacre_function::entry::definition::Call;
use nacre_function::vector::map::map_bytes;
use nacre_function::vector::view::{self, Texts, Wide};
use nacre_types::{DataType, Result};
use std::borrow::Cow;

/// The unit of positions and lengths: characters of text, bytes of binary values.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Characters,
    Bytes,
}

impl Unit {
    pub fn of(vector: &Vector) -> Unit {
        match vector.data_type() {
            DataType::Binary { .. } => Unit::Bytes,
            _ => Unit::Characters,
        }
    }

    /// The length. A character is counted at each byte that is not a UTF-8 continuation byte.
    pub fn count(self, value: &[u8]) -> usize {
        match self {
            Unit::Characters => value.iter().filter(|b| (**b & 0xc0) != 0x80).count(),
            Unit::Bytes => value.len(),
        }
    }

    /// Byte offset of unit `n`; the length of the value if there are fewer.
    fn offset(self, value: &[u8], n: usize) -> usize {
        if self == Unit::Bytes || value.is_ascii() {
            return n.min(value.len());
        }
        let starts = value.iter().enumerate().filter(|(_, b)| (**b & 0xc0) != 0x80);
        starts.map(|(at, _)| at).nth(n).unwrap_or(value.len())
    }

    /// The units from `from` to `to`, both clamped to the value.
    pub fn slice(self, value: &[u8], from: usize, to: usize) -> &[u8] {
        if to <= from {
            return &[];
        }
        let rest = &value[self.offset(value, from)..];
        &rest[..self.offset(rest, to - from)]
    }
}

/// The arguments of a function from text to text at one row.
pub(super) struct TextRow<'a> {
    args: &'a [&'a Vector],
    numbers: &'a [Option<Wide<'a>>],
    row: usize,
    /// The unit of positions and lengths in the first argument.
    pub unit: Unit,
}

impl<'a> TextRow<'a> {
    /// Whether an argument is present.
    pub fn has(&self, at: usize) -> bool {
        at < self.args.len()
    }

    /// A text or binary argument; empty if omitted.
    pub fn bytes(&self, at: usize) -> &'a [u8] {
        self.args.get(at).map_or(&[], |arg| Texts::new(arg).bytes(self.row))
    }

    /// A text argument as a string.
    pub fn string(&self, at: usize) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes(at))
    }

    /// An integer argument, clamped to 32 bits: no text is longer.
    pub fn number(&self, at: usize) -> i64 {
        match self.numbers.get(at) {
            Some(Some(v)) => v.get(self.row).clamp(i32::MIN as i128, i32::MAX as i128) as i64,
            _ => 0,
        }
    }
}

/// Computes a text for each row: `compute` appends its bytes.
pub(super) fn transform(
    call: &Call<'_>,
    compute: fn(&TextRow<'_>, &mut Vec<u8>) -> Result<()>,
) -> Result<Vector> {
    let args = call.vectors();
    let numbers: Vec<_> = args.iter().map(|arg| view::wide(arg)).collect();
    let unit = args.first().map_or(Unit::Characters, |arg| Unit::of(arg));
    map_bytes(&args, call.data_type, call.rows, call.room(), &mut |row, out| {
        compute(&TextRow { args: &args, numbers: &numbers, row, unit }, out).map(|()| true)
    })
}
