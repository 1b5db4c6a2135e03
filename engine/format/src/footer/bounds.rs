//! Minimum and maximum values: computed per block, truncated for long text, and stored compactly
//! for all blocks of a column.

use nacre_column::Scalar;
use nacre_column::{Bitmap, Values};
use nacre_types::{DataType, PhysicalType, Value, invariant, key};
use std::borrow::Cow;

/// Maximum length of text and binary bounds, in bytes.
pub const BOUND_BYTES: usize = 32;

/// The bounds of every block of a column and, last, of the whole column. An entry without values
/// holds a placeholder, recognised by the null count.
#[derive(Debug)]
pub struct Bounds {
    /// Lower bounds.
    pub min: Values,
    /// Upper bounds.
    pub max: Values,
    /// Whether both bounds of an entry occur in the data.
    pub exact: Bitmap,
}

impl Bounds {
    /// No entries.
    pub fn new(physical: PhysicalType) -> Bounds {
        Bounds {
            min: Values::empty(physical),
            max: Values::empty(physical),
            exact: Bitmap::default(),
        }
    }

    /// Appends an entry; `extremes` is `None` if every row is null.
    pub fn push(&mut self, data_type: DataType, extremes: Option<&(Scalar<'_>, Scalar<'_>)>) {
        let mut exact = true;
        match extremes {
            None => {
                push_default(&mut self.min);
                push_default(&mut self.max);
            }
            Some((Scalar::Bytes(min), Scalar::Bytes(max))) => {
                let text = !matches!(data_type, DataType::Binary { .. });
                let low = cut(min, text);
                let high = raise(max, text);
                invariant!(*low <= **min && *high >= **max, "cut bounds do not contain the values");
                exact = low.len() == min.len() && *high == **max;
                push(&mut self.min, &Scalar::Bytes(Cow::Borrowed(low)));
                push(&mut self.max, &Scalar::Bytes(high));
            }
            Some((min, max)) => {
                invariant!(
                    min.order(max).is_le(),
                    "least value {min:?} above the greatest {max:?}"
                );
                push(&mut self.min, min);
                push(&mut self.max, max);
            }
        }
        self.exact.push(exact);
        debug_assert!(
            self.min.len() == self.exact.len() && self.max.len() == self.exact.len(),
            "bounds of different lengths"
        );
    }

    /// Entry `at` as values of the data type.
    pub fn values(&self, data_type: DataType, at: usize) -> (Value, Value) {
        debug_assert!(at < self.min.len(), "bounds {at} of {}", self.min.len());
        (
            Scalar::at(&self.min, at).to_value(data_type),
            Scalar::at(&self.max, at).to_value(data_type),
        )
    }
}

/// Appends a bound of the column's physical type.
fn push(values: &mut Values, scalar: &Scalar<'_>) {
    let rows = values.len();
    match (&mut *values, scalar) {
        (Values::Bool(v), Scalar::Bool(s)) => v.push(*s),
        (Values::I64(v), Scalar::I64(s)) => v.push(*s),
        (Values::I128(v), Scalar::I128(s)) => v.push(*s),
        (Values::F64(v), Scalar::F64(s)) => v.push(*s),
        (Values::Bytes(v), Scalar::Bytes(s)) => v.push(s),
        _ => {}
    }
    invariant!(values.len() == rows + 1, "bound {scalar:?} of another physical type");
}

fn push_default(values: &mut Values) {
    match values {
        Values::Bool(v) => v.push(false),
        Values::I64(v) => v.push(0),
        Values::I128(v) => v.push(0),
        Values::F64(v) => v.push(0.0),
        Values::Bytes(v) => v.push(&[]),
    }
}

/// The first bytes of a value, at most [`BOUND_BYTES`]; text is cut at a character boundary.
fn cut(value: &[u8], text: bool) -> &[u8] {
    if value.len() <= BOUND_BYTES {
        return value;
    }
    let mut end = BOUND_BYTES;
    while text && end > 0 && value[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &value[..end]
}

/// A bound at or above a value: the value itself if it is short, else its first bytes with the last
/// character (or byte) raised to the next one. A value that starts with nothing but greatest
/// characters cannot be raised and is kept whole.
fn raise(value: &[u8], text: bool) -> Cow<'_, [u8]> {
    let head = cut(value, text);
    if head.len() == value.len() {
        return Cow::Borrowed(value);
    }
    if !text {
        return match head.iter().rposition(|byte| *byte < 0xff) {
            Some(last) => {
                let mut out = head[..=last].to_vec();
                out[last] += 1;
                Cow::Owned(out)
            }
            None => Cow::Borrowed(value),
        };
    }
    let Ok(head) = std::str::from_utf8(head) else { return Cow::Borrowed(value) };
    for (at, last) in head.char_indices().rev() {
        // The surrogates after U+D7FF are not characters.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            return Cow::Owned(format!("{}{next}", &head[..at]).into_bytes());
        }
    }
    Cow::Borrowed(value)
}

/// The smallest and the largest non-null value, if any.
pub fn extremes<'a>(
    values: &'a Values,
    validity: Option<&Bitmap>,
) -> Option<(Scalar<'a>, Scalar<'a>)> {
    debug_assert!(validity.is_none_or(|v| v.len() == values.len()), "validity of other rows");
    if validity.is_none() && !values.is_empty() {
        // Fast path for common types, in loops that vectorise.
        match values {
            Values::I64(v) => {
                let (low, high) =
                    v.iter().fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
                return Some((Scalar::I64(low), Scalar::I64(high)));
            }
            Values::I128(v) => {
                let (low, high) =
                    v.iter().fold((i128::MAX, i128::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
                return Some((Scalar::I128(low), Scalar::I128(high)));
            }
            _ => {}
        }
    }
    let rows = (0..values.len()).filter(|row| validity.is_none_or(|v| v.get(*row)));
    let best = |less: &dyn Fn(usize, usize) -> bool| {
        rows.fold(None, |best: Option<(usize, usize)>, row| {
            Some(best.map_or((row, row), |(low, high)| {
                (if less(row, low) { row } else { low }, if less(high, row) { row } else { high })
            }))
        })
    };
    let (low, high) = match values {
        Values::Bool(v) => best(&|a, b| !v[a] & v[b]),
        Values::I64(v) => best(&|a, b| v[a] < v[b]),
        Values::I128(v) => best(&|a, b| v[a] < v[b]),
        Values::F64(v) => best(&|a, b| key::order_f64(v[a]) < key::order_f64(v[b])),
        Values::Bytes(v) => best(&|a, b| v.get(a) < v.get(b)),
    }?;
    Some((Scalar::at(values, low), Scalar::at(values, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_bounds_still_bound() {
        let long = |c: char, n: usize| c.to_string().repeat(n);
        let texts = [
            long('a', 32),
            long('a', 33),
            long('é', 40),
            format!("{}{}", long('a', 31), long('é', 3)),
            format!("{}{}b", long('a', 28), long('\u{10ffff}', 3)),
            long('\u{10ffff}', 20),
            long('\u{d7ff}', 20),
            long('\u{7f}', 50),
        ];
        for text in texts {
            let (low, high) = (cut(text.as_bytes(), true), raise(text.as_bytes(), true));
            assert!(low <= text.as_bytes() && *high >= *text.as_bytes(), "{text}");
            assert!(
                std::str::from_utf8(low).is_ok() && std::str::from_utf8(&high).is_ok(),
                "{text}"
            );
            assert_eq!(
                text.len() <= BOUND_BYTES,
                low == text.as_bytes() && *high == *text.as_bytes(),
                "{text}"
            );
        }
        for blob in [vec![0xff; 40], [vec![7; 10], vec![0xff; 40]].concat(), vec![0; 33]] {
            let (low, high) = (cut(&blob, false), raise(&blob, false));
            assert!(low <= &blob[..] && *high >= blob[..], "{blob:?}");
        }
    }
}
