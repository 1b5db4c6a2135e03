//! Typed views of vectors of any form.

use nacre_column::{Form, Values, Vector};
use std::borrow::Cow;

/// One value for all rows, or one value per row.
pub enum View<'a, T: Copy> {
    /// The same for every row.
    Constant(T),
    /// One value per row.
    Rows(Cow<'a, [T]>),
}

impl<T: Copy> View<'_, T> {
    /// The value of row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> T {
        match self {
            View::Constant(v) => *v,
            View::Rows(v) => v[i],
        }
    }
}

macro_rules! view {
    ($name:ident, $variant:ident, $type:ty) => {
        /// Returns a typed view; `None` if the vector has another physical type.
        pub fn $name(vector: &Vector) -> Option<View<'_, $type>> {
            Some(match vector.form() {
                Form::Flat(Values::$variant(v)) => View::Rows(Cow::Borrowed(v)),
                Form::Constant(Values::$variant(v)) => View::Constant(*v.first()?),
                Form::Dictionary { codes, values } => match &**values {
                    Values::$variant(v) if !v.is_empty() => {
                        View::Rows(Cow::Owned(codes.iter().map(|c| v[*c as usize]).collect()))
                    }
                    Values::$variant(_) => {
                        View::Rows(Cow::Owned(vec![Default::default(); codes.len()]))
                    }
                    _ => return None,
                },
                _ => return None,
            })
        }
    };
}
view!(i64s, I64, i64);
view!(f64s, F64, f64);
view!(i128s, I128, i128);
view!(bools, Bool, bool);

/// 64- or 128-bit integers, widened on access.
pub enum Wide<'a> {
    /// 64-bit integers.
    Narrow(View<'a, i64>),
    /// 128-bit integers.
    Full(View<'a, i128>),
}

impl Wide<'_> {
    /// The value of row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> i128 {
        match self {
            Wide::Narrow(v) => v.get(i) as i128,
            Wide::Full(v) => v.get(i),
        }
    }
}

/// Returns a view of integers of either width.
pub fn wide(vector: &Vector) -> Option<Wide<'_>> {
    i64s(vector).map(Wide::Narrow).or_else(|| i128s(vector).map(Wide::Full))
}

/// How many bits the values have without their signs: all are at least `-2^bits` and less than `2^bits`.
pub fn magnitude_bits(values: &[i64]) -> u32 {
    let bits = values.iter().fold(0, |bits, v| bits | (v ^ (v >> 63)));
    i64::BITS - bits.leading_zeros()
}

/// Text or binary values of any form.
pub struct Texts<'a>(&'a Vector);

impl<'a> Texts<'a> {
    /// Creates a view of a vector of physical type `Bytes`; any other reads as empty values.
    pub fn new(vector: &'a Vector) -> Texts<'a> {
        Texts(vector)
    }

    /// The bytes of a row.
    #[inline]
    pub fn bytes(&self, i: usize) -> &'a [u8] {
        let (values, at) = match self.0.form() {
            Form::Flat(values) => (values, i),
            Form::Constant(values) => (values, 0),
            Form::Dictionary { codes, values } => (&**values, codes[i] as usize),
        };
        match values {
            Values::Bytes(v) if at < v.len() => v.get(at),
            _ => &[],
        }
    }

    /// The text of a row. Vectors of text hold UTF-8: decoding a block checks it.
    pub fn text(&self, i: usize) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes(i))
    }
}
