//! Parts of a document: the operators `->`, `->>`, `#>` and `#>>`, and the functions that name a
//! path.

use super::arguments::{document_and_keys, optional_path, path};
use super::build::JSON_ARRAY;
use nacre_column::{Values, Vector};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::Parameter::{Json, Text};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{
    Arguments, Arity, Binding, Call, Expression, Nulls, Operand, ScalarFunction,
};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes};
use nacre_function::json::convert::scalar;
use nacre_function::json::path::LastPath;
use nacre_function::json::select::{every, first, is_container, text};
use nacre_function::vector::map::{map_bytes, map_values};
use nacre_function::vector::validity::{valid, validity};
use nacre_function::vector::view::Texts;
use nacre_types::{DataType, Result, Value, parse_float};

const JSON: DataType = DataType::Json;
const TEXT: DataType = DataType::TEXT;

/// The value at a path; the operators `->` and `#>` refer to it.
pub static JSON_EXTRACT: ScalarFunction = function(
    &["json_extract", "jsonb_extract"],
    Doc::new(
        "json_extract(doc, path, …), jsonb_extract",
        "The value at a path, also `doc -> path`; an array of all if the path may name several, \
         or there are several paths.",
        "json_extract('{\"a\":[1,\"x\"]}', '$.a[1]')",
        "\"x\"",
    ),
    Rule(Arity::at_least(2), extract),
    Vectors(|call| {
        part(call, |found, out| {
            out.extend_from_slice(found.as_bytes());
            true
        })
    }),
)
.nulls(Nulls::Partial)
.infallible();

/// The text of the value at a path; the operators `->>` and `#>>` refer to it.
pub static JSON_EXTRACT_STRING: ScalarFunction = function(
    &["json_extract_string", "json_extract_path_text", "jsonb_extract_path_text"],
    Doc::new(
        "json_extract_string(doc, path), json_extract_path_text(doc, key, …), \
         jsonb_extract_path_text",
        "The value at a path as text, also `doc ->> path`: the characters of a string, null for \
         JSON's null.",
        "json_extract_string('{\"a\":[1,\"x\"]}', 'a', 1)",
        "x",
    ),
    Rule(Arity::at_least(2), |binding, arguments| {
        let (document, path) = document_and_keys(binding, arguments)?;
        Ok(binding.call(&JSON_EXTRACT_STRING, vec![document, path], TEXT))
    }),
    Vectors(|call| {
        part(call, |found, out| match text(found) {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                true
            }
            None => false,
        })
    }),
)
.nulls(Nulls::Partial)
.infallible();

/// A scalar as a value of a type. A third argument, which is null, has the type.
pub static JSON_VALUE: ScalarFunction = function(
    &["json_value"],
    Doc::new(
        "json_value(doc, path [returning type])",
        "The scalar at a path as text or as a value of a type; null for objects and arrays, and \
         for what is no value of the type.",
        "json_value('{\"a\":\"7\"}', '$.a' returning int) + 1",
        "8",
    ),
    Rule(Arity::between(2, 3), |binding, mut arguments| {
        let returns = arguments.operands.get(2).map(|operand| binding.data_type(operand));
        arguments.operands.truncate(2);
        optional_path(&JSON_VALUE, binding, arguments, returns.unwrap_or(TEXT))
    }),
    Vectors(|call| found(call, |value, call| Ok(scalar(value, call.data_type)))),
)
.nulls(Nulls::Partial)
.infallible();

/// An object or an array.
pub static JSON_QUERY: ScalarFunction = function(
    &["json_query"],
    Doc::new(
        "json_query(doc, path)",
        "The object or array at a path; null for scalars.",
        "json_query('{\"a\":[1]}', '$.a')",
        "[1]",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        optional_path(&JSON_QUERY, binding, arguments, JSON)
    }),
    Vectors(|call| {
        part(call, |found, out| {
            out.extend_from_slice(found.as_bytes());
            is_container(found)
        })
    }),
)
.nulls(Nulls::Partial)
.infallible();

/// A number as a value of the result's type, `BIGINT` if it is written as one, or `DOUBLE`; null
/// for anything else. It has no name: casts of texts of documents become it.
pub static JSON_NUMBER: ScalarFunction = unnamed(&["json_number"], DataType::Int64, |call| {
    found(call, |value, call| Ok(number(value, call.data_type)))
});

/// The text of what [`JSON_NUMBER`] does not return as `BIGINT`.
pub static JSON_NO_INTEGER: ScalarFunction = unnamed(&["json_no_integer"], TEXT, |call| {
    found(call, |value, _| Ok(text_unless(value, DataType::Int64)))
});

/// The text of what [`JSON_NUMBER`] does not return as `DOUBLE`.
pub static JSON_NO_DOUBLE: ScalarFunction = unnamed(&["json_no_double"], TEXT, |call| {
    found(call, |value, _| Ok(text_unless(value, DataType::Float64)))
});

const fn unnamed(
    names: &'static [&'static str],
    result: DataType,
    kernel: fn(&Call<'_>) -> Result<Vector>,
) -> ScalarFunction {
    let typing = Declared(takes(&[Json, Text]), result);
    function(names, Doc::new("", "", "", ""), typing, Vectors(kernel))
        .nulls(Nulls::Partial)
        .infallible()
}

fn number(value: &str, to: DataType) -> Value {
    let is_number = value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match to {
        _ if !is_number => Value::Null,
        DataType::Int64 => value.parse().map_or(Value::Null, Value::Int),
        _ => match parse_float(value) {
            Some(number) if number.is_finite() => Value::Float(number),
            _ => Value::Null,
        },
    }
}

fn text_unless(value: &str, to: DataType) -> Value {
    match text(value) {
        Some(text) if number(value, to).is_null() => Value::Text(text.into()),
        _ => Value::Null,
    }
}

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] =
    &[&JSON_EXTRACT, &JSON_EXTRACT_STRING, &JSON_VALUE, &JSON_QUERY];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["json_extract_json", "json_extract_path", "jsonb_extract_path"],
        Doc::new(
            "json_extract_json(doc, key, …), json_extract_path, jsonb_extract_path",
            "`json_extract` with the keys and indexes of a path as arguments.",
            "json_extract_json('{\"a\":[1,\"x\"]}', 'a', 0)",
            "1",
        ),
        Arity::at_least(2),
        |binding, arguments| {
            let (document, path) = document_and_keys(binding, arguments)?;
            Ok(binding.call(&JSON_EXTRACT, vec![document, path], JSON))
        },
    ),
    &expression(
        &["json_extract_bigint"],
        Doc::new(
            "json_extract_bigint(doc, key, …)",
            "`json_value` as `BIGINT`, with the keys and indexes of a path as arguments.",
            "json_extract_bigint('{\"a\":[1,2]}', 'a', 1) + 1",
            "3",
        ),
        Arity::at_least(2),
        |binding, arguments| value(binding, arguments, DataType::Int64),
    ),
    &expression(
        &["json_extract_double"],
        Doc::new(
            "json_extract_double(doc, key, …)",
            "`json_value` as `DOUBLE`, with the keys and indexes of a path as arguments.",
            "json_extract_double('{\"a\":{\"b\":1}}', 'a', 'b')",
            "1.0",
        ),
        Arity::at_least(2),
        |binding, arguments| value(binding, arguments, DataType::Float64),
    ),
];

fn value(
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
    returns: DataType,
) -> Result<Operand> {
    let (document, path) = document_and_keys(binding, arguments)?;
    Ok(binding.call(&JSON_VALUE, vec![document, path], returns))
}

fn extract(binding: &mut dyn Binding, arguments: Arguments<'_>) -> Result<Operand> {
    let mut operands = arguments.operands.into_iter();
    let Some(document) = operands.next() else { return Err(Arity::at_least(2).wrong("", 0)) };
    let document = coerce::json(binding, document)?;
    let paths: Vec<Operand> = operands.collect();
    let mut values = Vec::with_capacity(paths.len());
    let mut last = None;
    for path in paths {
        let path = self::path(binding, path)?;
        if let Some(path) = last.replace(path) {
            let document = binding.again(&document)?;
            values.push(binding.call(&JSON_EXTRACT, vec![document, path], JSON));
        }
    }
    let args = [document].into_iter().chain(last).collect();
    let value = binding.call(&JSON_EXTRACT, args, JSON);
    if values.is_empty() {
        return Ok(value);
    }
    values.push(value);
    Ok(binding.call(&JSON_ARRAY, values, JSON))
}

/// The text of the value that a path finds in each row, or of an array of all it may name. `write`
/// appends it, or returns `false` for null.
fn part(call: &Call<'_>, write: fn(&str, &mut Vec<u8>) -> bool) -> Result<Vector> {
    let [document, path] = call.exactly()?;
    let (documents, paths) = (Texts::new(document), Texts::new(path));
    let mut last = LastPath::default();
    map_bytes(&[document, path], call.data_type, call.rows, call.room(), &mut |row, out| {
        let document = documents.text(row);
        let path = last.get(&paths.text(row))?;
        if path.is_single() {
            return Ok(first(&document, path)?.is_some_and(|found| write(found, out)));
        }
        Ok(write(&format!("[{}]", every(&document, path)?.join(",")), out))
    })
}

/// A value for each row, of the first that a path finds; null without one.
pub(super) fn found(
    call: &Call<'_>,
    compute: fn(&str, &Call<'_>) -> Result<Value>,
) -> Result<Vector> {
    let [document, path] = call.exactly()?;
    let (documents, paths) = (Texts::new(document), Texts::new(path));
    let mut last = LastPath::default();
    map_values(&[document, path], call.data_type, call.rows, call.room(), &mut |row| match first(
        &documents.text(row),
        last.get(&paths.text(row))?,
    )? {
        Some(found) => compute(found, call),
        None => Ok(Value::Null),
    })
}

/// Whether a path finds a value in each row.
pub(super) fn exists(call: &Call<'_>) -> Result<Vector> {
    let [document, path] = call.exactly()?;
    let (documents, paths) = (Texts::new(document), Texts::new(path));
    debug_assert_eq!(call.data_type, DataType::Boolean, "existence is a boolean");
    let both = validity(&[document, path]);
    let mut last = LastPath::default();
    let mut found = vec![false; call.rows.len];
    for row in call.rows.iter() {
        if valid(&both, row) {
            let path = last.get(&paths.text(row))?;
            found[row] = first(&documents.text(row), path)?.is_some();
        }
    }
    Ok(Vector::new(DataType::Boolean, Values::Bool(found), both))
}
