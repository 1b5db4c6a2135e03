//! A predicate on one column, as the set of values that pass it: disjoint, ascending ranges.
//!
//! Comparisons with a constant, `BETWEEN`, `IN`, and their conjunctions and negations all become
//! such a set, so encodings implement one kind of test instead of one per operator. No set contains
//! null. Numbers are inclusive ranges over `i128`: integers unchanged, booleans as 0 and 1, floats
//! by their rank in SQL's total order ([`key::order_f64`]: −0 equals 0, NaN is greatest). Text and
//! binary are intervals of byte strings.

use super::comparison::Comparison;
use super::pattern::Pattern;
use crate::Scalar;
use nacre_types::{PhysicalType, Value, invariant, key};

/// An inclusive range of numbers.
pub(crate) type Range = (i128, i128);

/// A range of byte strings: from `low` (inclusive) to `high` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    low: Vec<u8>,
    /// `None`: unbounded.
    high: Option<Vec<u8>>,
}

impl Interval {
    #[inline]
    fn contains(&self, value: &[u8]) -> bool {
        value >= &self.low[..] && self.high.as_ref().is_none_or(|high| value < &high[..])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Set {
    Numbers(Vec<Range>),
    Bytes(Vec<Interval>),
}

impl Set {
    /// Whether the ranges are non-empty, ascend without overlap, and lie in the domain.
    fn is_ordered(&self, domain: Range) -> bool {
        match self {
            Set::Numbers(ranges) => {
                ranges
                    .iter()
                    .all(|(low, high)| domain.0 <= *low && low <= high && *high <= domain.1)
                    && ranges.windows(2).all(|pair| pair[0].1 < pair[1].0)
            }
            Set::Bytes(intervals) => {
                let is_filled = |interval: &Interval| {
                    interval.high.as_ref().is_none_or(|high| interval.low < *high)
                };
                let ascends = |pair: &[Interval]| {
                    pair[0].high.as_ref().is_some_and(|high| *high <= pair[1].low)
                };
                intervals.iter().all(is_filled) && intervals.windows(2).all(ascends)
            }
        }
    }
}

/// The set of values that pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    physical: PhysicalType,
    set: Set,
}

/// The smallest and the largest number of a physical type.
pub(crate) fn domain(physical: PhysicalType) -> Range {
    match physical {
        PhysicalType::Bool => (0, 1),
        PhysicalType::I64 => (i64::MIN as i128, i64::MAX as i128),
        PhysicalType::F64 => (0, u64::MAX as i128),
        PhysicalType::I128 | PhysicalType::Bytes => (i128::MIN, i128::MAX),
    }
}

/// The number that represents a value in a column of a physical type.
fn number(physical: PhysicalType, value: &Value) -> Option<i128> {
    match (physical, value) {
        (PhysicalType::Bool, Value::Boolean(v)) => Some(*v as i128),
        (PhysicalType::F64, Value::Float(v)) => Some(key::order_f64(*v) as i128),
        (PhysicalType::I64 | PhysicalType::I128, v) => key::integer(v),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(v) | Value::Json(v) => Some(v.as_bytes()),
        Value::Binary(v) => Some(v),
        _ => None,
    }
}

/// The smallest byte string above `value`.
fn successor(value: &[u8]) -> Vec<u8> {
    [value, &[0]].concat()
}

impl Predicate {
    /// The values for which `column op constant` holds; none if the constant is null. `None` if the
    /// constant has another physical type. An integer may lie outside the column's type.
    pub fn compare(physical: PhysicalType, op: Comparison, constant: &Value) -> Option<Predicate> {
        if constant.is_null() {
            return Some(Predicate::nothing(physical));
        }
        let negated = |op| Predicate::compare(physical, op, constant).map(Predicate::not);
        let set = if physical == PhysicalType::Bytes {
            let c = bytes(constant)?;
            let interval = |low: Vec<u8>, high| Set::Bytes(vec![Interval { low, high }]);
            match op {
                Comparison::Equal => interval(c.to_vec(), Some(successor(c))),
                Comparison::GreaterOrEqual => interval(c.to_vec(), None),
                Comparison::Greater => interval(successor(c), None),
                Comparison::NotEqual => return negated(Comparison::Equal),
                Comparison::Less => return negated(Comparison::GreaterOrEqual),
                Comparison::LessOrEqual => return negated(Comparison::Greater),
            }
        } else {
            let (min, max) = domain(physical);
            let c = number(physical, constant)?;
            let range = |low: i128, high: i128| {
                let range = (low.max(min), high.min(max));
                Set::Numbers(if range.0 <= range.1 { vec![range] } else { Vec::new() })
            };
            match op {
                Comparison::Equal => range(c, c),
                Comparison::GreaterOrEqual => range(c, max),
                Comparison::LessOrEqual => range(min, c),
                Comparison::NotEqual => return negated(Comparison::Equal),
                Comparison::Less => return negated(Comparison::GreaterOrEqual),
                Comparison::Greater => return negated(Comparison::LessOrEqual),
            }
        };
        Some(Predicate::of(physical, set))
    }

    /// The values for which `column IN (constants)` holds; null constants match nothing.
    pub fn any_of<'a>(
        physical: PhysicalType,
        constants: impl IntoIterator<Item = &'a Value>,
    ) -> Option<Predicate> {
        let mut set = Predicate::nothing(physical).set;
        for constant in constants {
            match (Predicate::compare(physical, Comparison::Equal, constant)?.set, &mut set) {
                (Set::Numbers(more), Set::Numbers(all)) => all.extend(more),
                (Set::Bytes(more), Set::Bytes(all)) => all.extend(more),
                _ => return None,
            }
        }
        match &mut set {
            Set::Numbers(all) => {
                all.sort_unstable();
                // Merges overlapping and adjacent ranges.
                all.dedup_by(|next, kept| {
                    let joins = kept.1.checked_add(1).is_none_or(|end| next.0 <= end);
                    if joins {
                        kept.1 = kept.1.max(next.1);
                    }
                    joins
                });
            }
            Set::Bytes(all) => {
                all.sort_unstable_by(|a, b| a.low.cmp(&b.low));
                all.dedup();
            }
        }
        Some(Predicate::of(physical, set))
    }

    /// The values that begin with these bytes.
    pub fn starts_with(prefix: &[u8]) -> Predicate {
        // The least byte string after all of them: the last byte below 255 plus one.
        let kept = prefix.iter().rposition(|byte| *byte < u8::MAX);
        let high = kept.map(|last| {
            let mut high = prefix[..=last].to_vec();
            high[last] += 1;
            high
        });
        let interval = Interval { low: prefix.to_vec(), high };
        Predicate::of(PhysicalType::Bytes, Set::Bytes(vec![interval]))
    }

    /// A predicate that no value passes.
    pub fn nothing(physical: PhysicalType) -> Predicate {
        let set = if physical == PhysicalType::Bytes {
            Set::Bytes(Vec::new())
        } else {
            Set::Numbers(Vec::new())
        };
        Predicate::of(physical, set)
    }

    /// Creates a predicate from a set, which must be ordered.
    fn of(physical: PhysicalType, set: Set) -> Predicate {
        debug_assert!(set.is_ordered(domain(physical)), "ranges overlap or descend: {set:?}");
        debug_assert_eq!(
            matches!(set, Set::Bytes(_)),
            physical == PhysicalType::Bytes,
            "a set of another kind than {physical:?}"
        );
        Predicate { physical, set }
    }

    /// The complement: the values that do not pass this one. Null passes neither.
    #[expect(
        clippy::should_implement_trait,
        reason = "a set's complement, not an operator on predicates"
    )]
    pub fn not(self) -> Predicate {
        let set = match self.set {
            Set::Numbers(ranges) => {
                let (min, max) = domain(self.physical);
                let mut out = Vec::with_capacity(ranges.len() + 1);
                // Start of the next gap; `None` once the end of the domain is covered.
                let mut next = Some(min);
                for (low, high) in ranges {
                    if let Some(from) = next.filter(|from| *from < low) {
                        out.push((from, low - 1));
                    }
                    next = high.checked_add(1);
                }
                if let Some(from) = next.filter(|from| *from <= max) {
                    out.push((from, max));
                }
                Set::Numbers(out)
            }
            Set::Bytes(intervals) => {
                let mut out = Vec::with_capacity(intervals.len() + 1);
                let mut next = Some(Vec::new());
                for interval in intervals {
                    if let Some(low) = next.filter(|low| *low < interval.low) {
                        out.push(Interval { low, high: Some(interval.low) });
                    }
                    next = interval.high;
                }
                out.extend(next.map(|low| Interval { low, high: None }));
                Set::Bytes(out)
            }
        };
        Predicate::of(self.physical, set)
    }

    /// The conjunction: the values that pass both predicates, which must have the same physical
    /// type.
    pub fn and(self, other: &Predicate) -> Predicate {
        let (one, two) = (self.physical, other.physical);
        invariant!(one == two, "a filter on {one:?} and on {two:?}");
        let set = match (&self.set, &other.set) {
            (Set::Numbers(a), Set::Numbers(b)) => Set::Numbers(overlaps(
                a,
                b,
                |a, b| (a.0.max(b.0), a.1.min(b.1)),
                |r| r.0 <= r.1,
                |a, b| a.1 <= b.1,
            )),
            (Set::Bytes(a), Set::Bytes(b)) => Set::Bytes(overlaps(
                a,
                b,
                |a, b| {
                    let low = a.low.clone().max(b.low.clone());
                    let high = if ends_first(&a.high, &b.high) { &a.high } else { &b.high };
                    Interval { low, high: high.clone() }
                },
                |both| both.high.as_ref().is_none_or(|high| both.low < *high),
                |a, b| ends_first(&a.high, &b.high),
            )),
            _ => return Predicate::nothing(self.physical),
        };
        Predicate::of(self.physical, set)
    }

    /// The disjunction: the values that pass either predicate; both have the same physical type.
    pub fn or(self, other: &Predicate) -> Predicate {
        self.not().and(&other.clone().not()).not()
    }

    /// Whether every value passes.
    pub fn is_everything(&self) -> bool {
        match &self.set {
            Set::Numbers(ranges) => ranges[..] == [domain(self.physical)],
            Set::Bytes(intervals) => {
                matches!(&intervals[..], [all] if all.low.is_empty() && all.high.is_none())
            }
        }
    }

    /// Whether no value can pass.
    pub fn is_nothing(&self) -> bool {
        match &self.set {
            Set::Numbers(ranges) => ranges.is_empty(),
            Set::Bytes(intervals) => intervals.is_empty(),
        }
    }

    /// Those 64-bit integers that, as doubles, pass a predicate of doubles.
    pub fn of_integers(&self) -> Predicate {
        debug_assert_eq!(self.physical, PhysicalType::F64, "a predicate of doubles");
        let (min, max) = domain(PhysicalType::I64);
        // The first integer whose rank as a double is not below a rank; one after the last without.
        let first = |rank: i128| {
            let (mut low, mut high) = (min, max + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                match (key::order_f64(middle as f64) as i128) < rank {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            low
        };
        let ranges = self.numbers().iter().map(|(low, high)| (first(*low), first(high + 1) - 1));
        let ranges = ranges.filter(|(low, high)| low <= high).collect();
        Predicate::of(PhysicalType::I64, Set::Numbers(ranges))
    }

    /// The physical type of its column.
    pub fn physical(&self) -> PhysicalType {
        self.physical
    }

    /// The ranges of numbers that pass; none for text.
    pub(crate) fn numbers(&self) -> &[Range] {
        match &self.set {
            Set::Numbers(ranges) => ranges,
            Set::Bytes(_) => &[],
        }
    }

    /// The positions that pass among `count` ascending values, as ranges. `number_below` and
    /// `bytes_below` return whether the value at a position is below a bound.
    pub(crate) fn positions(
        &self,
        count: usize,
        number_below: impl Fn(usize, i128) -> bool,
        bytes_below: impl Fn(usize, &[u8]) -> bool,
    ) -> Vec<Range> {
        let first = |below: &dyn Fn(usize) -> bool| {
            let (mut low, mut high) = (0, count);
            while low < high {
                let middle = low.midpoint(high);
                if below(middle) { low = middle + 1 } else { high = middle }
            }
            low
        };
        let mut out: Vec<Range> = Vec::new();
        let mut put = |start: usize, end: usize| {
            if start < end {
                match out.last_mut().filter(|last| last.1 + 1 == start as i128) {
                    Some(last) => last.1 = end as i128 - 1,
                    None => out.push((start as i128, end as i128 - 1)),
                }
            }
        };
        match &self.set {
            Set::Numbers(ranges) => ranges.iter().for_each(|(low, high)| {
                let end =
                    high.checked_add(1).map_or(count, |past| first(&|at| number_below(at, past)));
                put(first(&|at| number_below(at, *low)), end);
            }),
            Set::Bytes(intervals) => intervals.iter().for_each(|interval| {
                let end =
                    interval.high.as_ref().map_or(count, |high| first(&|at| bytes_below(at, high)));
                put(first(&|at| bytes_below(at, &interval.low)), end);
            }),
        }
        debug_assert!(
            out.last().is_none_or(|last| last.1 < count as i128)
                && out.windows(2).all(|pair| pair[0].1 < pair[1].0),
            "positions {out:?} of {count} values"
        );
        out
    }

    /// Whether a number passes.
    #[inline]
    pub(crate) fn accepts_number(&self, value: i128) -> bool {
        debug_assert!(self.physical != PhysicalType::Bytes, "a number for a filter on text");
        debug_assert!(
            (domain(self.physical).0..=domain(self.physical).1).contains(&value),
            "{value} for a filter on {:?}",
            self.physical
        );
        let ranges = self.numbers();
        let at = ranges.partition_point(|range| range.1 < value);
        ranges.get(at).is_some_and(|range| range.0 <= value)
    }

    /// Whether text or binary passes.
    #[inline]
    pub(crate) fn accepts_bytes(&self, value: &[u8]) -> bool {
        debug_assert!(self.physical == PhysicalType::Bytes, "text for a filter on numbers");
        match &self.set {
            Set::Bytes(intervals) => match &intervals[..] {
                [only] => only.contains(value),
                all => {
                    let at = all.partition_point(|interval| &interval.low[..] <= value);
                    all[..at].last().is_some_and(|interval| interval.contains(value))
                }
            },
            Set::Numbers(_) => false,
        }
    }

    /// The texts that pass, for encodings that read them piece by piece; `None` for numbers, and if
    /// constants are long.
    pub(crate) fn pattern(&self) -> Option<Pattern> {
        let Set::Bytes(intervals) = &self.set else { return None };
        let bounds = intervals.iter().flat_map(|interval| {
            [Some(&interval.low), interval.high.as_ref()].into_iter().flatten()
        });
        Pattern::between(bounds.map(Vec::as_slice), |text| self.accepts_bytes(text))
    }

    /// Whether one value passes.
    pub fn accepts(&self, value: &Scalar<'_>) -> bool {
        debug_assert!(value.is_of(self.physical), "{value:?} for a filter on {:?}", self.physical);
        match value {
            Scalar::Null => false,
            Scalar::Bool(v) => self.accepts_number(*v as i128),
            Scalar::I64(v) => self.accepts_number(*v as i128),
            Scalar::I128(v) => self.accepts_number(*v),
            Scalar::F64(v) => self.accepts_number(key::order_f64(*v) as i128),
            Scalar::Bytes(v) => self.accepts_bytes(v),
        }
    }
}

/// Whether the upper end `a` is not above the upper end `b`.
fn ends_first(a: &Option<Vec<u8>>, b: &Option<Vec<u8>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a <= b,
        (a, _) => a.is_some(),
    }
}

/// The intersection of two ascending lists of ranges.
fn overlaps<T>(
    a: &[T],
    b: &[T],
    both: impl Fn(&T, &T) -> T,
    there: impl Fn(&T) -> bool,
    ends_first: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(left), Some(right)) = (a.get(i), b.get(j)) {
        out.extend(Some(both(left, right)).filter(&there));
        if ends_first(left, right) { i += 1 } else { j += 1 }
    }
    out
}
