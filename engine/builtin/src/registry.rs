//! The registry: all functions, by all their names. An entry is in one of the files listed here;
//! adding a function adds an entry to a file.

use crate::average;
use crate::scalar::{
    any, calendar, date_part, digest, json, numbers, pattern, printf, random, rounding, strings,
    system, text, trigonometry,
};
use crate::window::{ranking, value};
use nacre_function::aggregate::{
    collected, count, extreme, grouping, json as json_aggregates, moments, quantile, sum,
};
use nacre_function::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateExpression, AggregateFunction, CreatedAggregate,
};
use nacre_function::entry::definition::{Arguments, Binding, Operand};
use nacre_function::entry::definition::{CreatedScalar, Expression, ScalarFunction, Volatility};
use nacre_function::entry::grouping::GroupingFunction;
use nacre_function::entry::window::WindowFunction;
use nacre_types::Result;
use std::sync::Arc;

/// A chapter of the reference, with the functions of some files.
pub struct Chapter {
    /// Heading.
    pub title: &'static str,
    /// Scalar functions.
    pub functions: &'static [&'static [&'static ScalarFunction]],
    /// Functions defined as expressions.
    pub expressions: &'static [&'static [&'static Expression]],
}

/// All scalar functions.
pub static SCALARS: &[Chapter] = &[
    Chapter {
        title: "Numbers",
        functions: &[rounding::FUNCTIONS, numbers::FUNCTIONS, trigonometry::FUNCTIONS],
        expressions: &[numbers::EXPRESSIONS],
    },
    Chapter { title: "Any type", functions: &[any::FUNCTIONS], expressions: &[any::EXPRESSIONS] },
    Chapter {
        title: "Text",
        functions: &[text::FUNCTIONS, strings::FUNCTIONS, printf::FUNCTIONS, digest::FUNCTIONS],
        expressions: &[text::EXPRESSIONS],
    },
    Chapter {
        title: "Patterns",
        functions: &[pattern::FUNCTIONS],
        expressions: &[pattern::EXPRESSIONS],
    },
    Chapter {
        title: "Dates and times",
        functions: &[date_part::FUNCTIONS, calendar::FUNCTIONS],
        expressions: &[date_part::EXPRESSIONS, calendar::EXPRESSIONS],
    },
    Chapter {
        title: "JSON",
        functions: &[
            json::get::FUNCTIONS,
            json::inspect::FUNCTIONS,
            json::change::FUNCTIONS,
            json::build::FUNCTIONS,
        ],
        expressions: &[
            json::get::EXPRESSIONS,
            json::inspect::EXPRESSIONS,
            json::change::EXPRESSIONS,
            json::build::EXPRESSIONS,
        ],
    },
    Chapter {
        title: "The system",
        functions: &[random::FUNCTIONS],
        expressions: &[system::EXPRESSIONS],
    },
];

/// The definition of a scalar function.
#[derive(Clone)]
pub enum ScalarEntry {
    /// A function with a kernel.
    Function(&'static ScalarFunction),
    /// An expression over the arguments.
    Expression(&'static Expression),
    /// A function that the application created.
    Created(Arc<CreatedScalar>),
}

impl ScalarEntry {
    /// Whether the first argument of a call with this number of arguments is the name of a date
    /// part, which may be unquoted.
    pub fn takes_part(&self, arguments: usize) -> bool {
        match self {
            ScalarEntry::Function(function) => function.part.is_taken(arguments),
            ScalarEntry::Expression(expression) => expression.part.is_taken(arguments),
            ScalarEntry::Created(_) => false,
        }
    }

    /// Whether it has another value at each evaluation.
    pub fn is_volatile(&self) -> bool {
        match self {
            ScalarEntry::Function(function) => function.volatility == Volatility::Volatile,
            ScalarEntry::Expression(_) => false,
            ScalarEntry::Created(function) => function.volatility == Volatility::Volatile,
        }
    }

    /// Binds a call.
    pub fn bind(self, binding: &mut dyn Binding, arguments: Arguments<'_>) -> Result<Operand> {
        match self {
            ScalarEntry::Function(function) => function.bind(binding, arguments),
            ScalarEntry::Expression(expression) => {
                expression.arity.check(arguments.name, arguments.operands.len())?;
                (expression.rule)(binding, arguments)
            }
            ScalarEntry::Created(function) => function.bind(binding, arguments),
        }
    }
}

/// Every scalar function.
pub fn functions() -> impl Iterator<Item = &'static ScalarFunction> {
    SCALARS.iter().flat_map(|chapter| chapter.functions.iter().copied().flatten().copied())
}

/// Every function defined as an expression.
pub fn expressions() -> impl Iterator<Item = &'static Expression> {
    SCALARS.iter().flat_map(|chapter| chapter.expressions.iter().copied().flatten().copied())
}

/// Looks up a lower-case name.
pub fn scalar(name: &str) -> Option<ScalarEntry> {
    let function = functions().find(|function| function.names.contains(&name));
    let expression = || expressions().find(|expression| expression.names.contains(&name));
    function.map(ScalarEntry::Function).or_else(|| expression().map(ScalarEntry::Expression))
}

/// Every name of a scalar function.
pub fn scalar_names() -> impl Iterator<Item = &'static str> {
    let functions = functions().flat_map(|function| function.names);
    functions.chain(expressions().flat_map(|expression| expression.names)).copied()
}

/// All aggregates.
static AGGREGATES: &[&[&AggregateFunction]] = &[
    count::FUNCTIONS,
    sum::FUNCTIONS,
    extreme::FUNCTIONS,
    collected::FUNCTIONS,
    quantile::FUNCTIONS,
    moments::FUNCTIONS,
    json_aggregates::FUNCTIONS,
];

/// All aggregates defined as expressions.
static AGGREGATE_EXPRESSIONS: &[&[&AggregateExpression]] = &[
    count::EXPRESSIONS,
    average::EXPRESSIONS,
    extreme::EXPRESSIONS,
    collected::EXPRESSIONS,
    quantile::EXPRESSIONS,
];

/// All functions of grouping sets.
static GROUPINGS: &[&[&GroupingFunction]] = &[grouping::FUNCTIONS];

/// All window functions that are not aggregates.
static WINDOWS: &[&[&WindowFunction]] = &[ranking::FUNCTIONS, value::FUNCTIONS];

/// The definition of an aggregate.
#[derive(Clone)]
pub enum AggregateEntry {
    /// An aggregate.
    Function(&'static AggregateFunction),
    /// An expression over aggregates.
    Expression(&'static AggregateExpression),
    /// One that the application created.
    Created(Arc<CreatedAggregate>),
}

impl AggregateEntry {
    /// Binds a call.
    pub fn bind(
        self,
        binding: &mut dyn AggregateBinding,
        arguments: AggregateArguments<'_>,
    ) -> Result<Operand> {
        match self {
            AggregateEntry::Function(function) => (function.rule)(binding, arguments),
            AggregateEntry::Expression(expression) => (expression.rule)(binding, arguments),
            AggregateEntry::Created(function) => function.bind(binding, arguments),
        }
    }
}

/// Every aggregate.
pub fn aggregates() -> impl Iterator<Item = &'static AggregateFunction> {
    AGGREGATES.iter().copied().flatten().copied()
}

/// Every aggregate defined as an expression.
pub fn aggregate_expressions() -> impl Iterator<Item = &'static AggregateExpression> {
    AGGREGATE_EXPRESSIONS.iter().copied().flatten().copied()
}

/// Every function of grouping sets.
pub fn groupings() -> impl Iterator<Item = &'static GroupingFunction> {
    GROUPINGS.iter().copied().flatten().copied()
}

/// Every window function that is not an aggregate.
pub fn windows() -> impl Iterator<Item = &'static WindowFunction> {
    WINDOWS.iter().copied().flatten().copied()
}

/// Looks up a lower-case name among aggregates.
pub fn aggregate(name: &str) -> Option<AggregateEntry> {
    let function = aggregates().find(|function| function.names.contains(&name));
    let expression = || aggregate_expressions().find(|expression| expression.names.contains(&name));
    function.map(AggregateEntry::Function).or_else(|| expression().map(AggregateEntry::Expression))
}

/// Looks up a lower-case name among functions of grouping sets.
pub fn grouping(name: &str) -> Option<&'static GroupingFunction> {
    groupings().find(|function| function.names.contains(&name))
}

/// Looks up a lower-case name among window functions.
pub fn window(name: &str) -> Option<&'static WindowFunction> {
    windows().find(|function| function.names.contains(&name))
}

/// Every name of an aggregate or of a function of grouping sets.
pub fn aggregate_names() -> impl Iterator<Item = &'static str> {
    let functions = aggregates().flat_map(|function| function.names);
    let expressions = aggregate_expressions().flat_map(|expression| expression.names);
    let groupings = groupings().flat_map(|function| function.names);
    functions.chain(expressions).chain(groupings).copied()
}

/// Every name of a window function that is not an aggregate.
pub fn window_names() -> impl Iterator<Item = &'static str> {
    windows().flat_map(|function| function.names).copied()
}
