//! Row counts.

use super::rows::{like, not_null, state};
use crate::entry::aggregate::{
    Accumulation, AggregateArguments, AggregateBinding, AggregateExpression, AggregateFunction,
    OverNothing, State, never,
};
use crate::entry::definition::Arity;
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::vector::groups::Groups;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::kernel::count_by_group;
use nacre_column::{Values, Vector};
use nacre_types::{DataType, Result};
use std::ops::Range;
use std::sync::Arc;

const INT: DataType = DataType::Int64;

/// The number of rows; with an argument, of rows at which it is not null.
pub static COUNT: AggregateFunction = AggregateFunction {
    names: &["count"],
    doc: Doc::new(
        "count(*), count(x)",
        "Rows; with an argument, rows at which it is not null.",
        "count(*) - count(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1",
    ),
    rule: |binding, arguments| {
        arguments.refuse_order()?;
        match arguments.operands.len() {
            0 if arguments.distinct => Err(Arity::exactly(1).wrong(arguments.name, 0)),
            0 | 1 => {
                arguments.refuse_intervals(binding)?;
                Ok(binding.aggregate(&COUNT, arguments, INT))
            }
            count => Err(Arity::between(0, 1).wrong(arguments.name, count)),
        }
    },
    over_nothing: OverNothing::Zero,
    may_fail: never,
    accumulation: Accumulation::Parts(|_| Ok(Box::new(Counts(Vec::new())))),
};

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[&COUNT];

/// The aggregates of this file that are expressions.
pub static EXPRESSIONS: &[&AggregateExpression] = &[
    &AggregateExpression {
        names: &["count_if", "countif"],
        doc: Doc::new(
            "count_if(test), countif",
            "Rows for which the test is true.",
            "count_if(x > 1) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "2",
        ),
        rule: |binding, mut arguments| {
            let name = arguments.name;
            let [test] = arguments.take()?;
            arguments.refuse_distinct()?;
            let test = binding.condition(test, name)?;
            count_where(binding, arguments, vec![test])
        },
    },
    &AggregateExpression {
        names: &["approx_count_distinct"],
        doc: Doc::new(
            "approx_count_distinct(x)",
            "Distinct values; the count is exact.",
            "approx_count_distinct(s) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "2",
        ),
        rule: |binding, mut arguments| {
            arguments.distinct = true;
            arguments.refuse_intervals(binding)?;
            let [value] = arguments.take()?;
            let arguments = arguments.unordered().with(vec![value]);
            Ok(binding.aggregate(&COUNT, arguments, INT))
        },
    },
    &AggregateExpression {
        names: &["regr_count"],
        doc: Doc::new(
            "regr_count(y, x)",
            "Rows at which neither argument is null.",
            "regr_count(x, x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "3",
        ),
        rule: |binding, mut arguments| {
            let [y, x] = arguments.take()?;
            arguments.refuse_distinct()?;
            let present = vec![binding.null_test(y, true), binding.null_test(x, true)];
            count_where(binding, arguments, present)
        },
    },
];

fn count_where(
    binding: &mut dyn AggregateBinding,
    arguments: AggregateArguments<'_>,
    conditions: Vec<Operand>,
) -> Result<Operand> {
    let condition = binding.all_of(conditions);
    let arguments = arguments.unordered().only(binding, condition);
    Ok(binding.aggregate(&COUNT, arguments, INT))
}

/// One count per group.
struct Counts(Vec<i64>);

impl State for Counts {
    fn resize(&mut self, groups: usize) {
        self.0.resize(groups, 0);
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * 8
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let mut selection = Vec::new();
        let rows = args.first().map_or(rows, |arg| not_null(arg, rows, &mut selection));
        match groups {
            Groups::One => self.0[0] += rows.count() as i64,
            Groups::Each(groups) => match rows.selection {
                None => count_by_group(groups, &mut self.0),
                Some(selection) => {
                    selection.iter().for_each(|row| self.0[groups[*row as usize] as usize] += 1)
                }
            },
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn State, from: usize, ids: &[u32]) -> Result<()> {
        let other: &Counts = like(other)?;
        for (at, id) in ids.iter().enumerate() {
            self.0[*id as usize] += state(&other.0, from + at);
        }
        Ok(())
    }

    fn finish(&self, groups: Range<usize>, _: Room) -> Result<Vector> {
        Ok(Vector::new(INT, Values::I64(self.0[groups].to_vec()), None))
    }

    fn is_order_free(&self) -> bool {
        true
    }
}
