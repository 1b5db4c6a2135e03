//! A vector: up to a few thousand values of one data type, flat, constant or dictionary-coded.
//!
//! Kernels may call [`Vector::flat`] and ignore the other forms; kernels that are faster on codes
//! or constants match on [`Vector::form`]. Values at null positions are unspecified but present.

use crate::Bitmap;
use crate::values::Values;
use nacre_types::{DataType, PhysicalType, Value, invariant, key, row};
use std::borrow::Cow;
use std::sync::Arc;

/// The layout of a vector's values.
#[derive(Clone, Debug)]
pub enum Form {
    /// One value per row.
    Flat(Values),
    /// One value for every row (`Values` of length 1): all rows are null, or none.
    Constant(Values),
    /// `codes[row]` indexes `values`, which holds distinct, non-null values. Codes at null rows are
    /// in range.
    Dictionary {
        /// One code per row.
        codes: Vec<u32>,
        /// The distinct values, shared between vectors of a segment.
        values: Arc<Values>,
    },
}

impl Form {
    /// The stored values: one per row, the constant, or the dictionary.
    fn values(&self) -> &Values {
        match self {
            Form::Flat(values) | Form::Constant(values) => values,
            Form::Dictionary { values, .. } => values,
        }
    }
}

/// Values of one type, with validity.
#[derive(Clone, Debug)]
pub struct Vector {
    data_type: DataType,
    form: Form,
    validity: Option<Bitmap>,
    len: usize,
}

impl Vector {
    /// Creates a flat vector; `validity` has the same length, or is `None` if nothing is null.
    pub fn new(data_type: DataType, values: Values, validity: Option<Bitmap>) -> Vector {
        debug_assert_eq!(data_type.physical(), values.physical(), "type of flat values");
        let (len, bits) = (values.len(), validity.as_ref().map(Bitmap::len));
        invariant!(bits.is_none_or(|bits| bits == len), "{bits:?} validity bits for {len} rows");
        Vector { data_type, form: Form::Flat(values), validity, len }
    }

    /// Creates a vector of `len` equal values.
    pub fn constant(data_type: DataType, value: &Value, len: usize) -> Vector {
        let mut builder = VectorBuilder::new(data_type);
        builder.push(value);
        debug_assert_eq!(builder.len(), 1, "values of a constant");
        let validity = value.is_null().then(|| Bitmap::filled(len, false));
        Vector { data_type, form: Form::Constant(builder.values), validity, len }
    }

    /// Dictionary-coded values.
    pub fn dictionary(
        data_type: DataType,
        codes: Vec<u32>,
        values: Arc<Values>,
        validity: Option<Bitmap>,
    ) -> Vector {
        debug_assert_eq!(data_type.physical(), values.physical(), "type of a dictionary");
        debug_assert!(
            codes.iter().all(|code| (*code as usize) < values.len()),
            "a code outside its dictionary of {} values",
            values.len()
        );
        debug_assert!(
            validity.as_ref().is_none_or(|v| v.len() == codes.len()),
            "validity of other rows than the {} coded",
            codes.len()
        );
        let len = codes.len();
        Vector { data_type, form: Form::Dictionary { codes, values }, validity, len }
    }

    /// Creates a vector from a form of the data type's physical type, and the validity of its `len`
    /// rows. A constant with some null rows becomes flat, because kernels apply a constant's first
    /// row to all of them; a constant text, which may be long, becomes the only entry of a
    /// dictionary.
    pub fn from_form(
        data_type: DataType,
        form: Form,
        validity: Option<Bitmap>,
        len: usize,
    ) -> Vector {
        debug_assert!(
            validity.as_ref().is_none_or(|v| v.len() == len),
            "validity of other rows than {len}"
        );
        debug_assert!(
            match &form {
                Form::Flat(values) => values.len() == len,
                Form::Constant(values) => values.len() == 1,
                Form::Dictionary { codes, .. } => codes.len() == len,
            },
            "a form of another length than {len}"
        );
        debug_assert_eq!(data_type.physical(), form.values().physical(), "type of a form");
        let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones());
        let form = match form {
            Form::Constant(one @ Values::Bytes(_)) if nulls > 0 && nulls < len => {
                Form::Dictionary { codes: vec![0; len], values: Arc::new(one) }
            }
            Form::Constant(one) if nulls > 0 && nulls < len => {
                Form::Flat(one.take_valid(std::iter::repeat_n(0, len), validity.as_ref()))
            }
            form => form,
        };
        Vector { data_type, form, validity, len }
    }

    /// Creates a vector from single values, each null or of the type.
    pub fn from_values<'a>(
        data_type: DataType,
        values: impl IntoIterator<Item = &'a Value>,
    ) -> Vector {
        let mut builder = VectorBuilder::new(data_type);
        values.into_iter().for_each(|v| builder.push(v));
        builder.finish()
    }

    /// The data type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The same values under another data type of the same physical type.
    pub fn with_type(mut self, data_type: DataType) -> Vector {
        debug_assert_eq!(
            self.data_type.physical(),
            data_type.physical(),
            "a vector under another physical type"
        );
        self.data_type = data_type;
        self
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The layout.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Validity; `None` if nothing is null.
    pub fn validity(&self) -> Option<&Bitmap> {
        self.validity.as_ref()
    }

    /// Whether a row is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.as_ref().is_some_and(|v| !v.get(row))
    }

    /// Number of nulls.
    pub fn null_count(&self) -> usize {
        self.validity.as_ref().map_or(0, |v| v.len() - v.count_ones())
    }

    /// One value per row: borrowed if the vector is flat.
    pub fn flat(&self) -> Cow<'_, Values> {
        let flat = match &self.form {
            Form::Flat(values) => Cow::Borrowed(values),
            Form::Constant(one) => {
                Cow::Owned(one.take_valid(std::iter::repeat_n(0, self.len), self.validity.as_ref()))
            }
            Form::Dictionary { codes, values } => {
                Cow::Owned(values.take_valid(codes.iter().copied(), self.validity.as_ref()))
            }
        };
        debug_assert_eq!(flat.len(), self.len, "flat values of a vector");
        flat
    }

    /// The rows at these positions, in this order. Positions must be below the length.
    pub fn take(&self, positions: &[u32]) -> Vector {
        debug_assert!(
            positions.iter().all(|position| (*position as usize) < self.len),
            "a row to take is past the {} rows of its vector",
            self.len
        );
        let validity = self.validity.as_ref().map(|v| {
            let mut out = Bitmap::filled(positions.len(), true);
            for (at, &p) in positions.iter().enumerate() {
                if !v.get(p as usize) {
                    out.set(at, false);
                }
            }
            out
        });
        let form = match &self.form {
            Form::Flat(values) => Form::Flat(values.take(positions.iter().copied())),
            Form::Constant(one) => Form::Constant(one.clone()),
            Form::Dictionary { codes, values } => Form::Dictionary {
                codes: positions.iter().map(|&p| codes[p as usize]).collect(),
                values: values.clone(),
            },
        };
        Vector { data_type: self.data_type, form, validity, len: positions.len() }
    }

    /// One value, for results and tests; kernels read forms.
    pub fn value(&self, row: usize) -> Value {
        if self.is_null(row) || row >= self.len {
            return Value::Null;
        }
        let (values, at) = match &self.form {
            Form::Flat(values) => (values, row),
            Form::Constant(values) => (values, 0),
            Form::Dictionary { codes, values } => (&**values, codes[row] as usize),
        };
        match values {
            Values::Bool(v) => Value::Boolean(v[at]),
            Values::I64(v) => key::from_integer(self.data_type, v[at] as i128),
            Values::I128(v) => key::from_integer(self.data_type, v[at]),
            Values::F64(v) => Value::Float(v[at]),
            Values::Bytes(v) => row::from_bytes(self.data_type, v.get(at)),
        }
    }

    /// The bytes of a text, JSON or binary value; `None` if it is null or of another type.
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        debug_assert!(row < self.len, "row {row} of a vector of {}", self.len);
        let (values, at) = match &self.form {
            Form::Flat(values) => (values, row),
            Form::Constant(values) => (values, 0),
            Form::Dictionary { codes, values } => (&**values, codes[row] as usize),
        };
        match values {
            Values::Bytes(v) if !self.is_null(row) => Some(v.get(at)),
            _ => None,
        }
    }

    /// Upper bound of the length of its longest value, in bytes.
    pub fn longest(&self) -> usize {
        self.form.values().longest()
    }

    /// Size of the values in flat form, in bytes.
    pub fn flat_bytes(&self) -> usize {
        let valid = || self.len - self.null_count();
        match &self.form {
            Form::Flat(Values::Bytes(column)) => column.data.len(),
            Form::Constant(Values::Bytes(column)) => column.data.len().saturating_mul(valid()),
            Form::Dictionary { codes, values } => match &**values {
                Values::Bytes(column) => {
                    let row = |(row, code): (usize, &u32)| {
                        if self.is_null(row) { 0 } else { column.get(*code as usize).len() }
                    };
                    codes.iter().enumerate().map(row).fold(0, usize::saturating_add)
                }
                values => self.len * values.longest(),
            },
            Form::Flat(values) | Form::Constant(values) => self.len * values.longest(),
        }
    }

    /// Estimated memory in bytes, without the dictionary.
    pub fn memory_bytes(&self) -> usize {
        let form = match &self.form {
            Form::Flat(v) | Form::Constant(v) => v.memory_bytes(),
            Form::Dictionary { codes, .. } => codes.len() * 4,
        };
        form + self.validity.as_ref().map_or(0, |v| v.words().len() * 8)
    }
}

/// Builds a flat vector value by value.
pub struct VectorBuilder {
    data_type: DataType,
    values: Values,
    validity: Option<Bitmap>,
}

impl VectorBuilder {
    /// Creates an empty builder.
    pub fn new(data_type: DataType) -> VectorBuilder {
        VectorBuilder { data_type, values: Values::empty(data_type.physical()), validity: None }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Appends a null.
    pub fn push_null(&mut self) {
        let len = self.len();
        let validity = self.validity.get_or_insert_with(|| Bitmap::filled(len, true));
        debug_assert_eq!(validity.len(), len, "validity before a null");
        validity.push(false);
        match &mut self.values {
            Values::Bool(v) => v.push(false),
            Values::I64(v) => v.push(0),
            Values::I128(v) => v.push(0),
            Values::F64(v) => v.push(0.0),
            Values::Bytes(v) => v.push(&[]),
        }
    }

    fn push_valid(&mut self) {
        debug_assert!(
            self.validity.as_ref().is_none_or(|v| v.len() == self.values.len()),
            "validity of other rows than {}",
            self.values.len()
        );
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
    }

    /// Appends a boolean. The builder's physical type must be `Bool`; likewise for the other typed
    /// pushes.
    pub fn push_bool(&mut self, value: bool) {
        self.push_valid();
        if let Values::Bool(v) = &mut self.values { v.push(value) } else { self.mismatch() }
    }

    /// Appends a 64-bit integer.
    #[inline]
    pub fn push_i64(&mut self, value: i64) {
        self.push_valid();
        if let Values::I64(v) = &mut self.values { v.push(value) } else { self.mismatch() }
    }

    /// Appends a 128-bit integer.
    pub fn push_i128(&mut self, value: i128) {
        self.push_valid();
        if let Values::I128(v) = &mut self.values { v.push(value) } else { self.mismatch() }
    }

    /// Appends a float.
    #[inline]
    pub fn push_f64(&mut self, value: f64) {
        self.push_valid();
        if let Values::F64(v) = &mut self.values { v.push(value) } else { self.mismatch() }
    }

    /// Appends text or binary.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) {
        self.push_valid();
        if let Values::Bytes(v) = &mut self.values { v.push(value) } else { self.mismatch() }
    }

    /// Appends a value, which must be null or of the data type.
    pub fn push(&mut self, value: &Value) {
        match (self.data_type.physical(), value) {
            (_, Value::Null) => self.push_null(),
            (PhysicalType::Bool, Value::Boolean(v)) => self.push_bool(*v),
            (PhysicalType::F64, Value::Float(v)) => self.push_f64(*v),
            (PhysicalType::Bytes, Value::Text(v) | Value::Json(v)) => self.push_bytes(v.as_bytes()),
            (PhysicalType::Bytes, Value::Binary(v)) => self.push_bytes(v),
            (PhysicalType::I64, v) => match key::integer(v) {
                Some(v) => {
                    debug_assert!(
                        i64::try_from(v).is_ok(),
                        "{v} in a vector of {}",
                        self.data_type
                    );
                    self.push_i64(v as i64)
                }
                None => self.mismatch(),
            },
            (PhysicalType::I128, v) => match key::integer(v) {
                Some(v) => self.push_i128(v),
                None => self.mismatch(),
            },
            _ => self.mismatch(),
        }
    }

    /// Crashes: a value of another type is a bug of the caller, and skipping it would shift the
    /// following rows.
    #[cold]
    fn mismatch(&self) {
        invariant!(false, "a value of another type in a vector of {}", self.data_type);
    }

    /// Returns the vector.
    pub fn finish(self) -> Vector {
        Vector::new(self.data_type, self.values, self.validity)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bitmap, Form, Values, Vector};
    use nacre_types::DataType;
    use std::sync::Arc;

    fn bytes(vector: &Vector) -> (Vec<Option<Vec<u8>>>, usize) {
        let flat = vector.flat();
        let Values::Bytes(column) = &*flat else { return Default::default() };
        let row = |row| (!vector.is_null(row)).then(|| column.get(row).to_vec());
        ((0..vector.len()).map(row).collect(), column.data.len())
    }

    #[test]
    fn null_rows_hold_no_copy_of_a_value() {
        let long = vec![b'x'; 1_000];
        let mut one = crate::BytesColumn::default();
        one.push(&long);
        let mut validity = Bitmap::filled(500, false);
        validity.set(3, true);
        let expected: Vec<_> = (0..500).map(|row| (row == 3).then(|| long.clone())).collect();
        let (text, one) = (DataType::TEXT, Values::Bytes(one));
        let constant =
            Vector::from_form(text, Form::Constant(one.clone()), Some(validity.clone()), 500);
        let coded = Vector::dictionary(text, vec![0; 500], Arc::new(one.clone()), Some(validity));
        assert_eq!(bytes(&constant), (expected.clone(), long.len()));
        assert!(
            matches!(constant.form(), Form::Dictionary { .. }),
            "one copy, whatever number of rows has it"
        );
        assert_eq!(bytes(&coded), (expected, long.len()));
        let nulls =
            Vector::from_form(text, Form::Constant(one), Some(Bitmap::filled(500, false)), 500);
        assert_eq!(bytes(&nulls), (vec![None; 500], 0));
    }
}
