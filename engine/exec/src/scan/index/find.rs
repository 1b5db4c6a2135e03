//! Finds rows of a scan by index.

use super::found::Found;
use super::hits::{Hits, in_scan_order};
use super::joined;
use super::lookup::Lookup;
use crate::scan::source::PathsInMemory;
use crate::scan::spec::ScanSpec;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_sql::{ScanStrategy, index_access};
use nacre_table::{Misses, TableView};
use nacre_types::Result;
use nacre_types::hash::Set;

/// Looks up the keys that the filters and the joins above require; `None` if a scan is as good.
pub(in crate::scan) fn find(
    spec: ScanSpec<'_>,
    view: &TableView,
    filters: &RuntimeFilters,
    context: &Context<'_>,
) -> Result<Option<Found>> {
    match context.scan_strategy {
        ScanStrategy::Adaptive | ScanStrategy::Index => {
            context.counted(|context| look_up(spec, view, filters, context))
        }
        ScanStrategy::Regular | ScanStrategy::Encoded | ScanStrategy::Group => Ok(None),
    }
}

fn look_up(
    spec: ScanSpec<'_>,
    view: &TableView,
    filters: &RuntimeFilters,
    context: &Context<'_>,
) -> Result<Option<Found>> {
    let access = index_access(spec.output(), spec.filters);
    if access.is_none() && filters.0.is_empty() {
        return Ok(None);
    }
    let lookup = Lookup::new(spec.schema, view, context);
    let mut all = Vec::new();
    if let Some(access) = &access {
        all.extend(lookup.hits(access)?);
    }
    all.extend(joined::hits(&lookup, spec, filters)?);
    all.sort_by_key(Hits::len);
    // A lookup with too many rows returns no hits and cannot narrow the result.
    let hits = if all.len() > 1 { Some(Hits::All(all)) } else { all.pop() };
    let Some(hits) = hits else { return Ok(None) };
    // Decided for each segment: all rows of a key may be in few of them.
    let places = hits.segments();
    let (few, many): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| {
        lookup.is_worth(hits.len_in(*place), view.segment(*place).segment.rows())
    });
    let all = view.count().segments;
    let table_rows = usize::try_from(view.table().row_count_estimate()).unwrap_or(usize::MAX);
    let scans_memory = !lookup.is_worth(hits.memory_len(), table_rows);
    // Without a segment that it spares, a lookup says nothing that the scan does not find.
    if many.len() == all && (all > 0 || scans_memory) {
        return Ok(None);
    }
    let mut names = Vec::new();
    hits.note(spec.schema, &mut names);
    names.into_iter().for_each(|name| context.statistics.note_index(name));
    let mut segments = Vec::new();
    Misses::each(few, |place| {
        let rows = hits.rows(place)?;
        if !rows.is_empty() {
            segments.push((view.segment(place), rows));
        }
        Ok(())
    })?;
    let scanned: Vec<_> = many.into_iter().map(|place| view.segment(place)).collect();
    context.statistics.segments_skipped.add(all - segments.len() - scanned.len());
    context.statistics.segments_read.add(segments.len());
    let mut memory = None;
    if !scans_memory {
        let (mut seen, mut found) = (Set::default(), Vec::new());
        hits.memory(&PathsInMemory::new(spec).read, &mut seen, &mut found)?;
        memory = Some(in_scan_order(found));
    }
    Ok(Some(Found { scanned, segments, memory }))
}
