//! Functions computed value by value: one dispatch for all, no loop of their own. Arguments come in the types
//! the binder's table says; a null argument never gets here but for the functions that take nulls.

mod calendar;
mod digest;
mod numbers;
mod pattern;
mod texts;

use crate::expr::text::check_length;
use nacre_column::Vector;
use nacre_function::kernel::cast::cast_value;
use nacre_function::vector::{map, room::Room, rows::ActiveRows};
use nacre_sql::Builtin;
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Applies a function to its arguments.
pub(super) fn apply(
    function: Builtin,
    args: &[Arc<Vector>],
    data_type: DataType,
    rows: ActiveRows<'_>,
    room: Room,
) -> Result<Vector> {
    let nullable: Vec<&Vector> =
        if function.takes_nulls() { Vec::new() } else { args.iter().map(|arg| &**arg).collect() };
    let mut patterns = pattern::Patterns::default();
    let mut values = vec![Value::Null; args.len()];
    map::map_values(&nullable, data_type, rows, room, &mut |row| {
        for (value, arg) in values.iter_mut().zip(args) {
            *value = arg.value(row);
        }
        let call = Call { function, args: &values };
        let value = match function {
            Builtin::TryCast => cast_value(call.value(0), data_type).unwrap_or(Value::Null),
            _ => call.compute(&mut patterns)?,
        };
        debug_assert!(
            !value.is_null() || function.makes_nulls() || values.iter().any(Value::is_null)
        );
        Ok(value)
    })
}

/// One call.
struct Call<'a> {
    function: Builtin,
    args: &'a [Value],
}

impl Call<'_> {
    fn compute(&self, patterns: &mut pattern::Patterns) -> Result<Value> {
        let value = self.any(patterns)?;
        match &value {
            Value::Text(text) => check_length(text.len())?,
            Value::Binary(bytes) => check_length(bytes.len())?,
            _ => {}
        }
        Ok(value)
    }

    fn any(&self, patterns: &mut pattern::Patterns) -> Result<Value> {
        if let Some(value) = self.number()? {
            return Ok(value);
        }
        if let Some(value) = self.time()? {
            return Ok(value);
        }
        if let Some(value) = self.digest()? {
            return Ok(value);
        }
        if let Some(value) = self.matched(patterns)? {
            return Ok(value);
        }
        let unknown = || Error::unsupported(format!("function {}", self.function.name()));
        self.text_value()?.ok_or_else(unknown)
    }

    fn value(&self, at: usize) -> &Value {
        self.args.get(at).unwrap_or(&Value::Null)
    }

    fn double(&self, at: usize) -> f64 {
        match self.value(at) {
            Value::Float(v) => *v,
            Value::Int(v) => *v as f64,
            _ => 0.0,
        }
    }

    fn int(&self, at: usize) -> i64 {
        match self.value(at) {
            Value::Int(v) => *v,
            _ => 0,
        }
    }

    fn text(&self, at: usize) -> Cow<'_, str> {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => Cow::Borrowed(text),
            Value::Null => Cow::Borrowed(""),
            other => Cow::Owned(other.to_string()),
        }
    }

    fn bytes(&self, at: usize) -> &[u8] {
        match self.value(at) {
            Value::Text(text) | Value::Json(text) => text.as_bytes(),
            Value::Binary(bytes) => bytes,
            _ => &[],
        }
    }

    fn error(&self, what: &str, sqlstate: &'static str) -> Error {
        Error::type_error(format!("{}: {what}", self.function.name())).with_sqlstate(sqlstate)
    }

    fn out_of_range(&self) -> Error {
        Error::out_of_range(format!("{} out of range", self.function.name()))
    }
}

fn text(text: impl Into<String>) -> Option<Value> {
    Some(Value::Text(text.into()))
}
