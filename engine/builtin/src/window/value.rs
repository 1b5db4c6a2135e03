//! Functions that return a value of another row.

use nacre_function::entry::coerce;
use nacre_function::entry::definition::{Arguments, Arity};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::window::{WindowFunction, WindowRow};
use nacre_types::{DataType, Error, Result, Value};

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&WindowFunction] =
    &[&LAG, &LEAD, &FIRST_VALUE, &LAST_VALUE, &NTH_VALUE];

pub(super) static LAG: WindowFunction = WindowFunction {
    names: &["lag"],
    doc: Doc::new(
        "lag(x[, offset[, default]])",
        "The value some rows before, of the same partition.",
        "lag(id) over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
        "2",
    ),
    arity: Arity::between(1, 3),
    typing: offset,
    value: |row| moved(row, |row, offset| i64::try_from(row).ok()?.checked_sub(offset)),
};

pub(super) static LEAD: WindowFunction = WindowFunction {
    names: &["lead"],
    doc: Doc::new(
        "lead(x[, offset[, default]])",
        "The value some rows after, of the same partition.",
        "lead(id, 1, 0) over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
        "0",
    ),
    arity: Arity::between(1, 3),
    typing: offset,
    value: |row| moved(row, |row, offset| i64::try_from(row).ok()?.checked_add(offset)),
};

pub(super) static FIRST_VALUE: WindowFunction = WindowFunction {
    names: &["first_value"],
    doc: Doc::new(
        "first_value(x)",
        "The value at the first row of the frame.",
        "first_value(id) over (order by n) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
        "1",
    ),
    arity: Arity::exactly(1),
    typing: one_value,
    value: |row| in_frame(row, |frame| Some(frame.start)),
};

pub(super) static LAST_VALUE: WindowFunction = WindowFunction {
    names: &["last_value"],
    doc: Doc::new(
        "last_value(x)",
        "The value at the last row of the frame.",
        "last_value(id) over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
        "3",
    ),
    arity: Arity::exactly(1),
    typing: one_value,
    value: |row| in_frame(row, |frame| frame.end.checked_sub(1)),
};

pub(super) static NTH_VALUE: WindowFunction = WindowFunction {
    names: &["nth_value"],
    doc: Doc::new(
        "nth_value(x, n)",
        "The value at the `n`th row of the frame.",
        "nth_value(id, 2) over (order by id) from (values (1, 10), (2, 20), (3, 20)) as t(id, n) order by id desc",
        "2",
    ),
    arity: Arity::exactly(2),
    typing: |binding, arguments| {
        let name = arguments.name;
        let [value, n] = arguments.exactly()?;
        let n = position(binding, n, name)?;
        let data_type = binding.data_type(&value);
        Ok((vec![value, n], data_type))
    },
    value: |row| match row.argument(1) {
        Some(Value::Int(n)) if n > 0 => in_frame(row, |frame| {
            usize::try_from(n - 1).ok().and_then(|n| frame.start.checked_add(n))
        }),
        Some(Value::Null) => Ok(Value::Null),
        _ => Err(Error::type_error("nth_value counts from 1").with_sqlstate("22016")),
    },
};

fn position(binding: &mut dyn Binding, operand: Operand, name: &str) -> Result<Operand> {
    let operand = coerce::integer(binding, operand, name)?;
    binding.cast(operand, DataType::Int64)
}

fn one_value(
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<(Vec<Operand>, DataType)> {
    let [value] = arguments.exactly()?;
    let data_type = binding.data_type(&value);
    Ok((vec![value], data_type))
}

/// Types a value, an offset in rows, and a default of the value's type.
fn offset(binding: &mut dyn Binding, arguments: Arguments<'_>) -> Result<(Vec<Operand>, DataType)> {
    let name = arguments.name;
    let mut operands = arguments.operands.into_iter();
    let (value, offset, default) = (operands.next(), operands.next(), operands.next());
    let offset = offset.map(|offset| position(binding, offset, name)).transpose()?;
    let (values, data_type) = match (value, default) {
        (Some(value), Some(default)) => {
            let (values, data_type) = binding.unify_all(vec![value, default], name)?;
            let cast = values.into_iter().map(|value| binding.cast(value, data_type));
            (cast.collect::<Result<Vec<_>>>()?, data_type)
        }
        (value, _) => {
            let data_type = value.as_ref().map_or(DataType::Null, |v| binding.data_type(v));
            (value.into_iter().collect(), data_type)
        }
    };
    let mut operands: Vec<Operand> = values;
    if let Some(offset) = offset {
        operands.insert(1, offset);
    }
    Ok((operands, data_type))
}

fn moved(row: &WindowRow<'_>, target: fn(usize, i64) -> Option<i64>) -> Result<Value> {
    let offset = match row.argument(1) {
        None => 1,
        Some(Value::Int(v)) => v,
        Some(_) => return Ok(Value::Null),
    };
    let target = target(row.row, offset).and_then(|target| usize::try_from(target).ok());
    Ok(match target.filter(|target| row.partition.contains(target)) {
        Some(target) => row.value_at(target),
        // The default is null if omitted.
        None => row.argument(2).unwrap_or(Value::Null),
    })
}

fn in_frame(
    row: &WindowRow<'_>,
    wanted: impl FnOnce(&std::ops::Range<usize>) -> Option<usize>,
) -> Result<Value> {
    let frame = (row.frame)();
    let wanted = wanted(&frame).filter(|at| frame.contains(at));
    Ok(wanted.map_or(Value::Null, |at| row.value_at(at)))
}
