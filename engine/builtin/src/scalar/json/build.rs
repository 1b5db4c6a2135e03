//! JSON of SQL values.

use nacre_column::Vector;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::{Values, Vectors};
use nacre_function::entry::definition::Parameter::{Json, JsonValue, Text};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{Arity, Call, Expression, Nulls, RowCall, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes, takes_many};
use nacre_function::json::convert::to_json;
use nacre_function::json::merge::merge_patch;
use nacre_function::json::pretty::pretty;
use nacre_function::json::select::text;
use nacre_function::vector::map::map_values;
use nacre_function::vector::room::check_length;
use nacre_function::vector::view::Texts;
use nacre_types::json::{Writer, normal};
use nacre_types::{DataType, Error, Result, Value};

const JSON: DataType = DataType::Json;
const TEXT: DataType = DataType::TEXT;

/// A value as JSON; paths are built with it.
pub static TO_JSON: ScalarFunction = function(
    &["to_json", "to_jsonb", "json_quote"],
    Doc::new(
        "to_json(a), to_jsonb, json_quote",
        "A value as JSON: text becomes a string, JSON stays as it is.",
        "to_json('a\"b')",
        "\"a\\\"b\"",
    ),
    Declared(takes(&[JsonValue]), JSON),
    Values(|row| json(to_json(row.value(0))?.into_owned())),
);

/// An array of values; an extraction by several paths refers to it.
pub static JSON_ARRAY: ScalarFunction = function(
    &["json_array", "json_build_array", "jsonb_build_array"],
    Doc::new(
        "json_array(…), json_build_array, jsonb_build_array",
        "An array of the arguments.",
        "json_array(1, 'a', null)",
        "[1,\"a\",null]",
    ),
    Declared(takes_many(0, &[JsonValue]), JSON),
    Values(array),
)
.nulls(Nulls::SeenPartial);

/// An object of keys and values; the syntax with `VALUE` refers to it.
pub static JSON_OBJECT: ScalarFunction = function(
    &["json_object", "json_build_object", "jsonb_build_object"],
    Doc::new(
        "json_object(key, value, …), json_build_object, jsonb_build_object",
        "An object; of equal keys the last value counts. Also `json_object('a' value 1, …)`.",
        "json_object('a', 1, 'b', json_array())",
        "{\"a\":1,\"b\":[]}",
    ),
    Rule(Arity::at_least(0), |binding, arguments| {
        let (name, count) = (arguments.name, arguments.operands.len());
        if count % 2 == 1 {
            let message = format!("{name} takes pairs of a key and a value");
            return Err(Error::type_error(message).with_sqlstate("42883"));
        }
        let mut operands = Vec::with_capacity(count);
        for (at, operand) in arguments.operands.into_iter().enumerate() {
            operands.push(match at % 2 {
                0 => coerce::text(binding, operand)?,
                _ => coerce::json_value(binding, operand)?,
            });
        }
        Ok(binding.call(&JSON_OBJECT, operands, JSON))
    }),
    Values(object),
)
.nulls(Nulls::SeenPartial);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &TO_JSON,
    &JSON_ARRAY,
    &JSON_OBJECT,
    &function(
        &["json_merge_patch", "json_patch"],
        Doc::new(
            "json_merge_patch(doc, patch, …), json_patch",
            "With the members of the patch, of which null removes one (RFC 7396).",
            "json_merge_patch('{\"a\":1,\"b\":2}', '{\"a\":null,\"c\":3}')",
            "{\"b\":2,\"c\":3}",
        ),
        Declared(takes_many(2, &[Json, Json]), JSON),
        Values(|row| {
            let mut document = row.text(0).into_owned();
            for at in 1..row.args.len() {
                document = merge_patch(&document, &row.text(at))?;
                check_length(document.len())?;
            }
            json(document)
        }),
    ),
    &function(
        &["json_pretty", "jsonb_pretty"],
        Doc::new(
            "json_pretty(doc), jsonb_pretty",
            "The document with a line for each value, as text.",
            "length(json_pretty('[1]'))",
            "9",
        ),
        Declared(takes(&[Json]), TEXT),
        Values(|row| Ok(Value::Text(pretty(&row.text(0))?))),
    ),
    &function(
        &["json_unquote"],
        Doc::new(
            "json_unquote(a)",
            "The characters of a JSON string; of other JSON and of text without quotes the text.",
            "json_unquote('\"a\"')",
            "a",
        ),
        Declared(takes(&[Text]), TEXT),
        Vectors(unquoted),
    )
    .nulls(Nulls::Partial),
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[&expression(
    &["json", "jsonb"],
    Doc::new(
        "json(a), jsonb",
        "The JSON that a text spells, as `CAST(a AS JSON)`.",
        "json(' { \"a\" : 1 } ')",
        "{\"a\":1}",
    ),
    Arity::exactly(1),
    |binding, arguments| {
        let [value] = arguments.exactly()?;
        let value = binding.settle(value, TEXT);
        binding.explicit_cast(value, JSON)
    },
)];

/// A JSON result, which must not be too long.
pub(super) fn json(text: String) -> Result<Value> {
    check_length(text.len())?;
    Ok(Value::Json(text))
}

fn array(row: &RowCall<'_>) -> Result<Value> {
    let mut writer = Writer::default();
    writer.array_start();
    for value in row.args {
        writer.value(&to_json(value)?);
        check_length(writer.len())?;
    }
    writer.array_end();
    json(writer.finish())
}

fn object(row: &RowCall<'_>) -> Result<Value> {
    let mut writer = Writer::default();
    writer.object_start();
    for (at, value) in row.args.iter().enumerate() {
        match at % 2 {
            0 if value.is_null() => return Err(row.error("a key is null", "22004")),
            0 => writer.key(&row.text(at)),
            _ => writer.value(&to_json(value)?),
        }
        check_length(writer.len())?;
    }
    writer.object_end();
    json(normal(&writer.finish())?.into_owned())
}

fn unquoted(call: &Call<'_>) -> Result<Vector> {
    let [arg] = call.exactly()?;
    let texts = Texts::new(arg);
    map_values(&[arg], call.data_type, call.rows, call.room(), &mut |row| {
        let value = texts.text(row);
        let is_string = value.starts_with('"') && value.len() > 1 && value.ends_with('"');
        Ok(match is_string {
            true => text(&normal(&value)?).map_or(Value::Null, |text| Value::Text(text.into())),
            false => Value::Text(value.into_owned()),
        })
    })
}
