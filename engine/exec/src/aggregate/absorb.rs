//! Joining what several threads accumulated for the same groups.

use super::accumulate::Accumulator;
use nacre_column::Values;
use nacre_sql::expr::{Aggregate, AggregateFunction};
use nacre_types::{Error, Result};

/// Whether parts of an aggregate can be accumulated apart and joined afterwards. Distinct values cannot: each
/// part would have counted its own.
pub(crate) fn may_absorb(aggregate: &Aggregate) -> bool {
    use AggregateFunction::{Avg, Count, CountStar, Max, Min, Sum};
    !aggregate.distinct && matches!(aggregate.function, Count | CountStar | Sum | Avg | Min | Max)
}

impl Accumulator {
    /// Joins the groups of another one, from `from` on, to the groups `ids` here. Room was made for them.
    pub fn absorb(&mut self, other: &Accumulator, from: usize, ids: &[u32]) -> Result<()> {
        let pairs = || ids.iter().enumerate().map(|(at, id)| (from + at, *id as usize));
        match (self, other) {
            (Accumulator::Count(own), Accumulator::Count(theirs)) => {
                pairs().for_each(|(at, id)| own[id] += value(theirs, at));
            }
            (
                Accumulator::Exact { sums, counts },
                Accumulator::Exact { sums: their_sums, counts: their_counts },
            ) => {
                for (at, id) in pairs() {
                    let sum = sums[id].checked_add(value(their_sums, at));
                    sums[id] = sum.ok_or_else(|| Error::out_of_range("SUM out of range"))?;
                    counts[id] += value(their_counts, at);
                }
            }
            (
                Accumulator::Float { sums, counts },
                Accumulator::Float { sums: their_sums, counts: their_counts },
            ) => {
                for (at, id) in pairs() {
                    sums[id] += value(their_sums, at);
                    counts[id] += value(their_counts, at);
                }
            }
            (
                own @ Accumulator::Extreme { .. },
                Accumulator::Extreme { values, texts, seen, .. },
            ) => {
                for (at, id) in pairs().filter(|(at, _)| value(seen, *at)) {
                    own.offer(values, texts, at, id);
                }
            }
            // Both are made for the same aggregate.
            _ => {}
        }
        Ok(())
    }

    /// Keeps a value of another accumulator for group `id` if it is better.
    fn offer(&mut self, their_values: &Values, their_texts: &[Box<[u8]>], at: usize, id: usize) {
        use crate::expr::packed_length;
        use nacre_types::key::order_f64;
        let Accumulator::Extreme { largest, interval, values, texts, text_bytes, seen } = self
        else {
            return;
        };
        let (first, largest) = (!std::mem::replace(&mut seen[id], true), *largest);
        let order = |v: i128| if *interval { packed_length(v) } else { v };
        match (values, their_values) {
            (Values::Bool(own), Values::Bool(v))
                if first || (v[at] != own[id] && (v[at] & !own[id]) == largest) =>
            {
                own[id] = v[at];
            }
            (Values::I64(own), Values::I64(v))
                if first || (v[at] != own[id] && (v[at] > own[id]) == largest) =>
            {
                own[id] = v[at];
            }
            (Values::I128(own), Values::I128(v))
                if first
                    || (order(v[at]) != order(own[id])
                        && (order(v[at]) > order(own[id])) == largest) =>
            {
                own[id] = v[at];
            }
            (Values::F64(own), Values::F64(v)) => {
                let (new, old) = (order_f64(v[at]), order_f64(own[id]));
                if first || (new != old && (new > old) == largest) {
                    own[id] = v[at];
                }
            }
            (Values::Bytes(_), Values::Bytes(_)) => {
                let (new, own) = (&their_texts[at], &mut texts[id]);
                if first || (new != own && (new > own) == largest) {
                    *text_bytes = *text_bytes + new.len() - own.len();
                    *own = new.clone();
                }
            }
            _ => {}
        }
    }
}

/// A group no row came for may have no room yet.
fn value<T: Copy + Default>(values: &[T], at: usize) -> T {
    values.get(at).copied().unwrap_or_default()
}
