//! Functions that return a value of another row, with `IGNORE NULLS`: rows at which the argument is
//! null do not count. A row takes as many steps as there are rows up to the one that it finds.

use super::value;
use nacre_function::entry::window::{WindowFunction, WindowRow};
use nacre_types::{Error, Result, Value};
use std::ops::Range;

/// The function of a name with `IGNORE NULLS`; `None` if it takes no such clause.
pub fn ignoring_nulls(name: &str) -> Option<&'static WindowFunction> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| function)
}

static FUNCTIONS: [(&str, WindowFunction); 5] = [
    ("lag", with(&value::LAG, |row| moved(row, false))),
    ("lead", with(&value::LEAD, |row| moved(row, true))),
    ("first_value", with(&value::FIRST_VALUE, |row| nth((row.frame)(), row, 1))),
    (
        "last_value",
        with(&value::LAST_VALUE, |row| {
            let found = (row.frame)().rev().find(|at| !is_null(row, *at));
            Ok(found.map_or(Value::Null, |at| row.value_at(at)))
        }),
    ),
    (
        "nth_value",
        with(&value::NTH_VALUE, |row| match row.argument(1) {
            Some(Value::Int(n)) if n > 0 => nth((row.frame)(), row, n),
            Some(Value::Null) => Ok(Value::Null),
            _ => Err(Error::type_error("nth_value counts from 1").with_sqlstate("22016")),
        }),
    ),
];

/// A function like another, with its own result.
const fn with(
    other: &'static WindowFunction,
    value: fn(&WindowRow<'_>) -> Result<Value>,
) -> WindowFunction {
    let WindowFunction { names, doc, arity, typing, .. } = *other;
    WindowFunction { names, doc, arity, typing, value }
}

fn is_null(row: &WindowRow<'_>, at: usize) -> bool {
    row.args.first().is_none_or(|arg| arg.is_null(at))
}

/// The `n`th value of some rows that is not null.
fn nth(rows: Range<usize>, row: &WindowRow<'_>, n: i64) -> Result<Value> {
    let mut values = rows.filter(|at| !is_null(row, *at));
    let found = usize::try_from(n - 1).ok().and_then(|skipped| values.nth(skipped));
    Ok(found.map_or(Value::Null, |at| row.value_at(at)))
}

/// The value some values after this row, or before it. An offset of 0 is the row itself.
fn moved(row: &WindowRow<'_>, forward: bool) -> Result<Value> {
    let offset = match row.argument(1) {
        None => 1,
        Some(Value::Int(v)) => v,
        Some(_) => return Ok(Value::Null),
    };
    let steps = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let Some(skipped) = steps.checked_sub(1) else { return Ok(row.value_at(row.row)) };
    let is_value = |at: &usize| !is_null(row, *at);
    let found = match forward == (offset > 0) {
        true => (row.row + 1..row.partition.end).filter(is_value).nth(skipped),
        false => (row.partition.start..row.row).rev().filter(is_value).nth(skipped),
    };
    Ok(match found {
        Some(at) => row.value_at(at),
        None => row.argument(2).unwrap_or(Value::Null),
    })
}
