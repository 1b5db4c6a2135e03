//! The range of the columns that order a table in which the rows that pass the filters are.

use super::clauses::same_family;
use super::prune::Prune;
use nacre_operator::expr::compare_values;
use nacre_sql::expr::BinaryOp;
use nacre_table::KeyRange;
use nacre_types::{TableSchema, Value};
use std::ops::Bound;

/// What conditions say about one column.
#[derive(Default)]
struct Limits {
    low: Option<(Value, bool)>,
    high: Option<(Value, bool)>,
}

/// The range of the table's columns `order` that the conditions allow; `None` if they allow all. The
/// conditions are on output columns, of which `projection` has the positions in the table.
pub(in crate::scan) fn order_range(
    schema: &TableSchema,
    projection: &[usize],
    order: &[usize],
    prune: &Prune,
) -> Option<KeyRange> {
    let mut prefix = Vec::new();
    for position in order {
        let mut limits = Limits::default();
        limits.add(schema, projection, *position, prune);
        match limits.fixed() {
            Some(value) => prefix.push(value),
            None => {
                let bound = |limit: Option<(Value, bool)>| match limit {
                    Some((value, true)) => Bound::Included(value),
                    Some((value, false)) => Bound::Excluded(value),
                    None => Bound::Unbounded,
                };
                let is_open = prefix.is_empty() && limits.low.is_none() && limits.high.is_none();
                let (low, high) = (bound(limits.low), bound(limits.high));
                return (!is_open).then_some(KeyRange { prefix, low, high });
            }
        }
    }
    (!prefix.is_empty()).then(|| KeyRange::equal(prefix))
}

impl Limits {
    /// Adds what conditions say about the column at a position of the table. Alternatives and
    /// values that the column cannot hold say nothing.
    fn add(&mut self, schema: &TableSchema, projection: &[usize], position: usize, prune: &Prune) {
        let is_it = |column: &usize| projection.get(*column) == Some(&position);
        let fits = |value: &Value| {
            let column = &schema.columns[position];
            same_family(column.data_type, value) && column.check(value).is_ok()
        };
        match prune {
            Prune::All(list) => {
                list.iter().for_each(|prune| self.add(schema, projection, position, prune));
            }
            Prune::Compare { column, op, value } if is_it(column) && fits(value) => match op {
                BinaryOp::Equal => {
                    self.raise(value, true);
                    self.lower(value, true);
                }
                BinaryOp::Greater => self.raise(value, false),
                BinaryOp::GreaterOrEqual => self.raise(value, true),
                BinaryOp::Less => self.lower(value, false),
                BinaryOp::LessOrEqual => self.lower(value, true),
                _ => {}
            },
            Prune::In { column, values } if is_it(column) && values.iter().all(fits) => {
                let by_value = |a: &&Value, b: &&Value| compare_values(a, b);
                values.iter().min_by(by_value).into_iter().for_each(|v| self.raise(v, true));
                values.iter().max_by(by_value).into_iter().for_each(|v| self.lower(v, true));
            }
            _ => {}
        }
    }

    fn raise(&mut self, value: &Value, is_included: bool) {
        let is_above = |(known, was_included): &(Value, bool)| {
            let order = compare_values(value, known);
            order.is_gt() || order.is_eq() && *was_included && !is_included
        };
        if self.low.as_ref().is_none_or(is_above) {
            self.low = Some((value.clone(), is_included));
        }
    }

    fn lower(&mut self, value: &Value, is_included: bool) {
        let is_below = |(known, was_included): &(Value, bool)| {
            let order = compare_values(value, known);
            order.is_lt() || order.is_eq() && *was_included && !is_included
        };
        if self.high.as_ref().is_none_or(is_below) {
            self.high = Some((value.clone(), is_included));
        }
    }

    /// The only value that they allow.
    fn fixed(&self) -> Option<Value> {
        match (&self.low, &self.high) {
            (Some((low, true)), Some((high, true))) if compare_values(low, high).is_eq() => {
                Some(low.clone())
            }
            _ => None,
        }
    }
}
