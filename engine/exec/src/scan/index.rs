//! Rows found by secondary indexes instead of scanning.
//!
//! `nacre_sql::index_access` says which keys of which indexes the filters ask for. Here they are looked up, which tells
//! how many rows there are without reading any; when these are too many for the table's size, or the keys are, the scan
//! reads blocks as ever (SIGMOD 2022 paper, 5.1). Of several indexes under `AND` the one that finds the fewest leads, and
//! the others narrow what it found, seeking forward; under `OR` what they find is united. All filters are checked on
//! the rows that are left.

use super::clauses::same_family;
use super::prune::constant;
use crate::context::{Context, count};
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::{IndexAccess, IndexKeys, index_access};
use nacre_table::{IndexProbe, KeyRange, RowLocator, TableView};
use nacre_types::hash::Set;
use nacre_types::{IndexSchema, Result, TableSchema, Value};
use std::ops::Bound;
use std::sync::Arc;

/// One row in so many of a table is worth picking by index: a scan reads the rows beside it much faster.
const WORTH_ONE_IN: u64 = 32;
/// So few rows always are.
const FEW_ROWS: usize = 64;
/// One key for so many rows of a table is worth looking up.
const KEY_PER_ROWS: u64 = 256;
/// So few keys always are, and so many never.
const FEW_KEYS: usize = 16;
const MAX_KEYS: usize = 4_096;

/// What indexes found.
pub(super) struct Found {
    /// Position of a segment in the view, and rows of it, ascending.
    pub segments: Vec<(usize, Vec<u32>)>,
    /// Rows in memory with their places, in the order of a scan.
    pub memory: Vec<(Batch, Vec<RowLocator>)>,
}

/// Looks the filters up in the table's indexes; none when a scan does as well.
pub(super) fn find(
    schema: &TableSchema,
    view: &TableView,
    projection: &[usize],
    filters: &[Expr],
    context: &Context<'_>,
) -> Result<Option<Found>> {
    let Some(access) = index_access(schema, projection, filters) else { return Ok(None) };
    let rows = view.table().row_count_estimate();
    let most = usize::try_from(rows / WORTH_ONE_IN).unwrap_or(usize::MAX).max(FEW_ROWS);
    let keys = usize::try_from(rows / KEY_PER_ROWS).unwrap_or(usize::MAX).clamp(FEW_KEYS, MAX_KEYS);
    let lookup = Lookup { schema, view, context, keys, most };
    let Some(hits) = lookup.hits(&access)? else { return Ok(None) };
    let mut names = Vec::new();
    hits.note(schema, &mut names);
    names.into_iter().for_each(|name| context.statistics.note_index(name));
    let mut segments = Vec::new();
    for segment in 0..view.segments.len() {
        let rows = hits.rows(segment)?;
        match rows.is_empty() {
            true => count(&context.statistics.segments_skipped, 1),
            false => segments.push((segment, rows)),
        }
    }
    count(&context.statistics.segments_read, segments.len());
    let mut seen = Set::default();
    let mut memory = Vec::new();
    hits.memory(projection, &mut seen, &mut memory);
    Ok(Some(Found { segments, memory: in_scan_order(memory) }))
}

struct Lookup<'a, 'c> {
    schema: &'a TableSchema,
    view: &'a TableView,
    context: &'a Context<'c>,
    /// Keys and rows at most.
    keys: usize,
    most: usize,
}

/// What was looked up and not read yet.
enum Hits {
    One {
        index: usize,
        probes: Vec<IndexProbe>,
    },
    /// The first finds the fewest.
    All(Vec<Hits>),
    Any(Vec<Hits>),
}

impl Lookup<'_, '_> {
    /// Nothing when these are too many.
    fn hits(&self, access: &IndexAccess<'_>) -> Result<Option<Hits>> {
        match access {
            IndexAccess::Keys(keys) => self.one(keys),
            IndexAccess::Any(list) => {
                let mut any = Vec::new();
                for access in list {
                    match self.hits(access)? {
                        Some(hits) => any.push(hits),
                        None => return Ok(None),
                    }
                }
                let hits = Hits::Any(any);
                Ok((hits.len() <= self.most).then_some(hits))
            }
            IndexAccess::All(list) => {
                let mut all = Vec::new();
                for access in list {
                    all.extend(self.hits(access)?);
                }
                all.sort_by_key(Hits::len);
                // What finds as good as everything narrows nothing.
                Ok((!all.is_empty()).then_some(Hits::All(all)))
            }
        }
    }

    fn one(&self, keys: &IndexKeys<'_>) -> Result<Option<Hits>> {
        let index = &self.schema.indexes[keys.index];
        let Some(ranges) = self.ranges(index, keys) else { return Ok(None) };
        // What has no part of the index yet is read for each key.
        if ranges.len() > 1 && self.view.unindexed_rows(index.id) > 0 {
            return Ok(None);
        }
        let mut probes = Vec::new();
        let mut rows = 0;
        for range in ranges {
            let probe = self.view.probe_index(index.id, &range)?;
            count(&self.context.statistics.index_probes, 1);
            rows += probe.len();
            if rows > self.most {
                return Ok(None);
            }
            probes.push(probe);
        }
        Ok(Some(Hits::One { index: keys.index, probes }))
    }

    /// The ranges of keys; nothing when a value is none that its column could hold, or there are too many.
    fn ranges(&self, index: &IndexSchema, keys: &IndexKeys<'_>) -> Option<Vec<KeyRange>> {
        let positions = self.schema.index_positions(index)?;
        let value = |position: usize, expr: &Expr| {
            let value = constant(expr, self.context)?;
            let column = &self.schema.columns[position];
            let fits = value.is_null() || (same_family(column.data_type, &value) && column.check(&value).is_ok());
            fits.then_some(value)
        };
        let mut prefixes: Vec<Vec<Value>> = vec![Vec::new()];
        for (equal, position) in keys.equal.iter().zip(&positions) {
            let mut values: Vec<Value> = Vec::new();
            for expr in equal {
                match expr {
                    None => values.push(Value::Null),
                    Some(expr) => {
                        let value = value(*position, expr)?;
                        // Null equals nothing.
                        if !value.is_null() && !values.contains(&value) {
                            values.push(value);
                        }
                    }
                }
            }
            if prefixes.len().saturating_mul(values.len()) > self.keys {
                return None;
            }
            let longer = |prefix: &Vec<Value>| {
                let with = |value: &Value| prefix.iter().chain([value]).cloned().collect::<Vec<Value>>();
                values.iter().map(with).collect::<Vec<_>>()
            };
            prefixes = prefixes.iter().flat_map(longer).collect();
        }
        let next = positions.get(keys.equal.len());
        let bound = |bound: &Option<(&Expr, bool)>| {
            let (Some((expr, included)), Some(position)) = (bound, next) else { return Some(Bound::Unbounded) };
            let value = value(*position, expr)?;
            Some(if *included { Bound::Included(value) } else { Bound::Excluded(value) })
        };
        let (low, high) = (bound(&keys.low)?, bound(&keys.high)?);
        let is_null =
            |bound: &Bound<Value>| matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null));
        if is_null(&low) || is_null(&high) {
            return Some(Vec::new());
        }
        let range = |prefix| KeyRange { prefix, low: low.clone(), high: high.clone() };
        Some(prefixes.into_iter().map(range).collect())
    }
}

impl Hits {
    /// At most so many rows.
    fn len(&self) -> usize {
        match self {
            Hits::One { probes, .. } => probes.iter().map(IndexProbe::len).sum(),
            Hits::All(list) => list.first().map_or(0, Hits::len),
            Hits::Any(list) => list.iter().map(Hits::len).sum(),
        }
    }

    fn note(&self, schema: &TableSchema, names: &mut Vec<String>) {
        match self {
            Hits::One { index, .. } => {
                let name = &schema.indexes[*index].name;
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Hits::All(list) | Hits::Any(list) => list.iter().for_each(|hits| hits.note(schema, names)),
        }
    }

    /// Rows of a segment, ascending.
    fn rows(&self, segment: usize) -> Result<Vec<u32>> {
        match self {
            Hits::One { probes, .. } => {
                let mut rows = Vec::new();
                let mut runs = 0;
                for run in probes.iter().flat_map(|probe| &probe.runs).filter(|run| run.segment == segment) {
                    rows.extend(run.ascending()?);
                    runs += 1;
                }
                if runs > 1 {
                    rows.sort_unstable();
                }
                Ok(rows)
            }
            Hits::Any(list) => {
                let mut rows = Vec::new();
                for hits in list {
                    rows.extend(hits.rows(segment)?);
                }
                rows.sort_unstable();
                rows.dedup();
                Ok(rows)
            }
            Hits::All(list) => {
                let mut list = list.iter();
                let mut rows = list.next().map_or_else(|| Ok(Vec::new()), |hits| hits.rows(segment))?;
                for hits in list {
                    if rows.is_empty() {
                        break;
                    }
                    hits.narrow(segment, &mut rows)?;
                }
                Ok(rows)
            }
        }
    }

    /// Leaves the rows that are found here too.
    fn narrow(&self, segment: usize, rows: &mut Vec<u32>) -> Result<()> {
        if let Hits::One { probes, .. } = self
            && let [probe] = probes.as_slice()
        {
            let Some(run) = probe.runs.iter().find(|run| run.segment == segment) else {
                rows.clear();
                return Ok(());
            };
            let mut cursor = run.cursor()?;
            let mut at = cursor.next_row()?;
            let mut kept = Vec::new();
            for row in rows.iter() {
                if at.is_some_and(|found| found < *row) {
                    at = cursor.advance_to(*row)?;
                }
                match at {
                    None => break,
                    Some(found) if found == *row => kept.push(*row),
                    Some(_) => {}
                }
            }
            *rows = kept;
            return Ok(());
        }
        let others = self.rows(segment)?;
        rows.retain(|row| others.binary_search(row).is_ok());
        Ok(())
    }

    /// Rows in memory, each once.
    fn memory(&self, projection: &[usize], seen: &mut Set<(u32, Arc<[u8]>)>, out: &mut Vec<(Batch, Vec<RowLocator>)>) {
        match self {
            Hits::One { probes, .. } => {
                for probe in probes.iter().filter(|probe| probe.memory_rows() > 0) {
                    let (batch, locators) = probe.memory(0, probe.memory_rows(), projection);
                    let mut rows = Vec::new();
                    for (at, locator) in locators.iter().enumerate() {
                        if let RowLocator::Memory { partition, key } = locator
                            && seen.insert((*partition, key.clone()))
                        {
                            rows.push(at as u32);
                        }
                    }
                    if !rows.is_empty() {
                        out.push((
                            taken(&batch, &rows),
                            rows.iter().map(|at| locators[*at as usize].clone()).collect(),
                        ));
                    }
                }
            }
            // Whoever leads has found them all.
            Hits::All(list) => list.iter().take(1).for_each(|hits| hits.memory(projection, seen, out)),
            Hits::Any(list) => list.iter().for_each(|hits| hits.memory(projection, seen, out)),
        }
    }
}

fn taken(batch: &Batch, rows: &[u32]) -> Batch {
    Batch::new(batch.columns.iter().map(|column| Arc::new(column.take(rows))).collect(), rows.len())
}

/// Each batch in the order of keys; there is one most of the time.
fn in_scan_order(mut memory: Vec<(Batch, Vec<RowLocator>)>) -> Vec<(Batch, Vec<RowLocator>)> {
    for (batch, locators) in &mut memory {
        let place = |at: &u32| match &locators[*at as usize] {
            RowLocator::Memory { partition, key } => (*partition, key.clone()),
            RowLocator::Segment { partition, .. } => (*partition, Arc::from([])),
        };
        let mut rows: Vec<u32> = (0..batch.rows as u32).collect();
        rows.sort_by_cached_key(place);
        *batch = taken(batch, &rows);
        *locators = rows.iter().map(|at| locators[*at as usize].clone()).collect();
    }
    memory
}
