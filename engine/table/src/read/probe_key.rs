//! Probes the primary key with several keys or with key prefixes. A single whole key is looked up
//! by [`point`](crate::read::point).

use crate::read::runs::{IndexProbe, IndexRun, MemoryRow, Source};
use crate::read::view::{RowLocator, TableView};
use crate::record::KeySet;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_host::fetched::Misses;
use nacre_rowstore::{Key, Node, Visible};
use nacre_segment::Segment;
use nacre_types::{Result, Value, key};
use std::sync::Arc;

/// Rowstore nodes to visit at a time.
const RUN: usize = 64;

/// See [`TableView::probe_key`].
pub(super) fn probe(view: &TableView, prefix: &[Value]) -> Result<IndexProbe> {
    let table = view.table();
    let types = table.layout().key_types();
    debug_assert!(
        !prefix.is_empty() && prefix.len() <= types.len(),
        "{} values of a key of {} columns",
        prefix.len(),
        types.len()
    );
    let mut encoded = Vec::with_capacity(prefix.len() * 9);
    for (value, data_type) in prefix.iter().zip(&types) {
        key::append(&mut encoded, *data_type, value)?;
    }
    let is_whole = prefix.len() == types.len();
    let only = is_whole.then(|| table.partition_of(&encoded).number());
    let mut memory = Vec::new();
    for partition in
        view.seen_partitions().iter().filter(|p| only.is_none_or(|only| only == p.number()))
    {
        memory_rows(view, partition, &encoded, is_whole, &mut memory)?;
    }
    let mut probe = IndexProbe::new(table, memory);
    for (partition, list) in
        view.lists().iter().filter(|(n, _)| only.is_some_and(|only| only == *n))
    {
        probe.tables_probed += list.tables_of(KeySet::Primary).count();
        let candidates = list.of_key(table.layout(), &encoded)?;
        Misses::each(candidates.newest_first(), |candidate| {
            let Some(at) = view.seen(*partition, candidate.place) else { return Ok(()) };
            if let Some(row) = candidate.find(table.layout(), view.state(at), prefix)? {
                let source = Source::Range { start: row, end: row + 1 };
                probe.runs.push(IndexRun::new(view, at, source, true));
            }
            Ok(())
        })?;
    }
    probe.runs.sort_unstable_by_key(|run| run.segment);
    for (partition, list) in view.lists().iter().filter(|_| only.is_none()) {
        Misses::each(list.with_key_prefix(table.layout(), prefix, &encoded)?, |place| {
            let Some(at) = view.seen(*partition, place) else { return Ok(()) };
            if let Some(source) = rows_of_key(table, &view.state(at).segment, prefix)? {
                let ascends = matches!(source, Source::Range { .. });
                probe.runs.push(IndexRun::new(view, at, source, ascends));
            }
            Ok(())
        })?;
    }
    probe.check_runs(view)?;
    Ok(probe)
}

/// Appends the rows in a partition's memory that the view sees and whose keys begin with `encoded`.
fn memory_rows(
    view: &TableView,
    partition: &Partition,
    encoded: &[u8],
    is_whole: bool,
    out: &mut Vec<MemoryRow>,
) -> Result<()> {
    let mut see = |node: &Arc<Node>| -> Result<()> {
        debug_assert!(node.key().starts_with(encoded), "a row of another key is found");
        if let Visible::Row(row) = view.visible(node) {
            let key = node.key().clone();
            let locator = RowLocator::Memory { partition: partition.number(), key };
            let row = view.table().layout().upgrade(row)?;
            out.push(MemoryRow { index_key: node.key().to_vec(), locator, row });
        }
        Ok(())
    };
    if is_whole {
        return partition.rowstore().get(encoded).map_or(Ok(()), |node| see(&node));
    }
    // Longer keys with this prefix come after it.
    let mut after: Key = encoded.into();
    let mut nodes = Vec::new();
    loop {
        nodes.clear();
        partition.rowstore().range_after(Some(&after), RUN, &mut nodes);
        debug_assert!(
            nodes.iter().all(|node| *node.key() > after),
            "a node of partition {} is visited twice",
            partition.number()
        );
        debug_assert!(nodes.len() <= RUN, "{} nodes of {RUN} at most are visited", nodes.len());
        let inside = nodes.iter().take_while(|node| node.key().starts_with(encoded)).count();
        nodes[..inside].iter().try_for_each(&mut see)?;
        match nodes.last() {
            Some(last) if inside == RUN => after = last.key().clone(),
            _ => return Ok(()),
        }
    }
}

/// The rows of a segment whose keys begin with `prefix`, which is shorter than a whole key; `None`
/// if there are none.
fn rows_of_key(table: &Table, segment: &Segment, prefix: &[Value]) -> Result<Option<Source>> {
    let columns = table.layout().key_positions(segment)?;
    if segment.is_outside(&columns, prefix)? {
        return Ok(None);
    }
    match table.layout().key_order(segment)? {
        None => {
            let start = segment.lower_bound(&columns, prefix)?;
            let end = segment.upper_bound(&columns, prefix, start)?;
            debug_assert!(start <= end, "keys {start} to {end} of a segment");
            Ok((start < end).then_some(Source::Range { start: start as u32, end: end as u32 }))
        }
        Some(order) => {
            let mut at = segment.lower_bound_in_order(order, &columns, prefix)?;
            let mut rows = Vec::new();
            while at < segment.rows() {
                let row = segment.row_in_order(order, at)?;
                if !segment.is_key(row, &columns, prefix)? {
                    break;
                }
                rows.push(row as u32);
                at += 1;
            }
            Ok((!rows.is_empty()).then_some(Source::Rows(rows)))
        }
    }
}
