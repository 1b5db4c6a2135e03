//! The arguments of functions of a document and a path. A path reaches the kernels as one text that
//! is known to be a path, so that they never fail because of it.

use super::build::TO_JSON;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::Values;
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Arguments, Binding, Operand, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{function, takes};
use nacre_function::json::path::{JsonPath, key_step};
use nacre_function::operator::BinaryOp;
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;

const TEXT: DataType = DataType::TEXT;

/// Fails if a text is no path. It has no name: a path that is no literal is checked by it.
static CHECKED_PATH: ScalarFunction = function(
    &["json_path"],
    Doc::new("", "", "", ""),
    Declared(takes(&[]), TEXT),
    Values(|row| JsonPath::parse(&row.text(0)).map(|_| row.value(0).clone())),
);

/// A call of a function of a document and a path; without the path it is the document itself.
pub(super) fn optional_path(
    function: &'static ScalarFunction,
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
    result: DataType,
) -> Result<Operand> {
    let mut operands = arguments.operands.into_iter();
    let mut args = Vec::with_capacity(2);
    if let Some(document) = operands.next() {
        args.push(coerce::json(binding, document)?);
    }
    args.push(match operands.next() {
        Some(path) => self::path(binding, path)?,
        None => root(binding),
    });
    Ok(binding.call(function, args, result))
}

/// A document and the keys of a path, or the path as one text if there is one such argument.
pub(super) fn document_and_keys(
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<(Operand, Operand)> {
    let is_path = |operand: &Operand| {
        let literal = binding.literal(operand);
        matches!(literal, Some(Value::Text(text)) if text.starts_with(['$', '/']))
    };
    // PostgreSQL's `…_path` takes keys, DuckDB's one path.
    let takes_keys = arguments.name.to_ascii_lowercase().contains("_path");
    let are_keys = match &arguments.operands[..] {
        [_, only] => takes_keys && !is_path(only),
        _ => true,
    };
    let mut operands = arguments.operands.into_iter();
    let first = operands.next();
    let Some(document) = first else { return Err(Error::unsupported("JSON without a document")) };
    let document = coerce::json(binding, document)?;
    let path = match (operands.next(), are_keys) {
        (Some(path), false) => self::path(binding, path)?,
        (first, _) => keys(binding, first.into_iter().chain(operands))?,
    };
    Ok((document, path))
}

/// The path to the document itself.
pub(super) fn root(binding: &mut dyn Binding) -> Operand {
    binding.constant(Value::Text("$".into()), TEXT)
}

/// A path as one text: an integer is the index of an element.
pub(super) fn path(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, TEXT);
    if let Some(Value::Text(text)) = binding.literal(&operand) {
        JsonPath::parse(text)?;
        return Ok(operand);
    }
    if binding.data_type(&operand).is_integer() {
        return keys(binding, [operand].into_iter());
    }
    let text = coerce::text(binding, operand)?;
    if binding.literal(&text).is_some_and(Value::is_null) {
        return Ok(text);
    }
    Ok(binding.call(&CHECKED_PATH, vec![text], TEXT))
}

/// The path of keys and indexes, one for each level.
pub(super) fn keys(
    binding: &mut dyn Binding,
    keys: impl Iterator<Item = Operand>,
) -> Result<Operand> {
    let mut path = root(binding);
    for key in keys {
        let key = binding.settle(key, TEXT);
        let is_index = binding.data_type(&key).is_integer();
        let literal: Option<Cow<'_, str>> = match binding.literal(&key) {
            Some(Value::Int(at)) => Some(format!("[{at}]").into()),
            Some(Value::Text(text)) => Some(key_step(text).into()),
            _ => None,
        };
        let parts = match literal {
            Some(step) => [None, Some(binding.constant(Value::Text(step.into()), TEXT)), None],
            None if is_index => {
                let number = coerce::text(binding, key)?;
                let mut bracket = |text: &str| binding.constant(Value::Text(text.into()), TEXT);
                [Some(bracket("[")), Some(number), Some(bracket("]"))]
            }
            None => {
                let key = coerce::text(binding, key)?;
                let quoted = binding.call(&TO_JSON, vec![key], DataType::Json);
                let dot = binding.constant(Value::Text(".".into()), TEXT);
                [Some(dot), Some(binding.cast(quoted, TEXT)?), None]
            }
        };
        for part in parts.into_iter().flatten() {
            path = joined(binding, path, part)?;
        }
    }
    Ok(path)
}

/// Two texts one after the other, at once if both are literals.
fn joined(binding: &mut dyn Binding, left: Operand, right: Operand) -> Result<Operand> {
    match (binding.literal(&left), binding.literal(&right)) {
        (Some(Value::Text(a)), Some(Value::Text(b))) => {
            let both = Value::Text(format!("{a}{b}"));
            Ok(binding.constant(both, TEXT))
        }
        _ => binding.binary(BinaryOp::Concat, left, right),
    }
}
