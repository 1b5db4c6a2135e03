//! Quantiles and the most frequent value.

use crate::entry::aggregate::Accumulation::Collected;
use crate::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateExpression, AggregateFunction, Collection,
    aggregate, same_type,
};
use crate::entry::coerce;
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::kernel::cast::cast_value;
use crate::kernel::order::compare_values;
use nacre_types::{DataType, Error, Result, Value, decimal};

const DOUBLE: DataType = DataType::Float64;

static QUANTILE_CONT: AggregateFunction = aggregate(
    &["quantile_cont"],
    Doc::new(
        "quantile_cont(x, f)",
        "The value below which a fraction of the values is, interpolated between two.",
        "quantile_cont(x, 0.25) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1.5",
    ),
    |binding, arguments| quantile([&QUANTILE_CONT, &QUANTILE_CONT_DESCENDING], binding, arguments),
    Collected { deciding: 0, compute: |rows| continuous(rows, sorted(rows)) },
);

static QUANTILE_DISC: AggregateFunction = aggregate(
    &["quantile_disc", "quantile"],
    Doc::new(
        "quantile_disc(x, f), quantile",
        "The value below which a fraction of the values is, one of them.",
        "quantile_disc(x, 0.5) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2",
    ),
    |binding, arguments| quantile([&QUANTILE_DISC, &QUANTILE_DISC_DESCENDING], binding, arguments),
    Collected { deciding: 0, compute: |rows| discrete(rows, sorted(rows)) },
);

/// [`QUANTILE_CONT`] in descending order.
static QUANTILE_CONT_DESCENDING: AggregateFunction = aggregate(
    &["quantile_cont"],
    Doc::new("", "", "", ""),
    QUANTILE_CONT.rule,
    Collected { deciding: 0, compute: |rows| continuous(rows, reversed(rows)) },
);

/// [`QUANTILE_DISC`] in descending order.
static QUANTILE_DISC_DESCENDING: AggregateFunction = aggregate(
    &["quantile_disc"],
    Doc::new("", "", "", ""),
    QUANTILE_DISC.rule,
    Collected { deciding: 0, compute: |rows| discrete(rows, reversed(rows)) },
);

static MODE: AggregateFunction = aggregate(
    &["mode"],
    Doc::new(
        "mode(x [order by …])",
        "The most frequent value; of several the first in the order, or the least.",
        "mode(s) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "b",
    ),
    |binding, mut arguments| {
        // The argument of `mode() WITHIN GROUP (ORDER BY x)` is in the order.
        if arguments.within_group {
            let [] = arguments.take()?;
            if arguments.order.len() != 1 {
                let message = "mode() WITHIN GROUP takes one expression to order by";
                return Err(Error::type_error(message).with_sqlstate("42883"));
            }
            let argument = arguments.order.first().map(|key| binding.again(&key.operand));
            arguments.operands.extend(argument.transpose()?);
        }
        match arguments.order.is_empty() {
            true => same_type(&MODE, binding, arguments),
            false => same_type(&FIRST_MODE, binding, arguments),
        }
    },
    Collected { deciding: 0, compute: mode },
);

/// `mode` with an order.
static FIRST_MODE: AggregateFunction =
    aggregate(MODE.names, MODE.doc, MODE.rule, Collected { deciding: 0, compute: first_mode });

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[&QUANTILE_CONT, &QUANTILE_DISC, &MODE];

/// The aggregates of this file that are expressions.
pub static EXPRESSIONS: &[&AggregateExpression] = &[&PERCENTILE_CONT, &PERCENTILE_DISC, &MEDIAN];

static PERCENTILE_CONT: AggregateExpression = AggregateExpression {
    names: &["percentile_cont"],
    doc: Doc::new(
        "percentile_cont(f) within group (order by x)",
        "`quantile_cont` as the standard writes it.",
        "percentile_cont(0.5) within group (order by x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2.0",
    ),
    rule: QUANTILE_CONT.rule,
};

static PERCENTILE_DISC: AggregateExpression = AggregateExpression {
    names: &["percentile_disc"],
    doc: Doc::new(
        "percentile_disc(f) within group (order by x)",
        "`quantile_disc` as the standard writes it.",
        "percentile_disc(0.9) within group (order by x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "4",
    ),
    rule: QUANTILE_DISC.rule,
};

static MEDIAN: AggregateExpression = AggregateExpression {
    names: &["median"],
    doc: Doc::new(
        "median(x)",
        "The middle value, interpolated between two.",
        "median(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2.0",
    ),
    rule: |binding, mut arguments| {
        arguments.refuse_intervals(binding)?;
        let name = arguments.name;
        let [x] = arguments.take()?;
        let x = coerce::number(binding, x, name)?;
        let half = binding.constant(Value::Float(0.5), DOUBLE);
        Ok(binding.aggregate(&QUANTILE_CONT, arguments.with(vec![x, half]), DOUBLE))
    },
};

/// Binds `f(x, fraction)` and `f(fraction) WITHIN GROUP (ORDER BY x)`. The second function is for
/// descending order.
fn quantile(
    [ascending, descending]: [&'static AggregateFunction; 2],
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let name = arguments.name;
    let (value, fraction, function) = if arguments.within_group {
        let [fraction] = arguments.take()?;
        match (arguments.order.pop(), arguments.order.is_empty()) {
            (Some(key), true) if key.descending => (key.operand, fraction, descending),
            (Some(key), true) => (key.operand, fraction, ascending),
            _ => return Err(needs_order(name)),
        }
    } else if arguments.operands.len() == 1 {
        return Err(needs_order(name));
    } else {
        if !arguments.order.is_empty() {
            let message = format!("ORDER BY in {name} is not supported; write WITHIN GROUP");
            return Err(Error::unsupported(message));
        }
        let [value, fraction] = arguments.take()?;
        (value, fraction, ascending)
    };
    let fraction = coerce::double(binding, fraction)?;
    let is_continuous = ascending == &QUANTILE_CONT;
    let value = if is_continuous { coerce::number(binding, value, name)? } else { value };
    let data_type = if is_continuous { DOUBLE } else { binding.data_type(&value) };
    let arguments = arguments.unordered().with(vec![value, fraction]);
    Ok(binding.aggregate(function, arguments, data_type))
}

#[cold]
fn needs_order(name: &str) -> Error {
    Error::syntax(format!("{name} needs WITHIN GROUP (ORDER BY …)"))
}

fn sorted(rows: &Collection<'_>) -> Vec<Value> {
    let mut values: Vec<Value> = rows.values().collect();
    values.sort_by(compare_values);
    values
}

fn reversed(rows: &Collection<'_>) -> Vec<Value> {
    let mut values = sorted(rows);
    values.reverse();
    values
}

fn mode(rows: &Collection<'_>) -> Result<Value> {
    let mut best = (0, Value::Null);
    for run in sorted(rows).chunk_by(|a, b| compare_values(a, b).is_eq()) {
        if run.len() > best.0 {
            best = (run.len(), run[0].clone());
        }
    }
    Ok(best.1)
}

/// The most frequent value, of several the one that comes first.
fn first_mode(rows: &Collection<'_>) -> Result<Value> {
    let value = |at: u32| rows.argument(0, rows.order[at as usize]);
    let mut places: Vec<u32> = (0..rows.order.len() as u32).collect();
    places.sort_by(|a, b| compare_values(&value(*a), &value(*b)).then(a.cmp(b)));
    let mut best: &[u32] = &[];
    for run in places.chunk_by(|a, b| compare_values(&value(*a), &value(*b)).is_eq()) {
        if run.len() > best.len() || (run.len() == best.len() && run < best) {
            best = run;
        }
    }
    Ok(best.first().map_or(Value::Null, |at| value(*at)))
}

/// The second argument of the first row, which is equal in all rows.
fn fraction(rows: &Collection<'_>) -> Result<f64> {
    let fraction = rows.order.first().map_or(0.0, |row| number(&rows.argument(1, *row)));
    if !(0.0..=1.0).contains(&fraction) {
        return Err(Error::type_error("a quantile is between 0 and 1").with_sqlstate("22003"));
    }
    Ok(fraction)
}

fn discrete(rows: &Collection<'_>, values: Vec<Value>) -> Result<Value> {
    let at = (fraction(rows)? * values.len() as f64).ceil() as usize;
    Ok(values[at.saturating_sub(1).min(values.len() - 1)].clone())
}

fn continuous(rows: &Collection<'_>, values: Vec<Value>) -> Result<Value> {
    let last = values.len() - 1;
    let place = fraction(rows)? * last as f64;
    let (low, high) = (place.floor() as usize, (place.ceil() as usize).min(last));
    let (a, b) = (number(&values[low]), number(&values[high]));
    let share = place - low as f64;
    let between = match (a == b, (b - a).is_finite()) {
        (true, _) => a,
        (_, true) => a + (b - a) * share,
        // Infinities, or values whose difference overflows.
        (_, false) => a * (1.0 - share) + b * share,
    };
    cast_value(&Value::Float(between), rows.data_type)
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Float(v) => *v,
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Decimal { unscaled, scale } => decimal::to_f64(*unscaled, *scale),
        _ => 0.0,
    }
}
