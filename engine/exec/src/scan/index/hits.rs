//! Results of index lookups whose rows are not read yet, and their combination.

use nacre_column::Batch;
use nacre_sql::key_name;
use nacre_table::{IndexProbe, IndexRun, RowLocator, SegmentPlace};
use nacre_types::hash::Set;
use nacre_types::invariant::broken;
use nacre_types::sorted::{SortedMap, SortedSet};
use nacre_types::{Result, TableSchema};
use std::sync::Arc;

/// Row numbers that can be read and sorted in the time of checking one row.
const READ_ROWS: usize = 32;

/// The result of lookups: the number of rows is known, the rows are read later.
pub(in crate::scan) enum Hits {
    /// Found by one index, or by the primary key.
    One {
        index: Option<usize>,
        /// The runs found, by segment.
        runs: SortedMap<SegmentPlace, Vec<IndexRun>>,
        /// Lookups that found rows in memory.
        probes: Vec<IndexProbe>,
        rows: usize,
    },
    /// Rows found by all of these; the first found the fewest.
    All(Vec<Hits>),
    /// Rows found by any of these.
    Any(Vec<Hits>),
}

impl Hits {
    /// The rows found by distinct ranges of one index.
    pub fn one(index: Option<usize>, mut probes: Vec<IndexProbe>) -> Hits {
        let rows = probes.iter().map(IndexProbe::len).sum();
        let mut runs: SortedMap<SegmentPlace, Vec<IndexRun>> = SortedMap::new();
        for run in probes.iter_mut().flat_map(|probe| probe.runs.drain(..)) {
            runs.or_insert_with(run.segment, Default::default).push(run);
        }
        probes.retain(|probe| probe.memory_rows() > 0);
        Hits::One { index, runs, probes, rows }
    }

    /// An upper bound on the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Hits::One { rows, .. } => *rows,
            Hits::All(list) => leader(list).0.len(),
            Hits::Any(list) => list.iter().map(Hits::len).sum(),
        }
    }

    /// An upper bound on the number of rows in a segment.
    pub fn len_in(&self, segment: SegmentPlace) -> usize {
        match self {
            Hits::One { runs, .. } => Hits::runs_of(runs, segment).iter().map(IndexRun::len).sum(),
            Hits::All(list) => list.iter().map(|hits| hits.len_in(segment)).min().unwrap_or(0),
            Hits::Any(list) => list.iter().map(|hits| hits.len_in(segment)).sum(),
        }
    }

    /// An upper bound on the number of rows in memory.
    pub fn memory_len(&self) -> usize {
        match self {
            Hits::One { probes, .. } => probes.iter().map(IndexProbe::memory_rows).sum(),
            Hits::All(list) => leader(list).0.memory_len(),
            Hits::Any(list) => list.iter().map(Hits::memory_len).sum(),
        }
    }

    /// Appends the names of the indexes, each once.
    pub fn note(&self, schema: &TableSchema, names: &mut Vec<String>) {
        match self {
            Hits::One { index, .. } => {
                let name = key_name(schema, *index).to_string();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Hits::All(list) | Hits::Any(list) => {
                list.iter().for_each(|hits| hits.note(schema, names))
            }
        }
    }

    /// The runs found by one index in a segment.
    fn runs_of(
        runs: &SortedMap<SegmentPlace, Vec<IndexRun>>,
        segment: SegmentPlace,
    ) -> &[IndexRun] {
        runs.get(&segment).map_or(&[], Vec::as_slice)
    }

    /// The segments that may have rows, in scan order.
    pub fn segments(&self) -> SortedSet<SegmentPlace> {
        match self {
            Hits::One { runs, .. } => runs.keys().copied().collect(),
            // The others only narrow what the first one found.
            Hits::All(list) => leader(list).0.segments(),
            Hits::Any(list) => list.iter().flat_map(Hits::segments).collect(),
        }
    }

    /// Rows of a segment, ascending.
    pub fn rows(&self, segment: SegmentPlace) -> Result<Vec<u32>> {
        match self {
            Hits::One { runs, .. } => {
                let runs = Hits::runs_of(runs, segment);
                let mut rows = Vec::new();
                for run in runs {
                    rows.extend(run.ascending()?);
                }
                if runs.len() > 1 {
                    rows.sort_unstable();
                }
                debug_assert!(rows.is_sorted(), "rows of a segment ascend");
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
                let (first, others) = leader(list);
                let mut rows = first.rows(segment)?;
                for hits in others {
                    if rows.is_empty() {
                        break;
                    }
                    hits.narrow(segment, &mut rows)?;
                }
                Ok(rows)
            }
        }
    }

    /// Drops rows not found here. May keep some if checking the rows directly is faster.
    fn narrow(&self, segment: SegmentPlace, rows: &mut Vec<u32>) -> Result<()> {
        let runs = match self {
            Hits::One { runs, .. } => Some(Hits::runs_of(runs, segment)),
            _ => None,
        };
        if let Some(runs) = runs
            && !runs.iter().all(IndexRun::is_ascending)
            && runs.iter().map(IndexRun::len).sum::<usize>() / READ_ROWS > rows.len()
        {
            return Ok(());
        }
        if let Some([] | [_]) = runs {
            let Some(run) = runs.and_then(<[_]>::first) else {
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
    pub fn memory(
        &self,
        projection: &[usize],
        seen: &mut Set<(u32, Arc<[u8]>)>,
        out: &mut Vec<(Batch, Vec<RowLocator>)>,
    ) -> Result<()> {
        match self {
            Hits::One { probes, .. } => {
                for probe in probes {
                    let (batch, locators) = probe.memory(0, probe.memory_rows(), projection)?;
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
            // The first one found all rows that the others may keep.
            Hits::All(list) => leader(list).0.memory(projection, seen, out)?,
            Hits::Any(list) => {
                list.iter().try_for_each(|hits| hits.memory(projection, seen, out))?
            }
        }
        Ok(())
    }
}

fn taken(batch: &Batch, rows: &[u32]) -> Batch {
    Batch::new(batch.columns.iter().map(|column| Arc::new(column.take(rows))).collect(), rows.len())
}

/// The lookup that found the fewest rows, and the others.
fn leader(list: &[Hits]) -> (&Hits, &[Hits]) {
    match list.split_first() {
        Some(parts) => parts,
        // Without conditions every row passes; an empty result would lose rows.
        None => broken(format_args!("an intersection of no lookups")),
    }
}

/// Sorts the rows of each batch by partition and key; there is usually one batch.
pub(in crate::scan) fn in_scan_order(
    mut memory: Vec<(Batch, Vec<RowLocator>)>,
) -> Vec<(Batch, Vec<RowLocator>)> {
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
