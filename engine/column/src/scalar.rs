//! One value of a block: borrowed if possible, compared without conversion to [`Value`].

use crate::Values;
use nacre_types::{DataType, PhysicalType, Value, key, row};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A value of a physical type, or null.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Null of any type.
    Null,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    I64(i64),
    /// A 128-bit integer.
    I128(i128),
    /// A float.
    F64(f64),
    /// Text or binary.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Scalar<'a> {
    /// Value `at` of flat values.
    #[inline]
    pub fn at(values: &'a Values, at: usize) -> Scalar<'a> {
        debug_assert!(at < values.len(), "value {at} of {}", values.len());
        match values {
            Values::Bool(v) => Scalar::Bool(v[at]),
            Values::I64(v) => Scalar::I64(v[at]),
            Values::I128(v) => Scalar::I128(v[at]),
            Values::F64(v) => Scalar::F64(v[at]),
            Values::Bytes(v) => Scalar::Bytes(Cow::Borrowed(v.get(at))),
        }
    }

    /// Whether it is null or of this physical type.
    pub(crate) fn is_of(&self, physical: PhysicalType) -> bool {
        match self {
            Scalar::Null => true,
            Scalar::Bool(_) => physical == PhysicalType::Bool,
            Scalar::I64(_) => physical == PhysicalType::I64,
            Scalar::I128(_) => physical == PhysicalType::I128,
            Scalar::F64(_) => physical == PhysicalType::F64,
            Scalar::Bytes(_) => physical == PhysicalType::Bytes,
        }
    }

    /// An owned copy of the value.
    pub fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Null => Scalar::Null,
            Scalar::Bool(v) => Scalar::Bool(v),
            Scalar::I64(v) => Scalar::I64(v),
            Scalar::I128(v) => Scalar::I128(v),
            Scalar::F64(v) => Scalar::F64(v),
            Scalar::Bytes(v) => Scalar::Bytes(Cow::Owned(v.into_owned())),
        }
    }

    /// Key order of two values of one physical type.
    pub fn order(&self, other: &Scalar<'_>) -> Ordering {
        match (self, other) {
            (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
            (Scalar::I64(a), Scalar::I64(b)) => a.cmp(b),
            (Scalar::I128(a), Scalar::I128(b)) => a.cmp(b),
            (Scalar::F64(a), Scalar::F64(b)) => key::order_f64(*a).cmp(&key::order_f64(*b)),
            (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
            (a, b) => {
                debug_assert!(
                    *a == Scalar::Null || *b == Scalar::Null,
                    "{a:?} compared with {b:?}, which has another physical type"
                );
                (*b == Scalar::Null).cmp(&(*a == Scalar::Null))
            }
        }
    }

    /// Converts to a value of a data type with this physical type.
    pub fn to_value(&self, data_type: DataType) -> Value {
        debug_assert!(self.is_of(data_type.physical()), "{self:?} as a value of {data_type}");
        match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(v) => Value::Boolean(*v),
            Scalar::I64(v) => key::from_integer(data_type, *v as i128),
            Scalar::I128(v) => key::from_integer(data_type, *v),
            Scalar::F64(v) => Value::Float(*v),
            Scalar::Bytes(v) => row::from_bytes(data_type, v),
        }
    }

    /// Like [`Scalar::to_value`], but moves bytes that it owns.
    pub fn into_value(self, data_type: DataType) -> Value {
        let Scalar::Bytes(bytes) = self else { return self.to_value(data_type) };
        debug_assert_eq!(data_type.physical(), PhysicalType::Bytes, "the type of a text");
        let bytes = bytes.into_owned();
        if let DataType::Binary { .. } = data_type {
            return Value::Binary(bytes);
        }
        // Vectors report invalid UTF-8; a single value shows replacement characters.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        if data_type == DataType::Json { Value::Json(text) } else { Value::Text(text) }
    }

    /// Key order: nulls first, floats in total order, text by bytes. `None` if the value has
    /// another physical type.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        Some(match (self, other) {
            (Scalar::Null, Value::Null) => Ordering::Equal,
            (Scalar::Null, _) => Ordering::Less,
            (_, Value::Null) => Ordering::Greater,
            (Scalar::Bool(a), Value::Boolean(b)) => a.cmp(b),
            (Scalar::I64(a), b) => (*a as i128).cmp(&key::integer(b)?),
            (Scalar::I128(a), b) => a.cmp(&key::integer(b)?),
            (Scalar::F64(a), Value::Float(b)) => key::order_f64(*a).cmp(&key::order_f64(*b)),
            (Scalar::Bytes(a), Value::Text(b) | Value::Json(b)) => (**a).cmp(b.as_bytes()),
            (Scalar::Bytes(a), Value::Binary(b)) => (**a).cmp(b),
            _ => return None,
        })
    }
}
