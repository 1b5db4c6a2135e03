//! Aggregates defined as expressions over sums and averages.

use crate::scalar::any::COALESCE;
use crate::scalar::numbers::{EXP, LN};
use nacre_function::aggregate::sum::{AVG, SUM};
use nacre_function::entry::aggregate::{AggregateArguments, AggregateBinding, AggregateExpression};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Operand;
use nacre_function::entry::doc::Doc;
use nacre_types::{DataType, Result, Value};

const DOUBLE: DataType = DataType::Float64;

/// The names of this file.
pub(crate) static EXPRESSIONS: &[&AggregateExpression] = &[
    &AggregateExpression {
        names: &["total"],
        doc: Doc::new(
            "total(x)",
            "The sum as a double; 0 over no rows.",
            "total(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "7.0",
        ),
        rule: |binding, mut arguments| {
            let [x] = arguments.take()?;
            let x = coerce::double(binding, x)?;
            let sum = binding.aggregate(&SUM, arguments.unordered().with(vec![x]), DOUBLE);
            let zero = binding.constant(Value::Float(0.0), DOUBLE);
            Ok(binding.call(&COALESCE, vec![sum, zero], DOUBLE))
        },
    },
    &AggregateExpression {
        names: &["geomean", "geometric_mean"],
        doc: Doc::new(
            "geomean(x), geometric_mean",
            "The geometric mean.",
            "round(geomean(x), 6) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "2.0",
        ),
        rule: |binding, mut arguments| {
            let [x] = arguments.take()?;
            let x = coerce::double(binding, x)?;
            let logarithm = binding.call(&LN, vec![x], DOUBLE);
            let arguments = arguments.unordered().with(vec![logarithm]);
            let mean = binding.aggregate(&AVG, arguments, DOUBLE);
            Ok(binding.call(&EXP, vec![mean], DOUBLE))
        },
    },
    &AggregateExpression {
        names: &["regr_avgx"],
        doc: Doc::new(
            "regr_avgx(y, x)",
            "The average of `x` over rows with both arguments.",
            "round(regr_avgx(x * 2, x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "2.3333",
        ),
        rule: |binding, mut arguments| {
            let [y, x] = arguments.take()?;
            average_of_pairs(binding, arguments, x, y)
        },
    },
    &AggregateExpression {
        names: &["regr_avgy"],
        doc: Doc::new(
            "regr_avgy(y, x)",
            "The average of `y` over rows with both arguments.",
            "round(regr_avgy(x * 2, x), 4) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "4.6667",
        ),
        rule: |binding, mut arguments| {
            let [y, x] = arguments.take()?;
            average_of_pairs(binding, arguments, y, x)
        },
    },
];

/// The average of one argument over the rows at which the other is not null.
fn average_of_pairs(
    binding: &mut dyn AggregateBinding,
    arguments: AggregateArguments<'_>,
    value: Operand,
    other: Operand,
) -> Result<Operand> {
    arguments.refuse_distinct()?;
    let value = coerce::double(binding, value)?;
    let other = coerce::double(binding, other)?;
    let present = binding.null_test(other, true);
    let arguments = arguments.unordered().only(binding, present).with(vec![value]);
    Ok(binding.aggregate(&AVG, arguments, DOUBLE))
}
