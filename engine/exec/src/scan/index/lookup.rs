//! Looks up keys in the indexes of a table, as long as that costs less than a scan.

use super::hits::Hits;
use crate::scan::filter::clauses::same_family;
use crate::scan::filter::prune::constant;
use nacre_operator::context::Context;
use nacre_sql::expr::Expr;
use nacre_sql::{IndexAccess, IndexKeys, ScanStrategy};
use nacre_table::{IndexProbe, KeyRange, Misses, TableView};
use nacre_types::hash::Set;
use nacre_types::{Result, TableSchema, Value, key};
use std::ops::Bound;

/// Fetching rows by index is worthwhile for up to one row in this many: a scan reads neighbouring
/// rows much faster.
const WORTH_ONE_IN: usize = 32;
/// Fetching up to this many rows is always worthwhile.
const FEW_ROWS: usize = 64;
/// Counting rows by index is worthwhile up to one row in this many of a table: they may all be in
/// few segments.
const COUNTED_ONE_IN: usize = 2;
/// Looking up keys is worthwhile for up to one key per this many rows of a table.
const KEY_PER_ROWS: u64 = 2_048;
/// Looking up to this many keys is always worthwhile.
const FEW_KEYS: usize = 16;
/// Looking up more keys than this is never worthwhile.
const MAX_KEYS: usize = 4_096;

/// Looks up keys in the indexes of one table.
pub(in crate::scan) struct Lookup<'a, 'c> {
    pub schema: &'a TableSchema,
    pub view: &'a TableView,
    pub context: &'a Context<'c>,
    /// The most keys worth looking up.
    pub keys: usize,
    /// The most rows worth fetching.
    pub most: usize,
    /// The most rows worth counting.
    counted: usize,
}

/// The most rows worth fetching by index of a number of rows.
fn worth(rows: usize) -> usize {
    (rows / WORTH_ONE_IN).max(FEW_ROWS)
}

impl<'a, 'c> Lookup<'a, 'c> {
    pub fn new(
        schema: &'a TableSchema,
        view: &'a TableView,
        context: &'a Context<'c>,
    ) -> Lookup<'a, 'c> {
        if context.scan_strategy == ScanStrategy::Index {
            let most = usize::MAX;
            return Lookup { schema, view, context, keys: MAX_KEYS, most, counted: most };
        }
        let rows = view.table().row_count_estimate();
        let whole = usize::try_from(rows).unwrap_or(usize::MAX);
        let (most, counted) = (worth(whole), (whole / COUNTED_ONE_IN).max(FEW_ROWS));
        let keys =
            usize::try_from(rows / KEY_PER_ROWS).unwrap_or(usize::MAX).clamp(FEW_KEYS, MAX_KEYS);
        Lookup { schema, view, context, keys, most, counted }
    }

    /// Whether to fetch some rows of `of` by index, rather than to scan all of them.
    pub fn is_worth(&self, rows: usize, of: usize) -> bool {
        self.most == usize::MAX || rows <= worth(of)
    }

    /// The rows for some keys; `None` if there are too many keys or rows.
    pub fn hits(&self, access: &IndexAccess<'_>) -> Result<Option<Hits>> {
        match access {
            IndexAccess::Keys(keys) => self.keys(keys),
            IndexAccess::Any(list) => {
                let mut any = Vec::new();
                for access in list {
                    match self.hits(access)? {
                        Some(hits) => any.push(hits),
                        None => return Ok(None),
                    }
                }
                let hits = Hits::Any(any);
                Ok((hits.len() <= self.counted).then_some(hits))
            }
            IndexAccess::All(list) => {
                let mut all = Vec::new();
                for access in list {
                    all.extend(self.hits(access)?);
                }
                all.sort_by_key(Hits::len);
                Ok((!all.is_empty()).then_some(Hits::All(all)))
            }
        }
    }

    fn keys(&self, keys: &IndexKeys<'_>) -> Result<Option<Hits>> {
        let Some(positions) = self.positions(keys.index) else { return Ok(None) };
        let Some(ranges) = self.ranges(&positions, keys) else { return Ok(None) };
        self.probe(keys.index, ranges)
    }

    /// Positions in the table of an index's columns, or of the primary key's.
    pub fn positions(&self, index: Option<usize>) -> Option<Vec<usize>> {
        match index {
            Some(at) => self.schema.index_positions(self.schema.indexes.get(at)?),
            None => self.schema.primary_key.as_ref().map(|key| key.columns.clone()),
        }
    }

    /// Looks up distinct ranges; `None` when they find too many rows.
    pub fn probe(&self, index: Option<usize>, ranges: Vec<KeyRange>) -> Result<Option<Hits>> {
        let id = index.map(|at| self.schema.indexes[at].id);
        // Segments without an index part would be read once for each range, and each of their keys
        // compared as bytes, which takes far longer than a filter.
        if let Some(id) = id {
            let unindexed = usize::try_from(self.view.unindexed_rows(id)?).unwrap_or(usize::MAX);
            let most = if ranges.len() > 1 { 0 } else { self.most };
            if unindexed > most {
                return Ok(None);
            }
        }
        let mut probes: Vec<IndexProbe> = Vec::with_capacity(ranges.len());
        let mut rows = 0;
        let mut misses = Misses::default();
        for range in ranges {
            if misses.is_full() {
                break;
            }
            let probe = match id {
                Some(id) => self.view.probe_index(id, &range),
                // No row has a null in its primary key.
                None if range.prefix.iter().any(Value::is_null) => continue,
                None => self.view.probe_key(&range.prefix),
            };
            let Some(probe) = misses.note(probe)? else { continue };
            self.context.statistics.index_probes.add(1);
            self.context.statistics.tables_probed.add(probe.tables_probed);
            rows += probe.len();
            if rows > self.counted {
                return Ok(None);
            }
            probes.push(probe);
        }
        misses.end()?;
        Ok(Some(Hits::one(index, probes)))
    }

    /// The value, unless it is out of the column's range.
    pub fn value(&self, position: usize, value: Value) -> Option<Value> {
        let column = self.schema.key_column(position);
        let fits = value.is_null()
            || (same_family(column.data_type, &value) && column.check(&value).is_ok());
        fits.then_some(value)
    }

    /// The distinct values that a column may equal; `None` if one is out of the column's range, or
    /// if there are too many.
    pub fn values(&self, position: usize, equal: &[Option<&Expr>]) -> Option<Vec<Value>> {
        let mut values: Vec<Value> = Vec::new();
        // Compared as keys: NaN equals itself, as do zeros of either sign.
        let mut known: Set<Vec<u8>> = Set::default();
        for expr in equal {
            let Some(expr) = expr else {
                values.push(Value::Null);
                continue;
            };
            let value = self.value(position, constant(expr, self.context)?)?;
            // Null equals nothing.
            if value.is_null() {
                continue;
            }
            let mut bytes = Vec::new();
            key::append(&mut bytes, self.schema.key_column(position).data_type, &value).ok()?;
            if known.insert(bytes) {
                values.push(value);
            }
            if values.len() > self.keys {
                return None;
            }
        }
        Some(values)
    }

    /// The key ranges; `None` if a value is out of its column's range, or if there are too many.
    pub fn ranges(&self, positions: &[usize], keys: &IndexKeys<'_>) -> Option<Vec<KeyRange>> {
        let mut prefixes: Vec<Vec<Value>> = vec![Vec::new()];
        for (equal, position) in keys.equal.iter().zip(positions) {
            let values = self.values(*position, equal)?;
            if prefixes.len().saturating_mul(values.len()) > self.keys {
                return None;
            }
            let longer = |prefix: &Vec<Value>| {
                let with =
                    |value: &Value| prefix.iter().chain([value]).cloned().collect::<Vec<Value>>();
                values.iter().map(with).collect::<Vec<_>>()
            };
            prefixes = prefixes.iter().flat_map(longer).collect();
        }
        let next = positions.get(keys.equal.len());
        let bound = |bound: &Option<(&Expr, bool)>| {
            let (Some((expr, included)), Some(position)) = (bound, next) else {
                return Some(Bound::Unbounded);
            };
            let value = self.value(*position, constant(expr, self.context)?)?;
            Some(if *included { Bound::Included(value) } else { Bound::Excluded(value) })
        };
        let (low, high) = (bound(&keys.low)?, bound(&keys.high)?);
        let is_null = |bound: &Bound<Value>| {
            matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
        };
        if is_null(&low) || is_null(&high) {
            return Some(Vec::new());
        }
        let range = |prefix| KeyRange { prefix, low: low.clone(), high: high.clone() };
        Some(prefixes.into_iter().map(range).collect())
    }
}
