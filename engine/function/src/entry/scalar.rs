//! Builds entries of scalar functions, binds and evaluates their calls.

use super::coerce;
use super::definition::{
    Arguments, Arity, BarePart, Binding, Call, Errors, Expression, Kernel, Nulls, Operand,
    Parameter, Parameters, RowCall, Rule, ScalarFunction, Surroundings, Typing, Volatility,
};
use super::doc::Doc;
use crate::vector::map::map_values;
use crate::vector::room::check_length;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::{DataType, Result, Value};
use std::sync::Arc;

/// Arguments of fixed kinds.
pub const fn takes(kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least: kinds.len(), repeats: false }
}

/// Arguments of which those from `least` on are optional.
pub const fn takes_at_least(least: usize, kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least, repeats: false }
}

/// At least `least` arguments; the last kind may repeat.
pub const fn takes_many(least: usize, kinds: &'static [Parameter]) -> Parameters {
    Parameters { kinds, least, repeats: true }
}

/// The entry of a function that is null if an argument is null, and may fail.
pub const fn function(
    names: &'static [&'static str],
    doc: Doc,
    typing: Typing,
    kernel: Kernel,
) -> ScalarFunction {
    let (part, nulls, errors) = (BarePart::Never, Nulls::Strict, Errors::Possible);
    let volatility = Volatility::Immutable;
    ScalarFunction { names, doc, typing, part, nulls, errors, volatility, kernel }
}

/// The entry of a function defined as an expression.
pub const fn expression(
    names: &'static [&'static str],
    doc: Doc,
    arity: Arity,
    rule: Rule,
) -> Expression {
    Expression { names, doc, arity, part: BarePart::Never, rule }
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
                Parameter::Json => coerce::json(binding, operand),
                Parameter::JsonValue => coerce::json_value(binding, operand),
            })
            .collect()
    }
}

impl Expression {
    /// The entry with the name of a date part as its first argument.
    pub const fn part(self, part: BarePart) -> Expression {
        Expression { part, ..self }
    }
}

impl ScalarFunction {
    /// The entry with the name of a date part as its first argument.
    pub const fn part(self, part: BarePart) -> ScalarFunction {
        ScalarFunction { part, ..self }
    }

    /// The entry of a function whose result depends on the statement.
    pub const fn stable(self) -> ScalarFunction {
        ScalarFunction { volatility: Volatility::Stable, ..self }
    }

    /// The entry of a function whose result is another at each evaluation.
    pub const fn volatile(self) -> ScalarFunction {
        ScalarFunction { volatility: Volatility::Volatile, ..self }
    }

    /// The entry with another treatment of nulls.
    pub const fn nulls(self, nulls: Nulls) -> ScalarFunction {
        ScalarFunction { nulls, ..self }
    }

    /// The entry, marked as never failing.
    pub const fn infallible(self) -> ScalarFunction {
        ScalarFunction { errors: Errors::Never, ..self }
    }

    /// Binds a call; `42883` for a wrong number of arguments.
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

    /// Evaluates the function over vectors of equal length, which have the types that it was bound
    /// with.
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
        kernel: fn(&RowCall<'_>) -> Result<Value>,
        call: &Call<'_>,
    ) -> Result<Vector> {
        let strict = if self.nulls.are_seen() { Vec::new() } else { call.vectors() };
        let mut args = vec![Value::Null; call.args.len()];
        map_values(&strict, call.data_type, call.rows, call.room(), &mut |row| {
            for (value, arg) in args.iter_mut().zip(call.args) {
                *value = arg.value(row);
            }
            let value =
                kernel(&RowCall { function: self, data_type: call.data_type, args: &args })?;
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
