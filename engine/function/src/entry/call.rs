//! A call that is being evaluated, as kernels see it.

use super::scalar::ScalarFunction;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// What a kernel knows of the running statement.
#[derive(Clone, Copy)]
pub struct Surroundings {
    /// Bytes of text that one result vector may hold.
    pub most_text_bytes: usize,
    /// The statement's time, in microseconds since 1970-01-01.
    pub now_us: i64,
}

/// A call over vectors.
pub struct Call<'a> {
    /// The function.
    pub function: &'static ScalarFunction,
    /// The arguments, of one length.
    pub args: &'a [Arc<Vector>],
    /// Result type.
    pub data_type: DataType,
    /// The rows to compute.
    pub rows: ActiveRows<'a>,
    /// The running statement.
    pub surroundings: Surroundings,
}

impl Call<'_> {
    /// The arguments of a kernel that takes exactly `N`.
    pub fn exactly<const N: usize>(&self) -> Result<[&Vector; N]> {
        self.vectors().try_into().map_err(|_| self.wrong_arguments())
    }

    /// The error of arguments that do not fit the kernel; the binder rules it out.
    #[cold]
    pub fn wrong_arguments(&self) -> Error {
        Error::type_error(format!("wrong arguments for {}", self.function.name()))
            .with_sqlstate("42883")
    }

    /// The arguments as plain references.
    pub fn vectors(&self) -> Vec<&Vector> {
        self.args.iter().map(|arg| &**arg).collect()
    }

    /// Room for the texts of the result.
    pub fn room(&self) -> Room {
        Room::new(self.surroundings.most_text_bytes)
    }

    /// The same value for every row.
    pub fn constant(&self, value: &Value) -> Vector {
        Vector::constant(self.data_type, value, self.rows.len)
    }
}

/// A call over the values of one row. Arguments are of the types the entry declares; an argument that
/// is missing or null reads as the type's zero.
pub struct Row<'a> {
    /// The function, for messages.
    pub function: &'static ScalarFunction,
    /// Result type.
    pub data_type: DataType,
    /// The arguments.
    pub args: &'a [Value],
}

impl Row<'_> {
    /// An argument.
    pub fn value(&self, at: usize) -> &Value {
        self.args.get(at).unwrap_or(&Value::Null)
    }

    /// An argument that is a double or an integer.
    pub fn double(&self, at: usize) -> f64 {
        match self.value(at) {
            Value::Float(v) => *v,
            Value::Int(v) => *v as f64,
            _ => 0.0,
        }
    }

    /// An integer argument.
    pub fn int(&self, at: usize) -> i64 {
        match self.value(at) {
            Value::Int(v) => *v,
            _ => 0,
        }
    }

    /// A text argument.
    pub fn text(&self, at: usize) -> Cow<'_, str> {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => Cow::Borrowed(text),
            Value::Null => Cow::Borrowed(""),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// The bytes of a text or binary argument.
    pub fn bytes(&self, at: usize) -> &[u8] {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => text.as_bytes(),
            Value::Binary(bytes) => bytes,
            _ => &[],
        }
    }

    /// A double computed from the first argument; `22003` if it is infinite and the argument is not.
    pub fn float(&self, v: f64) -> Result<Value> {
        if v.is_infinite() && self.double(0).is_finite() {
            return Err(self.out_of_range());
        }
        Ok(Value::Float(v))
    }

    /// An error that names the function.
    pub fn error(&self, what: &str, sqlstate: &'static str) -> Error {
        Error::type_error(format!("{}: {what}", self.function.name())).with_sqlstate(sqlstate)
    }

    /// The error of a result that its type cannot hold.
    pub fn out_of_range(&self) -> Error {
        Error::out_of_range(format!("{} out of range", self.function.name()))
    }
}

/// A text result.
pub fn text(text: impl Into<String>) -> Result<Value> {
    Ok(Value::Text(text.into()))
}

/// An integer result.
pub fn int(v: i64) -> Result<Value> {
    Ok(Value::Int(v))
}

/// A boolean result.
pub fn boolean(v: bool) -> Result<Value> {
    Ok(Value::Boolean(v))
}
