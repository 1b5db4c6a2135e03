//! Documents with a value added, replaced or removed.

use super::arguments::{document_and_keys, path, root};
use super::build::json;
use nacre_column::Vector;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::Typing::Rule;
use nacre_function::entry::definition::{
    Arguments, Arity, Binding, Call, Expression, Nulls, Operand, ScalarFunction,
};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function};
use nacre_function::json::convert::to_json;
use nacre_function::json::edit::{Edit, edit};
use nacre_function::json::path::LastPath;
use nacre_function::vector::map::map_values;
use nacre_function::vector::view::Texts;
use nacre_types::json::normal;
use nacre_types::{DataType, Error, Result, Value};

const JSON: DataType = DataType::Json;

static JSON_SET: ScalarFunction = function(
    &["json_set"],
    Doc::new(
        "json_set(doc, path, value, …)",
        "With the value at each path replaced, or added to its object or array.",
        "json_set('{\"a\":1}', '$.a', 2, '$.b', 'x')",
        "{\"a\":2,\"b\":\"x\"}",
    ),
    Rule(Arity::at_least(3), |binding, arguments| pairs(&JSON_SET, binding, arguments)),
    Vectors(|call| edited(call, Edit::Set)),
)
.nulls(Nulls::SeenPartial);

static JSON_INSERT: ScalarFunction = function(
    &["json_insert"],
    Doc::new(
        "json_insert(doc, path, value, …)",
        "With values added where a path names none.",
        "json_insert('{\"a\":1}', '$.a', 2, '$.b', 3)",
        "{\"a\":1,\"b\":3}",
    ),
    Rule(Arity::at_least(3), |binding, arguments| pairs(&JSON_INSERT, binding, arguments)),
    Vectors(|call| edited(call, Edit::Insert)),
)
.nulls(Nulls::SeenPartial);

static JSON_REPLACE: ScalarFunction = function(
    &["json_replace"],
    Doc::new(
        "json_replace(doc, path, value, …)",
        "With the values that are there replaced.",
        "json_replace('{\"a\":1}', '$.a', 2, '$.b', 3)",
        "{\"a\":2}",
    ),
    Rule(Arity::at_least(3), |binding, arguments| pairs(&JSON_REPLACE, binding, arguments)),
    Vectors(|call| edited(call, Edit::Replace)),
)
.nulls(Nulls::SeenPartial);

static JSON_ARRAY_APPEND: ScalarFunction = function(
    &["json_array_append"],
    Doc::new(
        "json_array_append(doc, path, value, …)",
        "With another last element in the array at each path; a value that is no array becomes \
         one.",
        "json_array_append('{\"a\":[1],\"b\":2}', '$.a', 3, '$.b', 4)",
        "{\"a\":[1,3],\"b\":[2,4]}",
    ),
    Rule(Arity::at_least(3), |binding, arguments| pairs(&JSON_ARRAY_APPEND, binding, arguments)),
    Vectors(|call| edited(call, Edit::Append)),
)
.nulls(Nulls::SeenPartial);

static JSON_ARRAY_INSERT: ScalarFunction = function(
    &["json_array_insert"],
    Doc::new(
        "json_array_insert(doc, path, value, …)",
        "With a new element before the one at each path.",
        "json_array_insert('[1,2]', '$[1]', 9)",
        "[1,9,2]",
    ),
    Rule(Arity::at_least(3), |binding, arguments| pairs(&JSON_ARRAY_INSERT, binding, arguments)),
    Vectors(|call| edited(call, Edit::InsertElement)),
)
.nulls(Nulls::SeenPartial);

/// Removes what paths name; the operator `#-` refers to it.
pub static JSON_REMOVE: ScalarFunction = function(
    &["json_remove"],
    Doc::new(
        "json_remove(doc, path, …)",
        "Without the value at each path; null without the document itself. Also `doc #- '{a,0}'`.",
        "json_remove('{\"a\":[1,2],\"b\":3}', '$.a[0]', '$.b')",
        "{\"a\":[2]}",
    ),
    Rule(Arity::at_least(2), |binding, arguments| {
        let mut operands = arguments.operands.into_iter();
        let mut args = Vec::with_capacity(2);
        for document in operands.by_ref().take(1) {
            args.push(coerce::json(binding, document)?);
        }
        for operand in operands {
            args.push(path(binding, operand)?);
        }
        Ok(binding.call(&JSON_REMOVE, args, JSON))
    }),
    Vectors(|call| edited(call, Edit::Remove)),
)
.nulls(Nulls::SeenPartial);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] =
    &[&JSON_SET, &JSON_INSERT, &JSON_REPLACE, &JSON_REMOVE, &JSON_ARRAY_APPEND, &JSON_ARRAY_INSERT];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["json_set_string", "json_set_bigint", "json_set_double", "json_set_json"],
        Doc::new(
            "json_set_string(doc, key, …, value), json_set_bigint, json_set_double, json_set_json",
            "`json_set` with the keys and indexes of a path as arguments, and a value of the type.",
            "json_set_json('{\"a\":{\"b\":1}}', 'a', 'b', '[2]')",
            "{\"a\":{\"b\":[2]}}",
        ),
        Arity::at_least(3),
        |binding, mut arguments| {
            let to = type_named(arguments.name);
            let value = arguments.operands.pop();
            let (document, path) = document_and_keys(binding, arguments)?;
            one(&JSON_SET, binding, (document, path), value, to)
        },
    ),
    &expression(
        &["jsonb_set"],
        Doc::new(
            "jsonb_set(doc, path, value[, add])",
            "`json_set` of a JSON value, or `json_replace` if `add` is false.",
            "jsonb_set('{\"a\":[1]}', '{a,0}', '{}')",
            "{\"a\":[{}]}",
        ),
        Arity::between(3, 4),
        |binding, mut arguments| {
            let add = (arguments.operands.len() == 4).then(|| arguments.operands.pop()).flatten();
            let function = match add.map(|add| binding.literal(&add).cloned()) {
                None | Some(Some(Value::Boolean(true))) => &JSON_SET,
                Some(Some(Value::Boolean(false))) => &JSON_REPLACE,
                Some(_) => {
                    let message = "the last argument of jsonb_set must be true or false";
                    return Err(Error::type_error(message));
                }
            };
            let value = arguments.operands.pop();
            let (document, path) = document_and_keys(binding, arguments)?;
            one(function, binding, (document, path), value, JSON)
        },
    ),
    &expression(
        &["json_delete_key"],
        Doc::new(
            "json_delete_key(doc, key, …)",
            "`json_remove` with the keys and indexes of a path as arguments.",
            "json_delete_key('{\"a\":{\"b\":1,\"c\":2}}', 'a', 'b')",
            "{\"a\":{\"c\":2}}",
        ),
        Arity::at_least(2),
        |binding, arguments| {
            let (document, path) = document_and_keys(binding, arguments)?;
            Ok(binding.call(&JSON_REMOVE, vec![document, path], JSON))
        },
    ),
    &expression(
        &[
            "json_array_push_string",
            "json_array_push_bigint",
            "json_array_push_double",
            "json_array_push_json",
        ],
        Doc::new(
            "json_array_push_string(doc, value), json_array_push_bigint, \
             json_array_push_double, json_array_push_json",
            "`json_array_append` to the document, of a value of the type.",
            "json_array_push_string('[1]', '2')",
            "[1,\"2\"]",
        ),
        Arity::exactly(2),
        |binding, arguments| {
            let to = type_named(arguments.name);
            let [document, value] = arguments.exactly()?;
            let document = coerce::json(binding, document)?;
            let path = root(binding);
            one(&JSON_ARRAY_APPEND, binding, (document, path), Some(value), to)
        },
    ),
];

/// The type with which the name of a function ends.
fn type_named(name: &str) -> DataType {
    match name.rsplit('_').next().map(str::to_ascii_lowercase).as_deref() {
        Some("bigint") => DataType::Int64,
        Some("double") => DataType::Float64,
        Some("json") => JSON,
        _ => DataType::TEXT,
    }
}

/// A change at one path, to a value that is cast to a type.
fn one(
    function: &'static ScalarFunction,
    binding: &mut dyn Binding,
    (document, path): (Operand, Operand),
    value: Option<Operand>,
    to: DataType,
) -> Result<Operand> {
    let mut args = vec![document, path];
    if let Some(value) = value {
        let value = binding.settle(value, to);
        args.push(binding.cast(value, to)?);
    }
    Ok(binding.call(function, args, JSON))
}

/// A change at several paths, each followed by a value.
fn pairs(
    function: &'static ScalarFunction,
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<Operand> {
    if arguments.operands.len().is_multiple_of(2) {
        let message = format!("{} takes a path and a value, once or more", arguments.name);
        return Err(Error::type_error(message).with_sqlstate("42883"));
    }
    let mut args = Vec::with_capacity(arguments.operands.len());
    for (at, operand) in arguments.operands.into_iter().enumerate() {
        args.push(match at {
            0 => coerce::json(binding, operand)?,
            _ if at % 2 == 1 => path(binding, operand)?,
            _ => coerce::json_value(binding, operand)?,
        });
    }
    Ok(binding.call(function, args, JSON))
}

/// Changes a document at each path, one after the other. Null if the document or a path is.
fn edited(call: &Call<'_>, how: Edit) -> Result<Vector> {
    let args = call.vectors();
    let Some((document, changes)) = args.split_first() else {
        return Err(call.wrong_arguments());
    };
    let width = if how == Edit::Remove { 1 } else { 2 };
    let documents = Texts::new(document);
    let mut last: Vec<LastPath> = changes.chunks(width).map(|_| LastPath::default()).collect();
    map_values(&[document], call.data_type, call.rows, call.room(), &mut |row| {
        // Earlier versions stored JSON as it came.
        let mut text = normal(&documents.text(row))?.into_owned();
        for (change, last) in changes.chunks(width).zip(&mut last) {
            if change[0].is_null(row) {
                return Ok(Value::Null);
            }
            let path = last.get(&Texts::new(change[0]).text(row))?;
            if how == Edit::Remove && path.steps.is_empty() {
                return Ok(Value::Null);
            }
            let value = change.get(1).map_or(Value::Null, |value| value.value(row));
            text = edit(&text, path, how, &to_json(&value)?)?;
        }
        json(text)
    })
}
