//! Sums and averages: exact for integers and decimals, in floating point for doubles.

use super::rows::{counted, like, state, validity, wrong};
use crate::decimal_type::{decimal, decimal_shape};
use crate::entry::aggregate::{
    Accumulation, AggregateArguments, AggregateBinding, AggregateFunction, OverNothing, State,
    Types,
};
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::kernel::decimals;
use crate::vector::groups::Groups;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use crate::vector::view::{self, View, Wide};
use nacre_column::kernel::{sum_by_group, sum_floats};
use nacre_column::{Values, Vector};
use nacre_types::{DataType, Error, PhysicalType, Result, decimal as exact};
use std::ops::Range;
use std::sync::Arc;

/// The sum.
pub static SUM: AggregateFunction = AggregateFunction {
    names: &["sum"],
    doc: Doc::new(
        "sum(x)",
        "The sum.",
        "sum(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "7",
    ),
    rule: |binding, arguments| total(&SUM, 0, binding, arguments),
    over_nothing: OverNothing::Null,
    may_fail,
    accumulation: Accumulation::Parts(|types| states(types, Total::Sum)),
};

/// The average.
pub static AVG: AggregateFunction = AggregateFunction {
    names: &["avg", "mean"],
    doc: Doc::new(
        "avg(x), mean",
        "The average.",
        "avg(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "2.333333",
    ),
    rule: |binding, arguments| total(&AVG, 6, binding, arguments),
    over_nothing: OverNothing::Null,
    may_fail,
    accumulation: Accumulation::Parts(|types| states(types, Total::Average)),
};

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[&SUM, &AVG];

/// The sum of integers and decimals is `DECIMAL(38,s)`; an average has a larger scale.
fn total(
    function: &'static AggregateFunction,
    more_digits: u32,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_order()?;
    let [value] = arguments.take()?;
    let (value, data_type) = match binding.data_type(&value) {
        DataType::Null => (binding.cast(value, DataType::Float64)?, DataType::Float64),
        t => match decimal_shape(t) {
            Some((_, scale)) => (value, decimal(38, (scale as u32 + more_digits).min(38))),
            None if t.is_float() => (value, DataType::Float64),
            None => {
                let message = format!("no aggregate {} for {t}", arguments.name);
                return Err(Error::type_error(message).with_sqlstate("42883"));
            }
        },
    };
    Ok(binding.aggregate(function, arguments.with(vec![value]), data_type))
}

/// Sums of integers, and of decimals of up to 28 digits, cannot overflow with any possible number
/// of rows.
fn may_fail(arguments: &[DataType]) -> bool {
    match arguments.first() {
        Some(DataType::Decimal { precision, .. }) => *precision > 28,
        Some(other) => !other.is_integer(),
        None => true,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Total {
    Sum,
    Average,
}

fn states(types: &Types<'_>, total: Total) -> Result<Box<dyn State>> {
    let (argument, result) = (types.first(), types.result);
    if argument.is_float() {
        return Ok(Box::new(FloatSums { total, sums: Sums::default() }));
    }
    if argument.is_numeric() || argument == DataType::Null {
        return Ok(Box::new(ExactSums { total, argument, result, sums: Sums::default() }));
    }
    Err(Error::type_error(format!("no SUM or AVG of {argument}")).with_sqlstate("42883"))
}

/// The sum and the number of values of each group.
#[derive(Default)]
struct Sums<T> {
    sums: Vec<T>,
    counts: Vec<u64>,
}

impl<T: Copy + Default> Sums<T> {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, T::default());
        self.counts.resize(groups, 0);
    }

    fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<T>() + self.counts.capacity() * 8
    }

    /// Adds groups `from..` of other sums to the groups `ids` of these.
    fn merge(
        &mut self,
        other: &Sums<T>,
        from: usize,
        ids: &[u32],
        add: impl Fn(T, T) -> Option<T>,
    ) -> Result<()> {
        for (at, id) in ids.iter().enumerate() {
            let sum = &mut self.sums[*id as usize];
            *sum = add(*sum, state(&other.sums, from + at)).ok_or_else(too_large)?;
            self.counts[*id as usize] += state(&other.counts, from + at);
        }
        Ok(())
    }
}

/// Sums of integers and decimals.
struct ExactSums {
    total: Total,
    argument: DataType,
    result: DataType,
    sums: Sums<i128>,
}

impl State for ExactSums {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups);
    }

    fn memory_bytes(&self) -> usize {
        self.sums.memory_bytes()
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let mut selection = Vec::new();
        let Some((arg, rows)) = counted(args, rows, &mut selection) else { return Ok(()) };
        let values = view::wide(arg).ok_or_else(|| wrong(arg.data_type()))?;
        add_exact(&values, rows, groups, &mut self.sums)
    }

    fn merge(&mut self, other: &dyn State, from: usize, ids: &[u32]) -> Result<()> {
        let other: &ExactSums = like(other)?;
        self.sums.merge(&other.sums, from, ids, i128::checked_add)
    }

    fn finish(&self, groups: Range<usize>, room: Room) -> Result<Vector> {
        self.finish_as(self, groups, room)
    }

    fn has_sums_of(&self, other: &dyn State) -> bool {
        like(other).is_ok_and(|other: &ExactSums| other.argument == self.argument)
    }

    fn finish_as(&self, other: &dyn State, groups: Range<usize>, _: Room) -> Result<Vector> {
        let ExactSums { total, argument, result, .. } = like(other)?;
        let (from, to) = (argument.scale(), result.scale());
        let counts = &self.sums.counts[groups.clone()];
        let mut out = Vec::with_capacity(groups.len());
        for (sum, count) in self.sums.sums[groups].iter().zip(counts) {
            let (value, name) = match total {
                _ if *count == 0 => (Some(0), ""),
                Total::Average => {
                    (decimals::divide(*sum, *count as i128, to as i32 - from as i32), "AVG")
                }
                Total::Sum => (exact::rescale(*sum, from, to), "SUM"),
            };
            out.push(decimals::fit(value, *result).map_err(|error| error.context(name))?);
        }
        let values = match result.physical() {
            PhysicalType::I64 => Values::I64(out.iter().map(|v| *v as i64).collect()),
            PhysicalType::F64 => Values::F64(out.iter().map(|v| exact::to_f64(*v, from)).collect()),
            _ => Values::I128(out),
        };
        Ok(Vector::new(*result, values, validity(counts.iter().map(|count| *count > 0))))
    }

    fn is_order_free(&self) -> bool {
        true
    }
}

/// Sums of doubles.
struct FloatSums {
    total: Total,
    sums: Sums<f64>,
}

impl State for FloatSums {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups);
    }

    fn memory_bytes(&self) -> usize {
        self.sums.memory_bytes()
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let mut selection = Vec::new();
        let Some((arg, rows)) = counted(args, rows, &mut selection) else { return Ok(()) };
        let values = view::f64s(arg).ok_or_else(|| wrong(arg.data_type()))?;
        if let (View::Rows(values), None) = (&values, rows.selection) {
            let Sums { sums, counts } = &mut self.sums;
            let fits = match groups {
                Groups::One => {
                    counts[0] += values.len() as u64;
                    sum_floats(values, &mut sums[0])
                }
                Groups::Each(ids) => sum_by_group(ids, values, sums, counts),
            };
            return if fits { Ok(()) } else { Err(too_large()) };
        }
        for row in rows.iter() {
            let group = groups.of(row);
            let sum = &mut self.sums.sums[group];
            *sum = add_floats(*sum, values.get(row)).ok_or_else(too_large)?;
            self.sums.counts[group] += 1;
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn State, from: usize, ids: &[u32]) -> Result<()> {
        let other: &FloatSums = like(other)?;
        self.sums.merge(&other.sums, from, ids, add_floats)
    }

    fn finish(&self, groups: Range<usize>, room: Room) -> Result<Vector> {
        self.finish_as(self, groups, room)
    }

    fn has_sums_of(&self, other: &dyn State) -> bool {
        like::<FloatSums>(other).is_ok()
    }

    fn finish_as(&self, other: &dyn State, groups: Range<usize>, _: Room) -> Result<Vector> {
        let FloatSums { total, .. } = like(other)?;
        let counts = &self.sums.counts[groups.clone()];
        let out = self.sums.sums[groups].iter().zip(counts).map(|(sum, count)| match total {
            Total::Average if *count > 0 => sum / *count as f64,
            _ => *sum,
        });
        let valid = validity(counts.iter().map(|count| *count > 0));
        Ok(Vector::new(DataType::Float64, Values::F64(out.collect()), valid))
    }

    /// Every addition rounds.
    fn is_order_free(&self) -> bool {
        false
    }
}

#[cold]
fn too_large() -> Error {
    Error::out_of_range("SUM or AVG out of range")
}

/// The sum of two numbers; `None` if it is infinite and neither of them is.
#[inline]
fn add_floats(a: f64, b: f64) -> Option<f64> {
    let sum = a + b;
    (!sum.is_infinite() || a.is_infinite() || b.is_infinite()).then_some(sum)
}

fn add_exact(
    values: &Wide<'_>,
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
    into: &mut Sums<i128>,
) -> Result<()> {
    let Sums { sums, counts } = &mut *into;
    if let Groups::One = groups {
        counts[0] += rows.count() as u64;
        let sum = match (values, rows.selection) {
            (Wide::Narrow(View::Rows(v)), None) => sum_block(v),
            (Wide::Narrow(v), _) => rows.iter().map(|row| v.get(row) as i128).sum(),
            (Wide::Full(v), _) => {
                let mut sum = 0i128;
                for row in rows.iter() {
                    sum = sum.checked_add(v.get(row)).ok_or_else(too_large)?;
                }
                sum
            }
        };
        sums[0] = sums[0].checked_add(sum).ok_or_else(too_large)?;
        return Ok(());
    }
    let Groups::Each(ids) = groups else { return Ok(()) };
    let fits = match values {
        Wide::Narrow(View::Rows(v)) if sums.len() <= FEW && sum_fits(v) => {
            add_few(v, rows, ids, into, |sum, v| (sum.wrapping_add(v), false))
        }
        Wide::Full(View::Rows(v)) if sums.len() <= FEW => {
            add_few(v, rows, ids, into, i128::overflowing_add)
        }
        Wide::Narrow(View::Rows(v)) => {
            add_to_each(rows, ids, into, |row| v.get(row).map_or(0, |v| *v as i128))
        }
        _ => add_to_each(rows, ids, into, |row| values.get(row)),
    };
    if fits { Ok(()) } else { Err(too_large()) }
}

/// Adds the value of each row to the sum of its group; returns whether all sums fit.
fn add_to_each(
    rows: ActiveRows<'_>,
    ids: &[u32],
    into: &mut Sums<i128>,
    value: impl Fn(usize) -> i128,
) -> bool {
    let Sums { sums, counts } = into;
    let mut overflowed = false;
    let mut add = |row: usize| {
        let group = ids[row] as usize;
        counts[group] += 1;
        let overflows;
        (sums[group], overflows) = sums[group].overflowing_add(value(row));
        overflowed |= overflows;
    };
    match rows.selection {
        None => (0..rows.len).for_each(add),
        Some(rows) => rows.iter().for_each(|row| add(*row as usize)),
    }
    !overflowed
}

/// Up to this many groups have sums of their own for each of four rows in turn, because an addition to
/// the same place has to wait for the one before it.
const FEW: usize = 16;

/// Whether any sum of these values fits in 64 bits.
fn sum_fits(values: &[i64]) -> bool {
    let count_bits = usize::BITS - values.len().leading_zeros();
    view::magnitude_bits(values) + count_bits < i64::BITS
}

/// [`add_to_each`] of few groups. `plus` adds a value to a sum, and says whether that overflows.
fn add_few<T: Copy + Default + Into<i128>>(
    values: &[T],
    rows: ActiveRows<'_>,
    ids: &[u32],
    into: &mut Sums<i128>,
    plus: impl Fn(T, T) -> (T, bool),
) -> bool {
    const TURNS: usize = 4;
    debug_assert!(into.sums.len() <= FEW, "{} groups", into.sums.len());
    let mut sums = [[T::default(); FEW]; TURNS];
    let mut counts = [[0u32; FEW]; TURNS];
    let mut overflowed = false;
    let mut add = |turn: usize, row: usize| {
        let group = ids[row] as usize % FEW;
        let overflows;
        (sums[turn][group], overflows) = plus(sums[turn][group], values[row]);
        overflowed |= overflows;
        counts[turn][group] += 1;
    };
    match rows.selection {
        None => (0..rows.len).for_each(|row| add(row % TURNS, row)),
        Some(rows) => {
            rows.iter().enumerate().for_each(|(at, row)| add(at % TURNS, *row as usize));
        }
    }
    for (own_sums, own_counts) in sums.iter().zip(&counts) {
        for (sum, more) in into.sums.iter_mut().zip(own_sums) {
            let overflows;
            (*sum, overflows) = sum.overflowing_add((*more).into());
            overflowed |= overflows;
        }
        into.counts.iter_mut().zip(own_counts).for_each(|(count, more)| *count += *more as u64);
    }
    !overflowed
}

/// The sum of at most 2^31 values: the high and low halves are summed separately in 64 bits, which
/// vectorises.
fn sum_block(values: &[i64]) -> i128 {
    let (mut low, mut high) = (0u64, 0i64);
    for v in values {
        low += (*v as u64) & 0xffff_ffff;
        high += *v >> 32;
    }
    ((high as i128) << 32) + low as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    const ROWS: usize = 1000;

    fn sums(groups: usize) -> Sums<i128> {
        let mut sums = Sums::default();
        sums.resize(groups);
        sums
    }

    /// Few groups and many, of dense and of selected rows, of both widths.
    #[test]
    fn sums_by_group_are_those_of_every_row() {
        let narrow: Vec<i64> = (0..ROWS as i64).map(|v| v.wrapping_mul(i64::MAX / 7) - v).collect();
        let full: Vec<i128> = narrow.iter().map(|v| *v as i128).collect();
        let odd: Vec<u32> = (0..ROWS as u32).filter(|row| row % 2 == 1).collect();
        for groups in [1, FEW, FEW + 1, 300] {
            let ids: Vec<u32> = (0..ROWS).map(|row| (row * 31 % groups) as u32).collect();
            for selection in [None, Some(&odd[..])] {
                let rows = ActiveRows { len: ROWS, selection };
                let mut expected = sums(groups);
                for row in rows.iter() {
                    expected.sums[ids[row] as usize] += full[row];
                    expected.counts[ids[row] as usize] += 1;
                }
                for values in [
                    Wide::Narrow(View::Rows(Cow::Borrowed(&narrow[..]))),
                    Wide::Full(View::Rows(Cow::Borrowed(&full[..]))),
                ] {
                    let mut found = sums(groups);
                    add_exact(&values, rows, Groups::Each(&ids), &mut found).unwrap();
                    assert_eq!(found.sums, expected.sums, "{groups} groups");
                    assert_eq!(found.counts, expected.counts, "{groups} groups");
                }
            }
        }
    }

    #[test]
    fn sums_that_do_not_fit_are_errors() {
        let (rows, ids) = (ActiveRows::all(2), [0, 1]);
        for (groups, value) in [(2, i64::MAX), (FEW + 1, i64::MAX), (2, i64::MIN)] {
            let mut found = sums(groups);
            found.sums[1] = if value > 0 { i128::MAX } else { i128::MIN };
            let values = Wide::Narrow(View::Rows(Cow::Owned(vec![value; 2])));
            let error = add_exact(&values, rows, Groups::Each(&ids), &mut found).unwrap_err();
            assert_eq!(error.sqlstate(), "22003");
        }
    }
}
