//! Minimum and maximum.

use super::rows::{counted, like, state, validity, wrong};
use crate::entry::aggregate::Accumulation::Parts;
use crate::entry::aggregate::{
    AggregateArguments, AggregateBinding, AggregateExpression, AggregateFunction, State, Types,
    aggregate,
};
use crate::entry::definition::Operand;
use crate::entry::doc::Doc;
use crate::kernel::order::packed_length;
use crate::vector::groups::Groups;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use crate::vector::view::{self, Texts, View};
use nacre_column::{BytesColumn, Values, Vector};
use nacre_types::{DataType, Error, Result, key::order_f64};
use std::ops::Range;
use std::sync::Arc;

/// The minimum.
pub static MIN: AggregateFunction = aggregate(
    &["min"],
    Doc::new(
        "min(x)",
        "The least value.",
        "min(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "1",
    ),
    |binding, arguments| extreme(&MIN, binding, arguments),
    Parts(|types| Ok(Box::new(Extremes::new(types, Wanted::Least)))),
)
.infallible();

/// The maximum.
pub static MAX: AggregateFunction = aggregate(
    &["max"],
    Doc::new(
        "max(x)",
        "The greatest value.",
        "max(x) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
        "4",
    ),
    |binding, arguments| extreme(&MAX, binding, arguments),
    Parts(|types| Ok(Box::new(Extremes::new(types, Wanted::Greatest)))),
)
.infallible();

/// The functions of this file.
pub static FUNCTIONS: &[&AggregateFunction] = &[&MIN, &MAX];

/// The aggregates of this file that are expressions.
pub static EXPRESSIONS: &[&AggregateExpression] = &[
    &AggregateExpression {
        names: &["bool_and", "every"],
        doc: Doc::new(
            "bool_and(test), every",
            "Whether the test is true for all rows.",
            "bool_and(x > 0) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "true",
        ),
        rule: |binding, arguments| truth(&MIN, binding, arguments),
    },
    &AggregateExpression {
        names: &["bool_or"],
        doc: Doc::new(
            "bool_or(test)",
            "Whether the test is true for some row.",
            "bool_or(x > 3) from (values (1, 'a'), (2, 'b'), (4, 'b'), (null, null)) as t(x, s)",
            "true",
        ),
        rule: |binding, arguments| truth(&MAX, binding, arguments),
    },
];

fn extreme(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_order()?;
    let [value] = arguments.take()?;
    let data_type = binding.data_type(&value);
    if data_type == DataType::Interval {
        return Err(Error::unsupported("MIN and MAX of INTERVAL is not supported"));
    }
    // `DISTINCT` changes nothing.
    arguments.distinct = false;
    Ok(binding.aggregate(function, arguments.with(vec![value]), data_type))
}

/// The smallest or largest truth value.
fn truth(
    function: &'static AggregateFunction,
    binding: &mut dyn AggregateBinding,
    mut arguments: AggregateArguments<'_>,
) -> Result<Operand> {
    arguments.refuse_intervals(binding)?;
    let name = arguments.name;
    let [test] = arguments.take()?;
    let test = binding.condition(test, name)?;
    arguments.distinct = false;
    let arguments = arguments.unordered().with(vec![test]);
    Ok(binding.aggregate(function, arguments, DataType::Boolean))
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Least,
    Greatest,
}

/// The best value of each group. Texts are stored separately, because they have no fixed width.
struct Extremes {
    wanted: Wanted,
    data_type: DataType,
    /// Empty for text.
    values: Values,
    /// Empty for other types.
    texts: Vec<Box<[u8]>>,
    /// Bytes of all texts.
    text_bytes: usize,
    /// Whether a group has a value.
    seen: Vec<bool>,
}

impl Extremes {
    fn new(types: &Types<'_>, wanted: Wanted) -> Extremes {
        let values = Values::empty(types.first().physical());
        Extremes {
            wanted,
            data_type: types.result,
            values,
            texts: Vec::new(),
            text_bytes: 0,
            seen: Vec::new(),
        }
    }

    /// The sort key of 128-bit values: the length for intervals.
    fn key(&self) -> fn(i128) -> i128 {
        if self.data_type == DataType::Interval { packed_length } else { |v| v }
    }

    /// Replaces the value of group `id` by a value of other states if that is better.
    fn offer(&mut self, other: &Extremes, at: usize, id: usize) {
        let key = self.key();
        let greatest = self.wanted == Wanted::Greatest;
        let first = !std::mem::replace(&mut self.seen[id], true);
        match (&mut self.values, &other.values) {
            (Values::Bool(own), Values::Bool(v)) => {
                if first || (v[at] != own[id] && (v[at] & !own[id]) == greatest) {
                    own[id] = v[at];
                }
            }
            (Values::I64(own), Values::I64(v)) => {
                if first || (v[at] != own[id] && (v[at] > own[id]) == greatest) {
                    own[id] = v[at];
                }
            }
            (Values::I128(own), Values::I128(v)) => {
                let (new, old) = (key(v[at]), key(own[id]));
                if first || (new != old && (new > old) == greatest) {
                    own[id] = v[at];
                }
            }
            (Values::F64(own), Values::F64(v)) => {
                let (new, old) = (order_f64(v[at]), order_f64(own[id]));
                if first || (new != old && (new > old) == greatest) {
                    own[id] = v[at];
                }
            }
            (Values::Bytes(_), Values::Bytes(_)) => {
                let (new, own) = (&other.texts[at], &mut self.texts[id]);
                if first || (new != own && (new > own) == greatest) {
                    self.text_bytes = self.text_bytes + new.len() - own.len();
                    *own = new.clone();
                }
            }
            // States of one aggregate hold values of one type.
            _ => debug_assert!(false, "states of different types are merged"),
        }
    }
}

impl State for Extremes {
    fn resize(&mut self, groups: usize) {
        self.seen.resize(groups, false);
        match &mut self.values {
            Values::Bool(v) => v.resize(groups, false),
            Values::I64(v) => v.resize(groups, 0),
            Values::I128(v) => v.resize(groups, 0),
            Values::F64(v) => v.resize(groups, 0.0),
            Values::Bytes(_) => self.texts.resize(groups, Box::default()),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.values.len() * 16 + self.texts.capacity() * 48 + self.text_bytes + self.seen.capacity()
    }

    fn update(
        &mut self,
        args: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        let mut selection = Vec::new();
        let Some((arg, rows)) = counted(args, rows, &mut selection) else { return Ok(()) };
        let mismatch = || wrong(arg.data_type());
        let key = self.key();
        let greatest = self.wanted == Wanted::Greatest;
        let seen = &mut self.seen;
        match &mut self.values {
            Values::I64(best) => {
                let v = view::i64s(arg).ok_or_else(mismatch)?;
                keep(rows, groups, best, seen, &v, |a, b| (a > b) == greatest && a != b);
            }
            Values::F64(best) => {
                let v = view::f64s(arg).ok_or_else(mismatch)?;
                keep(rows, groups, best, seen, &v, |a, b| {
                    let (a, b) = (order_f64(a), order_f64(b));
                    (a > b) == greatest && a != b
                });
            }
            Values::I128(best) => {
                let v = view::i128s(arg).ok_or_else(mismatch)?;
                keep(rows, groups, best, seen, &v, |a, b| {
                    let (a, b) = (key(a), key(b));
                    (a > b) == greatest && a != b
                });
            }
            Values::Bool(best) => {
                let v = view::bools(arg).ok_or_else(mismatch)?;
                keep(rows, groups, best, seen, &v, |a, b| (a & !b) == greatest && a != b);
            }
            Values::Bytes(_) => {
                let values = Texts::new(arg);
                for row in rows.iter() {
                    let (group, text) = (groups.of(row), values.bytes(row));
                    let best: &[u8] = &self.texts[group];
                    if !seen[group] || (text != best && (text > best) == greatest) {
                        self.text_bytes = self.text_bytes + text.len() - best.len();
                        self.texts[group] = text.into();
                        seen[group] = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn State, from: usize, ids: &[u32]) -> Result<()> {
        let other: &Extremes = like(other)?;
        for (at, id) in ids.iter().enumerate() {
            if state(&other.seen, from + at) {
                self.offer(other, from + at, *id as usize);
            }
        }
        Ok(())
    }

    fn finish(&self, groups: Range<usize>, mut room: Room) -> Result<Vector> {
        let values = match &self.values {
            Values::Bytes(_) => {
                let mut out = BytesColumn::default();
                for text in &self.texts[groups.clone()] {
                    room.take(text.len())?;
                    out.push(text);
                }
                Values::Bytes(out)
            }
            other => other.take(groups.start as u32..groups.end as u32),
        };
        Ok(Vector::new(self.data_type, values, validity(self.seen[groups].iter().copied())))
    }

    /// Among intervals of equal length the first is kept.
    fn is_order_free(&self) -> bool {
        self.data_type != DataType::Interval
    }
}

fn keep<T: Copy>(
    rows: ActiveRows<'_>,
    groups: Groups<'_>,
    best: &mut [T],
    seen: &mut [bool],
    values: &View<'_, T>,
    better: impl Fn(T, T) -> bool,
) {
    for row in rows.iter() {
        let (group, v) = (groups.of(row), values.get(row));
        if !seen[group] || better(v, best[group]) {
            best[group] = v;
            seen[group] = true;
        }
    }
}
