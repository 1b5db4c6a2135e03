//! Aggregates that collect all rows of a group: ordered, or selected by another value.

use super::extreme::MIN;
use crate::entry::aggregate::Accumulation::Collected;
use crate::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateExpression, AggregateFunction, Collection,
    aggregate, double, same_type,
};
use crate::entry::coerce;
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::kernel::order::compare_values;
use crate::vector::room::check_length;
use nacre_types::{DataType, Error, Result, Value};
use std::cmp::Ordering;

const INT: DataType = DataType::Int64;
const TEXT: DataType = DataType::TEXT;

static FIRST: AggregateFunction = aggregate(
    &["first"],
    Doc::new(
        "first(x [order by …])",
        "The first value.",
        "first(s order by x desc) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "b",
    ),
    |binding, arguments| same_type(&FIRST, binding, arguments),
    Collected { deciding: 0, compute: |rows| Ok(rows.argument(0, rows.order[0])) },
);

static LAST: AggregateFunction = aggregate(
    &["last"],
    Doc::new(
        "last(x [order by …])",
        "The last value.",
        "last(x order by x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "4",
    ),
    |binding, arguments| same_type(&LAST, binding, arguments),
    Collected {
        deciding: 0,
        compute: |rows| Ok(rows.argument(0, rows.order[rows.order.len() - 1])),
    },
);

static ARG_MIN: AggregateFunction = aggregate(
    &["arg_min", "argmin", "min_by"],
    Doc::new(
        "arg_min(x, key), argmin, min_by",
        "The value of the row with the least key.",
        "arg_min(s, x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "a",
    ),
    |binding, arguments| by_key(&ARG_MIN, binding, arguments),
    Collected { deciding: 1, compute: |rows| Ok(best(rows, Ordering::Less)) },
);

static ARG_MAX: AggregateFunction = aggregate(
    &["arg_max", "argmax", "max_by"],
    Doc::new(
        "arg_max(x, key), argmax, max_by",
        "The value of the row with the greatest key.",
        "arg_max(s, x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "b",
    ),
    |binding, arguments| by_key(&ARG_MAX, binding, arguments),
    Collected { deciding: 1, compute: |rows| Ok(best(rows, Ordering::Greater)) },
);

static BIT_AND: AggregateFunction = aggregate(
    &["bit_and"],
    Doc::new(
        "bit_and(n)",
        "The bits that all values have.",
        "bit_and(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "0",
    ),
    |binding, arguments| integer(&BIT_AND, binding, arguments),
    Collected {
        deciding: 0,
        compute: |rows| Ok(Value::Int(integers(rows).fold(-1, |a, b| a & b))),
    },
);

static BIT_OR: AggregateFunction = aggregate(
    &["bit_or"],
    Doc::new(
        "bit_or(n)",
        "The bits that some value has.",
        "bit_or(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "7",
    ),
    |binding, arguments| integer(&BIT_OR, binding, arguments),
    Collected { deciding: 0, compute: |rows| Ok(Value::Int(integers(rows).fold(0, |a, b| a | b))) },
);

static BIT_XOR: AggregateFunction = aggregate(
    &["bit_xor"],
    Doc::new(
        "bit_xor(n)",
        "The bits that an odd number of values have.",
        "bit_xor(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "7",
    ),
    |binding, arguments| integer(&BIT_XOR, binding, arguments),
    Collected { deciding: 0, compute: |rows| Ok(Value::Int(integers(rows).fold(0, |a, b| a ^ b))) },
);

static PRODUCT: AggregateFunction = aggregate(
    &["product"],
    Doc::new(
        "product(x)",
        "The product.",
        "product(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "8.0",
    ),
    |binding, arguments| double(&PRODUCT, binding, arguments),
    Collected { deciding: 0, compute: product },
);

static STRING_AGG: AggregateFunction = aggregate(
    &["string_agg", "listagg"],
    Doc::new(
        "string_agg(s, separator [order by …]), listagg",
        "All texts, with a separator between them; a comma when there is none.",
        "string_agg(s, '-' order by x desc) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "b-b-a",
    ),
    texts,
    Collected { deciding: 0, compute: joined },
);

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] =
    &[&FIRST, &LAST, &ARG_MIN, &ARG_MAX, &BIT_AND, &BIT_OR, &BIT_XOR, &PRODUCT, &STRING_AGG];

/// The aggregates of this file that are expressions.
pub static EXPRESSIONS: &[&AggregateExpression] = &[&GROUP_CONCAT, &ANY_VALUE];

static GROUP_CONCAT: AggregateExpression = AggregateExpression {
    names: &["group_concat"],
    doc: Doc::new(
        "group_concat(s [separator '…'])",
        "`string_agg` as MySQL writes it.",
        "group_concat(distinct s order by s separator ';') from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "a;b",
    ),
    rule: texts,
};

static ANY_VALUE: AggregateExpression = AggregateExpression {
    names: &["any_value", "arbitrary"],
    doc: Doc::new(
        "any_value(x), arbitrary",
        "Some value.",
        "any_value(s) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "a",
    ),
    rule: |binding, mut arguments| {
        if !arguments.order.is_empty() {
            return same_type(&FIRST, binding, arguments);
        }
        arguments.refuse_intervals(binding)?;
        // Any value is allowed, and the minimum takes no memory.
        arguments.distinct = false;
        let [value] = arguments.take()?;
        let data_type = binding.data_type(&value);
        Ok(binding.aggregate(&MIN, arguments.with(vec![value]), data_type))
    },
};

fn integer(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let name = arguments.name;
    let [n] = arguments.take()?;
    let n = coerce::integer(binding, n, name)?;
    let n = binding.cast(n, INT)?;
    Ok(binding.aggregate(function, arguments.with(vec![n]), INT))
}

fn by_key(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let [value, key] = arguments.take()?;
    let data_type = binding.data_type(&value);
    Ok(binding.aggregate(function, arguments.with(vec![value, key]), data_type))
}

fn texts(
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    if arguments.operands.len() == 1 {
        arguments.operands.push(binding.constant(Value::Text(",".into()), TEXT));
    }
    let [text, separator] = arguments.take()?;
    let separator = coerce::text(binding, separator)?;
    let text = coerce::text(binding, text)?;
    Ok(binding.aggregate(&STRING_AGG, arguments.with(vec![text, separator]), TEXT))
}

fn integers(rows: &Collection<'_>) -> impl Iterator<Item = i64> {
    rows.values().filter_map(|value| match value {
        Value::Int(v) => Some(v),
        _ => None,
    })
}

/// The value of the row with the smallest or largest key; the first row among equals.
fn best(rows: &Collection<'_>, wanted: Ordering) -> Value {
    let key = |row: u32| rows.argument(1, row);
    let better = |best: u32, row: u32| match compare_values(&key(row), &key(best)) == wanted {
        true => row,
        false => best,
    };
    let best = rows.order.iter().copied().reduce(better);
    best.map_or(Value::Null, |row| rows.argument(0, row))
}

fn product(rows: &Collection<'_>) -> Result<Value> {
    let factors = || rows.values().map(|value| if let Value::Float(v) = value { v } else { 0.0 });
    let product: f64 = factors().product();
    if !product.is_finite() && factors().all(f64::is_finite) {
        return Err(Error::out_of_range("PRODUCT out of range"));
    }
    Ok(Value::Float(product))
}

fn joined(rows: &Collection<'_>) -> Result<Value> {
    let mut out = String::new();
    for (at, row) in rows.order.iter().enumerate() {
        if at > 0
            && let Value::Text(separator) = rows.argument(1, *row)
        {
            out += &separator;
        }
        out += &rows.argument(0, *row).to_string();
        check_length(out.len())?;
    }
    Ok(Value::Text(out))
}
