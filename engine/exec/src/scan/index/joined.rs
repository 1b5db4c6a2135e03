//! Looks up the keys of joins above a scan in its indexes: a filter without false positives that
//! reads only matching rows ("join index filter": Prout et al., *Cloud-Native Transactions and
//! Analytics in SingleStore*, SIGMOD 2022, section 5.1). The joins have collected their build sides
//! by then.
//!
//! An index key may combine columns of a join key and columns that filters fix. Each join is looked
//! up separately, and the results are intersected.

use super::hits::Hits;
use super::lookup::Lookup;

use crate::scan::spec::ScanSpec;
use nacre_column::Vector;
use nacre_operator::join_filter::{JoinKeys, RuntimeFilters};
use nacre_sql::{ScanOutput, fixed_columns, joined_key};
use nacre_table::KeyRange;
use nacre_types::{Result, Value, key};
use std::ops::Bound;
use std::sync::Arc;

/// The keys of one join, and for each of its columns that the scan reads the position in the table
/// and the column of the keys.
type Join<'w> = (&'w Arc<JoinKeys>, Vec<(usize, usize)>);

/// The joins whose keys could be looked up, once they are collected.
fn joins<'w>(output: ScanOutput<'_>, filters: &'w RuntimeFilters) -> Vec<Join<'w>> {
    let mut joins: Vec<Join<'w>> = Vec::new();
    for (at, filter) in &filters.0 {
        let (Some((keys, column)), Some(position)) = (filter.lookup(), output.column(*at)) else {
            continue;
        };
        match joins.iter_mut().find(|(known, _)| Arc::ptr_eq(known, keys)) {
            Some((_, columns)) => columns.push((position, column)),
            None => joins.push((keys, vec![(position, column)])),
        }
    }
    joins
}

/// Whether an index can find a table's rows by the keys of a join above.
pub(in crate::scan) fn may_help(spec: ScanSpec<'_>, filters: &RuntimeFilters) -> bool {
    let joins = joins(spec.output(), filters);
    if joins.is_empty() {
        return false;
    }
    let fixed = fixed_columns(spec.output(), spec.filters);
    let found = |(_, columns): &Join<'_>| {
        let joined = |at: usize| columns.iter().any(|(position, _)| *position == at);
        joined_key(spec.schema, &joined, &|at| fixed[at].is_some()).is_some()
    };
    joins.iter().any(found)
}

/// The rows that indexes find by join keys. Skips joins with too many keys or matching rows.
pub(in crate::scan) fn hits(
    lookup: &Lookup<'_, '_>,
    spec: ScanSpec<'_>,
    filters: &RuntimeFilters,
) -> Result<Vec<Hits>> {
    let mut all = Vec::new();
    let fixed = fixed_columns(spec.output(), spec.filters);
    for (keys, columns) in joins(spec.output(), filters) {
        let Some(vectors) = keys.get() else { continue };
        let of_join = |at: usize| {
            columns.iter().find(|(position, _)| *position == at).map(|(_, column)| *column)
        };
        let joined = |at: usize| of_join(at).is_some();
        let Some((index, known)) = joined_key(lookup.schema, &joined, &|at| fixed[at].is_some())
        else {
            continue;
        };
        let Some(positions) = lookup.positions(index) else { continue };
        let mut parts = Vec::new();
        for at in &positions[..known] {
            let part = match (of_join(*at).and_then(|column| vectors.get(column)), &fixed[*at]) {
                (Some(vector), _) => Some(Part::Joined(vector)),
                (None, Some(equal)) => lookup.values(*at, equal).map(Part::Fixed),
                (None, None) => None,
            };
            parts.extend(part);
        }
        if parts.len() < known {
            continue;
        }
        let Some(ranges) = ranges(lookup, &positions[..known], &parts)? else { continue };
        let looked_up = ranges.len();
        if let Some(hits) = lookup.probe(index, ranges)? {
            lookup.context.statistics.join_keys.add(looked_up);
            all.push(hits);
        }
    }
    Ok(all)
}

/// Where the values of a column of the index come from.
enum Part<'v> {
    Joined(&'v Arc<Vector>),
    Fixed(Vec<Value>),
}

/// The distinct keys, in order; `None` if there are too many.
fn ranges(
    lookup: &Lookup<'_, '_>,
    positions: &[usize],
    parts: &[Part<'_>],
) -> Result<Option<Vec<KeyRange>>> {
    let rows = parts
        .iter()
        .map(|part| if let Part::Joined(vector) = part { vector.len() } else { 0 })
        .max();
    let factor = parts.iter().fold(1usize, |product, part| match part {
        Part::Joined(_) => product,
        Part::Fixed(values) => product.saturating_mul(values.len()),
    });
    // At least one part comes from the join: the joined columns chose the index.
    let Some(rows) = rows else { return Ok(None) };
    if rows.saturating_mul(factor) > lookup.keys {
        return Ok(None);
    }
    let mut keys: Vec<(Vec<u8>, Vec<Value>)> = Vec::with_capacity(rows * factor);
    for row in 0..rows {
        let mut prefixes: Vec<(Vec<u8>, Vec<Value>)> = vec![Default::default()];
        for (part, position) in parts.iter().zip(positions) {
            let own;
            let values: &[Value] = match part {
                // A value out of the column's range matches nothing, nor does null.
                Part::Joined(vector) => {
                    own =
                        lookup.value(*position, vector.value(row)).filter(|value| !value.is_null());
                    own.as_slice()
                }
                Part::Fixed(values) => values,
            };
            let mut longer = Vec::with_capacity(prefixes.len() * values.len());
            for (bytes, prefix) in &prefixes {
                for value in values {
                    let (mut bytes, mut prefix) = (bytes.clone(), prefix.clone());
                    key::append(&mut bytes, lookup.schema.key_column(*position).data_type, value)?;
                    prefix.push(value.clone());
                    longer.push((bytes, prefix));
                }
            }
            prefixes = longer;
        }
        keys.append(&mut prefixes);
    }
    keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    keys.dedup_by(|a, b| a.0 == b.0);
    let range = |(_, prefix)| KeyRange { prefix, low: Bound::Unbounded, high: Bound::Unbounded };
    Ok(Some(keys.into_iter().map(range).collect()))
}
