//! Functions for values of any type.

use nacre_column::Vector;
use nacre_function::entry::coerce::is_null;
use nacre_function::entry::definition::Arity;
use nacre_function::entry::definition::Call;
use nacre_function::entry::definition::Kernel::{FirstNonNull, Vectors};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::definition::{Expression, Nulls, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes};
use nacre_function::kernel::cast::cast_value_of;
use nacre_function::kernel::order::compare_values;
use nacre_function::operator::BinaryOp;
use nacre_function::vector::map::map_values;
use nacre_types::{DataType, Result, Value};
use std::cmp::Ordering;

/// The first argument that is not null.
pub static COALESCE: ScalarFunction = function(
    &["coalesce"],
    Doc::new("coalesce(…)", "The first argument that is not null.", "coalesce(null, 2, 3)", "2"),
    Rule(Arity::at_least(1), |binding, arguments| {
        let (mut operands, data_type) = binding.unify_all(arguments.operands, arguments.name)?;
        // Nulls are never returned, and nothing after a constant is evaluated.
        operands.retain(|operand| !is_null(binding, operand));
        let constant = operands.iter().position(|operand| binding.literal(operand).is_some());
        operands.truncate(constant.map_or(operands.len(), |at| at + 1));
        if let [only] = &operands[..]
            && binding.data_type(only) == data_type
        {
            return Ok(operands.swap_remove(0));
        }
        Ok(match operands.is_empty() {
            true => binding.constant(Value::Null, data_type),
            false => binding.call(&COALESCE, operands, data_type),
        })
    }),
    FirstNonNull,
)
.nulls(Nulls::AllNull)
.infallible();

static NULL_IF: ScalarFunction = function(
    &["nullif"],
    Doc::new(
        "nullif(a, b)",
        "Null when the arguments are equal, else the first, in its type.",
        "nullif(3, 3)",
        "NULL",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [value, other] = arguments.exactly()?;
        null_if(binding, value, other)
    }),
    Vectors(|call| {
        let [arg, other] = call.exactly()?;
        map_values(&[arg], call.data_type, call.rows, call.room(), &mut |i| {
            let value = arg.value(i);
            let same = !other.is_null(i) && compare_values(&value, &other.value(i)).is_eq();
            Ok(if same { Value::Null } else { value })
        })
    }),
)
.nulls(Nulls::SeenPartial)
.infallible();

/// The largest argument; the call `max(a, b, …)` refers to it.
pub static GREATEST: ScalarFunction = function(
    &["greatest"],
    Doc::new(
        "greatest(…)",
        "The greatest argument; null when one is null.",
        "greatest(1, 3, 2)",
        "3",
    ),
    Rule(Arity::at_least(1), |binding, arguments| {
        let (operands, data_type) = binding.unify_all(arguments.operands, arguments.name)?;
        Ok(binding.call(&GREATEST, operands, data_type))
    }),
    Vectors(|call| extreme(call, Ordering::Greater)),
)
.infallible();

/// The smallest argument; the call `min(a, b, …)` refers to it.
pub static LEAST: ScalarFunction = function(
    &["least"],
    Doc::new("least(…)", "The least argument; null when one is null.", "least(1, 3, 2)", "1"),
    Rule(Arity::at_least(1), |binding, arguments| {
        let (operands, data_type) = binding.unify_all(arguments.operands, arguments.name)?;
        Ok(binding.call(&LEAST, operands, data_type))
    }),
    Vectors(|call| extreme(call, Ordering::Less)),
)
.infallible();

/// A cast that returns null if it fails. It has no name: `TRY_CAST(x AS t)` refers to it.
pub static TRY_CAST: ScalarFunction = function(
    &["try_cast"],
    Doc::new("", "", "", ""),
    Declared(takes(&[]), DataType::Null),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        map_values(&[arg], call.data_type, call.rows, call.room(), &mut |i| {
            // For any error, the result is null.
            let cast = cast_value_of(arg.data_type(), &arg.value(i), call.data_type);
            Ok(cast.unwrap_or(Value::Null))
        })
    }),
)
.nulls(Nulls::Partial);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[&COALESCE, &NULL_IF, &GREATEST, &LEAST];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["ifnull", "nvl"],
        Doc::new("ifnull(a, b), nvl", "`coalesce` of two arguments.", "ifnull(null, 7)", "7"),
        Arity::exactly(2),
        |binding, arguments| COALESCE.bind(binding, arguments),
    ),
    &expression(
        &["nvl2"],
        Doc::new(
            "nvl2(a, b, c)",
            "`b` when `a` is not null, else `c`.",
            "nvl2(null, 'is', 'is not')",
            "is not",
        ),
        Arity::exactly(3),
        |binding, arguments| {
            let [value, yes, no] = arguments.exactly()?;
            let test = binding.null_test(value, true);
            binding.case(test, yes, no)
        },
    ),
    &expression(
        &["isnull"],
        Doc::new("isnull(a)", "Whether the argument is null.", "isnull(null)", "true"),
        Arity::exactly(1),
        |binding, arguments| {
            let [value] = arguments.exactly()?;
            Ok(binding.null_test(value, false))
        },
    ),
    &expression(
        &["zeroifnull"],
        Doc::new("zeroifnull(a)", "The argument, or 0 when it is null.", "zeroifnull(null)", "0"),
        Arity::exactly(1),
        |binding, arguments| {
            let name = arguments.name;
            let [value] = arguments.exactly()?;
            let zero = binding.constant(Value::Int(0), DataType::Int32);
            let (operands, data_type) = binding.unify_all(vec![value, zero], name)?;
            Ok(binding.call(&COALESCE, operands, data_type))
        },
    ),
    &expression(
        &["if", "iif"],
        Doc::new(
            "if(test, a, b), iif",
            "`a` when the test is true, else `b`.",
            "if(1 < 2, 'yes', 'no')",
            "yes",
        ),
        Arity::exactly(3),
        |binding, arguments| {
            let [test, yes, no] = arguments.exactly()?;
            let test = binding.condition(test, "the condition of IF")?;
            binding.case(test, yes, no)
        },
    ),
    &expression(
        &["typeof", "pg_typeof"],
        Doc::new(
            "typeof(a), pg_typeof",
            "The name of the argument's type.",
            "typeof(1.50)",
            "DECIMAL(3,2)",
        ),
        Arity::exactly(1),
        |binding, arguments| {
            let [value] = arguments.exactly()?;
            let value = binding.settle(value, DataType::TEXT);
            let name = binding.data_type(&value).to_string();
            Ok(binding.constant(Value::Text(name), DataType::TEXT))
        },
    ),
];

/// The result has the type of the first argument, whatever type the two are compared in.
fn null_if(binding: &mut dyn Binding, value: Operand, other: Operand) -> Result<Operand> {
    let (value, other) = binding.settle_pair(value, other);
    if is_null(binding, &value) || is_null(binding, &other) {
        return Ok(value);
    }
    let data_type = binding.data_type(&value);
    let first = binding.again(&value)?;
    let (left, right) = binding.unify(first, other, "nullif")?;
    if binding.data_type(&left) == data_type {
        return Ok(binding.call(&NULL_IF, vec![left, right], data_type));
    }
    let equal = binding.binary(BinaryOp::Equal, left, right)?;
    let null = binding.constant(Value::Null, data_type);
    binding.case(equal, null, value)
}

fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Vector> {
    map_values(&call.vectors(), call.data_type, call.rows, call.room(), &mut |i| {
        let mut best = Value::Null;
        for arg in call.args {
            let value = arg.value(i);
            if best.is_null() || compare_values(&value, &best) == wanted {
                best = value;
            }
        }
        Ok(best)
    })
}
