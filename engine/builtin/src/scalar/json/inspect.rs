//! What a document is and has: types, lengths, keys, containment.

use super::arguments::{optional_path, path};
use super::get::{exists, found};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::{Values, Vectors};
use nacre_function::entry::definition::Parameter::{Json, Text};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{Arguments, boolean, int, text};
use nacre_function::entry::definition::{
    Arity, Binding, Expression, Nulls, Operand, ScalarFunction,
};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes, takes_at_least};
use nacre_function::json::contain::contains;
use nacre_function::json::convert::{is_same_scalar, to_json, type_name};
use nacre_function::json::path::{JsonPath, Step};
use nacre_function::json::pretty::depth;
use nacre_types::json::{Token, Tokens, Writer, check};
use nacre_types::{DataType, Result, Value};

const BOOLEAN: DataType = DataType::Boolean;
const INT: DataType = DataType::Int64;
const JSON: DataType = DataType::Json;
const TEXT: DataType = DataType::TEXT;

/// Whether a path names something; the operator `@?` refers to it.
pub static JSON_EXISTS: ScalarFunction = function(
    &["json_exists", "jsonb_path_exists"],
    Doc::new(
        "json_exists(doc, path), jsonb_path_exists",
        "Whether a path names a value, be it null; also `doc @? path`.",
        "json_exists('{\"a\":null}', '$.a')",
        "true",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        optional_path(&JSON_EXISTS, binding, arguments, BOOLEAN)
    }),
    Vectors(exists),
)
.infallible();

static JSON_TYPE: ScalarFunction = function(
    &["json_type"],
    Doc::new(
        "json_type(doc[, path])",
        "`OBJECT`, `ARRAY`, `STRING`, `INTEGER`, `DOUBLE`, `BOOLEAN` or `NULL`.",
        "json_type('{\"a\":1.5}', '$.a')",
        "DOUBLE",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| {
        optional_path(&JSON_TYPE, binding, arguments, TEXT)
    }),
    Vectors(|call| found(call, |value, _| text(type_name(value, false)))),
)
.nulls(Nulls::Partial)
.infallible();

static JSON_TYPEOF: ScalarFunction = function(
    &["json_typeof", "jsonb_typeof"],
    Doc::new(
        "json_typeof(doc), jsonb_typeof",
        "`object`, `array`, `string`, `number`, `boolean` or `null`.",
        "json_typeof('[]')",
        "array",
    ),
    Rule(Arity::exactly(1), |binding, arguments| {
        optional_path(&JSON_TYPEOF, binding, arguments, TEXT)
    }),
    Vectors(|call| found(call, |value, _| text(type_name(value, true)))),
)
.infallible();

static JSON_LENGTH: ScalarFunction = function(
    &["json_length"],
    Doc::new(
        "json_length(doc[, path])",
        "The number of members or elements; 1 for a scalar.",
        "json_length('{\"a\":1,\"b\":[2,3]}')",
        "2",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| {
        optional_path(&JSON_LENGTH, binding, arguments, INT)
    }),
    Vectors(|call| found(call, |value, _| int(length(value)?))),
)
.nulls(Nulls::Partial)
.infallible();

static JSON_ARRAY_LENGTH: ScalarFunction = function(
    &["json_array_length", "jsonb_array_length"],
    Doc::new(
        "json_array_length(doc[, path]), jsonb_array_length",
        "The number of elements of an array; 0 for other values.",
        "json_array_length('[1,[2,3]]')",
        "2",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| {
        optional_path(&JSON_ARRAY_LENGTH, binding, arguments, INT)
    }),
    Vectors(|call| {
        found(call, |value, _| int(if value.starts_with('[') { length(value)? } else { 0 }))
    }),
)
.nulls(Nulls::Partial)
.infallible();

static JSON_KEYS: ScalarFunction = function(
    &["json_keys"],
    Doc::new(
        "json_keys(doc[, path])",
        "The keys of an object as an array; null for other values.",
        "json_keys('{\"a\":1,\"b\":{\"c\":2}}')",
        "[\"a\",\"b\"]",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| {
        optional_path(&JSON_KEYS, binding, arguments, JSON)
    }),
    Vectors(|call| found(call, |value, _| keys(value))),
)
.nulls(Nulls::Partial)
.infallible();

/// Containment; the operators `@>`, `<@` and `MEMBER OF` refer to it.
pub static JSON_CONTAINS: ScalarFunction = function(
    &["json_contains", "jsonb_contains"],
    Doc::new(
        "json_contains(doc, candidate[, path]), jsonb_contains",
        "Whether the document, or the value at a path, contains another: members in members, \
         elements in any elements; also `doc @> candidate`.",
        "json_contains('{\"a\":[1,2],\"b\":3}', '{\"a\":[2]}')",
        "true",
    ),
    Rule(Arity::between(2, 3), contain),
    Values(|row| boolean(contains(&row.text(0), &row.text(1))?)),
)
.infallible();

/// Whether a key exists; the operator `?` refers to it.
pub static JSON_HAS_KEY: ScalarFunction = function(
    &["jsonb_exists"],
    Doc::new(
        "jsonb_exists(doc, key)",
        "Whether an object has a key, or an array a string; also `doc ? 'key'`.",
        "jsonb_exists('{\"a\":null}', 'a')",
        "true",
    ),
    Declared(takes(&[Json, Text]), BOOLEAN),
    Values(|row| boolean(has_key(&row.text(0), &row.text(1))?)),
)
.infallible();

/// Whether some or all of several keys exist; the operators `?|` and `?&` refer to it.
pub static JSON_HAS_KEYS: ScalarFunction = function(
    &["jsonb_exists_any", "jsonb_exists_all"],
    Doc::new(
        "jsonb_exists_any(doc, keys), jsonb_exists_all",
        "`jsonb_exists` of one or all keys of a list.",
        "jsonb_exists_any('{\"a\":null}', '{x,a}')",
        "true",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let all = arguments.name.to_ascii_lowercase().ends_with("_all");
        let [document, keys] = arguments.exactly()?;
        let document = coerce::json(binding, document)?;
        let keys = coerce::text(binding, keys)?;
        let all = binding.constant(Value::Boolean(all), BOOLEAN);
        Ok(binding.call(&JSON_HAS_KEYS, vec![document, keys, all], BOOLEAN))
    }),
    Values(|row| {
        let all = *row.value(2) == Value::Boolean(true);
        let mut found = all;
        for step in JsonPath::parse(&row.text(1))?.steps {
            let has = match &step {
                Step::Key(key) | Step::Named(key) => has_key(&row.text(0), key)?,
                _ => return Err(row.error("the keys must be a list like '{a,b}'", "22023")),
            };
            if has != all {
                found = has;
                break;
            }
        }
        boolean(found)
    }),
);

/// Whether a text is JSON; `IS JSON` refers to it, with the name of a kind.
pub static JSON_VALID: ScalarFunction = function(
    &["json_valid"],
    Doc::new(
        "json_valid(s)",
        "Whether a text is JSON; also `s IS JSON`.",
        "json_valid('{\"a\":}')",
        "false",
    ),
    Declared(takes_at_least(1, &[Text, Text]), BOOLEAN),
    Values(|row| {
        let value = row.text(0);
        let first = value.trim_start().chars().next();
        let fits = match &*row.text(1) {
            "ARRAY" => first == Some('['),
            "OBJECT" => first == Some('{'),
            "SCALAR" => !matches!(first, Some('[' | '{')),
            _ => true,
        };
        boolean(fits && check(&value).is_ok())
    }),
)
.infallible();

/// Whether a value is an element of an array. It has no name: `MEMBER OF` refers to it.
pub static MEMBER_OF: ScalarFunction = function(
    &["member_of"],
    Doc::new("", "", "", ""),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [value, array] = arguments.exactly()?;
        let value = coerce::json_value(binding, value)?;
        let array = coerce::json(binding, array)?;
        Ok(binding.call(&MEMBER_OF, vec![value, array], BOOLEAN))
    }),
    Values(|row| {
        let (wanted, array) = (to_json(row.value(0))?, row.text(1));
        let mut tokens = Tokens::new(&array);
        let mut found = false;
        if tokens.next()? == Some(Token::ArrayStart) {
            while let Some(element) = tokens.value()? {
                found |= is_same_scalar(element, &wanted);
            }
        }
        boolean(found || is_same_scalar(&array, &wanted))
    }),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &JSON_EXISTS,
    &JSON_TYPE,
    &JSON_TYPEOF,
    &JSON_LENGTH,
    &JSON_ARRAY_LENGTH,
    &JSON_KEYS,
    &JSON_CONTAINS,
    &JSON_HAS_KEY,
    &JSON_HAS_KEYS,
    &JSON_VALID,
    &function(
        &["json_depth"],
        Doc::new(
            "json_depth(doc)",
            "The number of levels; 1 for a scalar or an empty object or array.",
            "json_depth('{\"a\":[1]}')",
            "3",
        ),
        Declared(takes(&[Json]), INT),
        Values(|row| int(depth(&row.text(0))? as i64)),
    )
    .infallible(),
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[&expression(
    &["json_array_contains_json"],
    Doc::new(
        "json_array_contains_json(doc, candidate)",
        "`json_contains` as SingleStore writes it.",
        "json_array_contains_json('[1,[2]]', '2')",
        "false",
    ),
    Arity::exactly(2),
    contain,
)];

fn contain(binding: &mut dyn Binding, arguments: Arguments<'_>) -> Result<Operand> {
    let mut operands = arguments.operands.into_iter();
    let mut args = Vec::with_capacity(2);
    for operand in operands.by_ref().take(2) {
        args.push(coerce::json(binding, operand)?);
    }
    if let Some(path) = operands.next()
        && let Some(candidate) = args.pop()
    {
        args.push(self::path(binding, path)?);
        let inside = binding.call(&super::get::JSON_EXTRACT, std::mem::take(&mut args), JSON);
        args.extend([inside, candidate]);
    }
    Ok(binding.call(&JSON_CONTAINS, args, BOOLEAN))
}

fn length(value: &str) -> Result<i64> {
    let mut tokens = Tokens::new(value);
    let mut count = 0;
    match tokens.next()? {
        Some(Token::ObjectStart | Token::ArrayStart) => {
            while tokens.value()?.is_some() {
                count += 1;
            }
            Ok(count)
        }
        _ => Ok(1),
    }
}

fn keys(value: &str) -> Result<Value> {
    let mut tokens = Tokens::new(value);
    if tokens.next()? != Some(Token::ObjectStart) {
        return Ok(Value::Null);
    }
    let mut writer = Writer::default();
    writer.array_start();
    while let Some(Token::Key(_)) = tokens.next()? {
        writer.string_text(tokens.text());
        tokens.value()?;
    }
    writer.array_end();
    Ok(Value::Json(writer.finish()))
}

/// Whether an object has a key, an array a string, or the document is that string.
fn has_key(document: &str, wanted: &str) -> Result<bool> {
    let mut tokens = Tokens::new(document);
    match tokens.next()? {
        Some(Token::String(text)) => return Ok(text == wanted),
        Some(Token::ObjectStart | Token::ArrayStart) => {}
        _ => return Ok(false),
    }
    loop {
        match tokens.next()? {
            Some(Token::Key(key)) if key == wanted => return Ok(true),
            Some(Token::Key(_)) => {
                tokens.value()?;
            }
            Some(Token::String(text)) if text == wanted => return Ok(true),
            None | Some(Token::ObjectEnd | Token::ArrayEnd) => return Ok(false),
            Some(_) => tokens.finish()?,
        }
    }
}
