//! An entry of a scalar function, and of a name that stands for another expression.

use super::arguments::{Arguments, Arity};
use super::binding::{Binding, Operand};
use super::call::{Call, Row, Surroundings};
use super::coerce;
use super::doc::Doc;
use crate::vector::map::map_values;
use crate::vector::room::check_length;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Result, Value};
use std::fmt;
use std::sync::Arc;

/// A scalar function: all that the binder, the evaluator and the reference know of it. Plans refer to
/// the entry itself; two calls are of one function when they refer to one entry.
pub struct ScalarFunction {
    /// Its names in lower case; the first is the one `EXPLAIN` shows.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// Arguments and result type.
    pub typing: Typing,
    /// What it makes of nulls.
    pub nulls: Nulls,
    /// Whether it may fail.
    pub errors: Errors,
    /// How it is evaluated.
    pub kernel: Kernel,
}

/// A name that stands for an expression over its arguments, so that plans never contain it.
pub struct Expression {
    /// Its names in lower case.
    pub names: &'static [&'static str],
    /// Reference text.
    pub doc: Doc,
    /// How many arguments it takes.
    pub arity: Arity,
    /// The expression.
    pub rule: Rule,
}

/// Turns the arguments of a call into an expression.
pub type Rule = fn(&mut dyn Binding, Arguments<'_>) -> Result<Operand>;

/// How a call gets its types.
pub enum Typing {
    /// Each argument has a kind, and the result a type.
    Declared(Parameters, DataType),
    /// A rule decides.
    Rule(Arity, Rule),
}

/// Kinds of the arguments, in order.
pub struct Parameters {
    kinds: &'static [Parameter],
    least: usize,
    repeats: bool,
}

/// The kind of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A number, as a double.
    Double,
    /// An integer.
    Integer,
    /// An integer, or a decimal literal that is rounded to one.
    RoundedInteger,
    /// Text.
    Text,
    /// Text, or binary when the first argument is. If the result is text, it is binary then, too.
    TextLikeFirst,
    /// Binary values as they are, others as text.
    TextOrBytes,
    /// A timestamp.
    Timestamp,
    /// A date.
    Date,
}

/// What a function makes of null arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Null where an argument is null, and nowhere else.
    Strict,
    /// Null where an argument is null, and where there is no answer.
    Partial,
    /// The kernel sees nulls; the result is null at most where an argument is.
    Seen,
    /// The kernel sees nulls, and the result may be null anywhere.
    SeenPartial,
    /// Null only where every argument is.
    AllNull,
}

/// Whether a function may fail on some values of its argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// It never fails, so it may run on rows that a later filter removes.
    Never,
    /// It may fail.
    Possible,
}

/// How a function is evaluated.
pub enum Kernel {
    /// Whole vectors at once.
    Vectors(fn(&Call<'_>) -> Result<Vector>),
    /// The values of one row at a time.
    Values(fn(&Row<'_>) -> Result<Value>),
    /// The first argument that is not null. The evaluator computes an argument only for rows at which
    /// all before it are null.
    FirstNonNull,
}

/// Arguments of fixed kinds.
pub const fn takes(kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least: kinds.len(), repeats: false }
}

/// Arguments of which those from `least` on may be left out.
pub const fn takes_at_least(least: usize, kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least, repeats: false }
}

/// At least `least` arguments, of which the last kind may repeat.
pub const fn takes_many(least: usize, kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least, repeats: true }
}

/// An entry of a function that is null where an argument is, and may fail.
pub const fn function(
    names: &'static [&'static str],
    doc: Doc,
    typing: Typing,
    kernel: Kernel,
) -> ScalarFunction {
    ScalarFunction { names, doc, typing, nulls: Nulls::Strict, errors: Errors::Possible, kernel }
}

/// An entry of a name that stands for an expression.
pub const fn expression(
    names: &'static [&'static str],
    doc: Doc,
    arity: Arity,
    rule: Rule,
) -> Expression {
    Expression { names, doc, arity, rule }
}

impl Parameters {
    fn arity(&self) -> Arity {
        match self.repeats {
            true => Arity::at_least(self.least),
            false => Arity::between(self.least, self.kinds.len()),
        }
    }

    fn coerce(&self, binding: &mut dyn Binding, arguments: Arguments<'_>) -> Result<Vec<Operand>> {
        let name = arguments.name;
        let first = arguments.operands.first();
        let of_bytes = first.is_some_and(|first| coerce::is_binary(binding, first));
        let last = self.kinds.last().copied();
        let kinds = self.kinds.iter().copied().chain(std::iter::from_fn(|| last));
        arguments
            .operands
            .into_iter()
            .zip(kinds)
            .map(|(operand, kind)| match kind {
                Parameter::Double => coerce::double(binding, operand),
                Parameter::Integer => coerce::integer(binding, operand, name),
                Parameter::RoundedInteger => coerce::rounded_integer(binding, operand, name),
                Parameter::TextLikeFirst if of_bytes => coerce::bytes(binding, operand),
                Parameter::Text | Parameter::TextLikeFirst => coerce::text(binding, operand),
                Parameter::TextOrBytes => coerce::text_or_bytes(binding, operand),
                Parameter::Timestamp => coerce::timestamp(binding, operand),
                Parameter::Date => coerce::date(binding, operand),
            })
            .collect()
    }
}

impl ScalarFunction {
    /// The entry with another treatment of nulls.
    pub const fn nulls(self, nulls: Nulls) -> ScalarFunction {
        ScalarFunction { nulls, ..self }
    }

    /// The entry of a function that never fails.
    pub const fn infallible(self) -> ScalarFunction {
        ScalarFunction { errors: Errors::Never, ..self }
    }

    /// The name that `EXPLAIN` shows.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Binds a call; `42883` for another number of arguments.
    pub fn bind(
        &'static self,
        binding: &mut dyn Binding,
        arguments: Arguments<'_>,
    ) -> Result<Operand> {
        let count = arguments.operands.len();
        match &self.typing {
            Typing::Rule(arity, rule) => {
                arity.check(arguments.name, count)?;
                rule(binding, arguments)
            }
            Typing::Declared(parameters, returns) => {
                parameters.arity().check(arguments.name, count)?;
                let operands = parameters.coerce(binding, arguments)?;
                let like_first = parameters.kinds.first() == Some(&Parameter::TextLikeFirst);
                let of_bytes = operands.first().is_some_and(|o| coerce::is_binary(binding, o));
                let is_bytes = like_first && of_bytes && *returns == DataType::TEXT;
                let data_type = if is_bytes { DataType::BLOB } else { *returns };
                Ok(binding.call(self, operands, data_type))
            }
        }
    }

    /// Evaluates the function over vectors of one length, which are of the types it was bound with.
    pub fn evaluate(
        &'static self,
        args: &[Arc<Vector>],
        data_type: DataType,
        rows: ActiveRows<'_>,
        surroundings: Surroundings,
    ) -> Result<Vector> {
        debug_assert!(
            args.iter().all(|arg| arg.len() == rows.len),
            "arguments of {} have {} rows",
            self.name(),
            rows.len
        );
        let call = Call { function: self, args, data_type, rows, surroundings };
        if !self.nulls.are_seen() && args.iter().any(|arg| arg.data_type() == DataType::Null) {
            return Ok(call.constant(&Value::Null));
        }
        let result = match &self.kernel {
            Kernel::Vectors(kernel) => kernel(&call)?,
            Kernel::Values(kernel) => self.evaluate_values(*kernel, &call)?,
            Kernel::FirstNonNull => map_values(&[], data_type, rows, call.room(), &mut |row| {
                let found = args.iter().find(|arg| !arg.is_null(row));
                Ok(found.map_or(Value::Null, |arg| arg.value(row)))
            })?,
        };
        debug_assert_eq!(result.len(), rows.len, "{} answers a value a row", self.name());
        Ok(result)
    }

    fn evaluate_values(
        &'static self,
        kernel: fn(&Row<'_>) -> Result<Value>,
        call: &Call<'_>,
    ) -> Result<Vector> {
        let strict = if self.nulls.are_seen() { Vec::new() } else { call.vectors() };
        let mut args = vec![Value::Null; call.args.len()];
        map_values(&strict, call.data_type, call.rows, call.room(), &mut |row| {
            for (value, arg) in args.iter_mut().zip(call.args) {
                *value = arg.value(row);
            }
            let value = kernel(&Row { function: self, data_type: call.data_type, args: &args })?;
            match &value {
                Value::Text(text) => check_length(text.len())?,
                Value::Binary(bytes) => check_length(bytes.len())?,
                _ => {}
            }
            debug_assert!(
                !value.is_null() || self.nulls.are_made() || args.iter().any(Value::is_null),
                "{} answers null for arguments without one",
                self.name()
            );
            Ok(value)
        })
    }
}

impl Nulls {
    /// Whether the kernel runs for rows with a null argument.
    pub fn are_seen(self) -> bool {
        matches!(self, Nulls::Seen | Nulls::SeenPartial | Nulls::AllNull)
    }

    /// Whether the result may be null where no argument is.
    pub fn are_made(self) -> bool {
        matches!(self, Nulls::Partial | Nulls::SeenPartial)
    }
}

impl PartialEq for ScalarFunction {
    fn eq(&self, other: &ScalarFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ScalarFunction {}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
