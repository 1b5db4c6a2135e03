//! Parameter values of a statement: their number, types and names.

use nacre_operator::cast_value;
use nacre_sql::{Given, Parsed};
use nacre_types::{DataType, Error, Result, Value};
use std::borrow::Cow;

/// Checks the number of parameters and casts each to the type it was bound as.
pub(crate) fn cast_parameters<'a>(
    types: &[DataType],
    parameters: &'a [Value],
) -> Result<Cow<'a, [Value]>> {
    if parameters.len() != types.len() {
        let (wanted, given) = (types.len(), parameters.len());
        let (s, were) =
            (if wanted == 1 { "" } else { "s" }, if given == 1 { "was" } else { "were" });
        return Err(Error::type_error(format!(
            "the statement has {wanted} parameter{s}, {given} {were} given"
        ))
        .with_sqlstate("07001"));
    }
    // JSON from a program is not known to be in its normal form.
    let is_cast = |v: &Value, t: &DataType| Given::type_of(v) == *t && *t != DataType::Json;
    if parameters.iter().zip(types).all(|(v, t)| is_cast(v, t)) {
        return Ok(Cow::Borrowed(parameters));
    }
    let cast = |(at, (value, t)): (usize, (&Value, &DataType))| {
        cast_value(value, *t).map_err(|e| e.context(format!("parameter {}", at + 1)))
    };
    let cast = parameters.iter().zip(types).enumerate().map(cast);
    cast.collect::<Result<Vec<_>>>().map(Cow::Owned)
}

/// The values of a statement's named parameters, by position.
pub(crate) fn named_parameters(parsed: &Parsed, given: &[(String, Value)]) -> Result<Vec<Value>> {
    let value = |name: &Option<String>| {
        let Some(name) = name else {
            return Err(Error::type_error(
                "named parameters were given, but the statement has `?`",
            ));
        };
        match given.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(Error::type_error(format!("parameter :{name} was not given"))),
        }
    };
    parsed.parameter_names().iter().map(value).collect()
}
