//! How kernels reach rows and values: which rows to compute, validity of several arguments together,
//! and typed views of vectors of any form.

use crate::store::{MOST_TEXT_BYTES, too_much_text};
use nacre_column::{Bitmap, Form, Values, Vector};
use nacre_types::{DataType, PhysicalType, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// The rows of vectors of one length that must be computed.
#[derive(Clone, Copy)]
pub(crate) struct ActiveRows<'a> {
    /// Length of the vectors.
    pub len: usize,
    /// Ascending positions; all rows when `None`.
    pub selection: Option<&'a [u32]>,
}

impl<'a> ActiveRows<'a> {
    /// All of `len` rows.
    pub fn all(len: usize) -> ActiveRows<'static> {
        ActiveRows { len, selection: None }
    }

    /// The same vectors, only these rows.
    pub fn narrowed(self, selection: &'a [u32]) -> ActiveRows<'a> {
        ActiveRows { len: self.len, selection: Some(selection) }
    }

    /// Number of rows to compute.
    pub fn count(self) -> usize {
        self.selection.map_or(self.len, <[u32]>::len)
    }

    /// Whether nothing is to be computed.
    pub fn is_empty(self) -> bool {
        self.count() == 0
    }

    /// The positions.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let count = self.count();
        let selection = self.selection;
        (0..count).map(move |i| selection.map_or(i, |s| s[i] as usize))
    }

    /// The positions as a vector.
    pub fn to_selection(self) -> Vec<u32> {
        self.selection.map_or_else(|| (0..self.len as u32).collect(), <[u32]>::to_vec)
    }

    /// Whether computing every row is cheaper than picking the selected ones (for loops that cannot fail).
    pub fn is_dense(self) -> bool {
        self.selection.is_none_or(|s| s.len() * 4 >= self.len)
    }
}

/// Where all arguments are valid; `None` when nowhere is a null.
pub(crate) fn validity(args: &[&Vector]) -> Option<Bitmap> {
    let mut out: Option<Bitmap> = None;
    for arg in args {
        if let Some(v) = arg.validity() {
            out = Some(match out {
                None => v.clone(),
                Some(sum) => sum.and(v),
            });
        }
    }
    out
}

/// The vector with more nulls: valid only where `validity` is, too.
pub(crate) fn mask(vector: Vector, validity: &Bitmap) -> Vector {
    let both = match vector.validity() {
        Some(own) => own.and(validity),
        None => validity.clone(),
    };
    let data_type = vector.data_type();
    match vector.form() {
        Form::Dictionary { codes, values } => {
            Vector::dictionary(data_type, codes.clone(), values.clone(), Some(both))
        }
        Form::Constant(one @ Values::Bytes(_)) if !both.is_empty() && vector.null_count() == 0 => {
            Vector::dictionary(data_type, vec![0; vector.len()], Arc::new(one.clone()), Some(both))
        }
        _ => Vector::new(data_type, vector.flat().into_owned(), Some(both)),
    }
}

/// Whether row `i` is valid.
#[inline]
pub(crate) fn valid(validity: &Option<Bitmap>, i: usize) -> bool {
    validity.as_ref().is_none_or(|v| v.get(i))
}

/// One value for all rows, or one a row.
pub(crate) enum Operand<'a, T: Copy> {
    /// The same for every row.
    Constant(T),
    /// One a row.
    Rows(Cow<'a, [T]>),
}

impl<T: Copy> Operand<'_, T> {
    #[inline]
    pub fn get(&self, i: usize) -> T {
        match self {
            Operand::Constant(v) => *v,
            Operand::Rows(v) => v[i],
        }
    }
}

macro_rules! operand {
    ($name:ident, $variant:ident, $type:ty) => {
        /// A typed view; `None` when the vector has another physical type.
        pub(crate) fn $name(vector: &Vector) -> Option<Operand<'_, $type>> {
            Some(match vector.form() {
                Form::Flat(Values::$variant(v)) => Operand::Rows(Cow::Borrowed(v)),
                Form::Constant(Values::$variant(v)) => Operand::Constant(*v.first()?),
                Form::Dictionary { codes, values } => match &**values {
                    Values::$variant(v) if !v.is_empty() => {
                        Operand::Rows(Cow::Owned(codes.iter().map(|c| v[*c as usize]).collect()))
                    }
                    Values::$variant(_) => {
                        Operand::Rows(Cow::Owned(vec![Default::default(); codes.len()]))
                    }
                    _ => return None,
                },
                _ => return None,
            })
        }
    };
}
operand!(i64s, I64, i64);
operand!(f64s, F64, f64);
operand!(i128s, I128, i128);
operand!(bools, Bool, bool);

/// 64- or 128-bit integers, widened as they are read.
pub(crate) enum Wide<'a> {
    Narrow(Operand<'a, i64>),
    Full(Operand<'a, i128>),
}

impl Wide<'_> {
    #[inline]
    pub fn get(&self, i: usize) -> i128 {
        match self {
            Wide::Narrow(v) => v.get(i) as i128,
            Wide::Full(v) => v.get(i),
        }
    }
}

/// Integers of either width.
pub(crate) fn wide(vector: &Vector) -> Option<Wide<'_>> {
    i64s(vector).map(Wide::Narrow).or_else(|| i128s(vector).map(Wide::Full))
}

/// Text or binary values of any form.
pub(crate) struct Texts<'a>(&'a Vector);

impl<'a> Texts<'a> {
    /// The vector must be of the physical type `Bytes`; others read as empty.
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

    /// The text of a row. Vectors of text hold UTF-8: what is read is checked where it is decoded.
    pub fn text(&self, i: usize) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes(i))
    }
}

/// What room texts have that are on their way into one vector.
pub(crate) struct Room {
    most: usize,
    taken: usize,
}

impl Room {
    /// Of so many bytes.
    pub fn new(most: usize) -> Room {
        Room { most, taken: 0 }
    }

    /// What the offsets of a column can reach.
    pub fn of_column() -> Room {
        Room::new(MOST_TEXT_BYTES)
    }

    /// `limit` when there is none left for so many bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.most - self.taken {
            return Err(too_much_text(self.most));
        }
        self.taken += bytes;
        Ok(())
    }

    /// The same for a value of any type.
    #[inline]
    pub fn take_value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Text(text) | Value::Json(text) => self.take(text.len()),
            Value::Binary(bytes) => self.take(bytes.len()),
            _ => Ok(()),
        }
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> usize {
        self.taken
    }
}

/// A flat vector made row by row: one value for each row to compute that is valid, defaults elsewhere.
/// `compute` may answer null. Texts have so much room.
pub(crate) fn map_values(
    args: &[&Vector],
    data_type: DataType,
    rows: ActiveRows<'_>,
    mut room: Room,
    compute: &mut dyn FnMut(usize) -> Result<Value>,
) -> Result<Vector> {
    let validity = validity(args);
    let mut builder = nacre_column::VectorBuilder::new(data_type);
    for i in rows.iter() {
        while builder.len() < i {
            builder.push_null();
        }
        if valid(&validity, i) {
            let value = compute(i)?;
            room.take_value(&value)?;
            builder.push(&value);
        } else {
            builder.push_null();
        }
    }
    while builder.len() < rows.len {
        builder.push_null();
    }
    Ok(builder.finish())
}

/// Like [`map_values`] for text: `compute` appends the bytes of a row, or answers false for null.
pub(crate) fn map_bytes(
    args: &[&Vector],
    data_type: DataType,
    rows: ActiveRows<'_>,
    mut room: Room,
    compute: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<bool>,
) -> Result<Vector> {
    debug_assert_eq!(data_type.physical(), PhysicalType::Bytes);
    let validity = validity(args);
    let mut builder = nacre_column::VectorBuilder::new(data_type);
    let mut buffer = Vec::new();
    for row in rows.iter() {
        while builder.len() < row {
            builder.push_null();
        }
        buffer.clear();
        if valid(&validity, row) && compute(row, &mut buffer)? {
            room.take(buffer.len())?;
            builder.push_bytes(&buffer);
        } else {
            builder.push_null();
        }
    }
    while builder.len() < rows.len {
        builder.push_null();
    }
    Ok(builder.finish())
}
