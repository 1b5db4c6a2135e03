//! Looking into the primary key as into an index, for access paths that have several keys of a table, or the first
//! values of keys. One whole key of one statement is `point.rs`'s affair.

use crate::index::hash::table::KeySet;
use crate::read::probe::{IndexProbe, IndexRun, Source};
use crate::read::view::{RowLocator, TableView};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Key, Node, Row, Visible};
use nacre_segment::Segment;
use nacre_types::{Result, Value, key};
use std::sync::Arc;

/// Nodes of a rowstore that are looked at in one go.
const RUN: usize = 64;

type Memory = Vec<(Vec<u8>, RowLocator, Row)>;

impl TableView {
    /// The rows whose primary key begins with these values, one or more, none of them null. Their types must be those
    /// of the columns.
    pub fn probe_key(&self, prefix: &[Value]) -> Result<IndexProbe> {
        let table = self.table().clone();
        let types = table.key_types();
        let mut encoded = Vec::with_capacity(prefix.len() * 9);
        for (value, data_type) in prefix.iter().zip(&types) {
            key::append(&mut encoded, *data_type, value)?;
        }
        let is_whole = prefix.len() == types.len();
        let only = is_whole.then(|| table.partition_of(&encoded).number());
        let mut probe = IndexProbe {
            runs: Vec::new(),
            segments_skipped: 0,
            segments_read: 0,
            tables_probed: 0,
            memory: Vec::new(),
            table: table.clone(),
        };
        for partition in
            self.seen_partitions().iter().filter(|p| only.is_none_or(|only| only == p.number()))
        {
            self.memory_of_key(partition, &encoded, is_whole, &mut probe.memory)?;
        }
        for (partition, list) in
            self.lists.iter().filter(|(n, _)| only.is_some_and(|only| only == *n))
        {
            probe.tables_probed += list.tables_of(KeySet::Primary).count();
            for candidate in list.of_key(&table, &encoded)?.newest_first() {
                let Some(at) = self.position_of(*partition, candidate.place) else { continue };
                let view = &self.segments[at];
                if let Some(row) = table.find_candidate(&view.state, candidate, prefix)? {
                    let source = Source::Range { start: row, end: row + 1 };
                    let deleted = view.deleted.clone();
                    probe.runs.push(IndexRun { segment: at, source, ascends: true, deleted });
                }
            }
        }
        probe.runs.sort_unstable_by_key(|run| run.segment);
        for (at, view) in self.segments.iter().enumerate().filter(|_| only.is_none()) {
            if let Some(source) = rows_of_key(&table, &view.segment, prefix)? {
                let ascends = matches!(source, Source::Range { .. });
                probe.runs.push(IndexRun {
                    segment: at,
                    source,
                    ascends,
                    deleted: view.deleted.clone(),
                });
            }
        }
        probe.segments_skipped = self.segments.len() - probe.runs.len();
        Ok(probe)
    }

    fn memory_of_key(
        &self,
        partition: &Partition,
        encoded: &[u8],
        is_whole: bool,
        out: &mut Memory,
    ) -> Result<()> {
        let mut see = |node: &Arc<Node>| -> Result<()> {
            if let Visible::Row(row) = self.visible(node) {
                let locator =
                    RowLocator::Memory { partition: partition.number(), key: node.key().clone() };
                out.push((node.key().to_vec(), locator, self.table().upgrade(row)?));
            }
            Ok(())
        };
        if is_whole {
            return partition.rowstore.get(encoded).map_or(Ok(()), |node| see(&node));
        }
        // Longer keys than this come after it.
        let mut after: Key = encoded.into();
        let mut nodes = Vec::new();
        loop {
            nodes.clear();
            partition.rowstore.range_after(Some(&after), RUN, &mut nodes);
            let inside = nodes.iter().take_while(|node| node.key().starts_with(encoded)).count();
            nodes[..inside].iter().try_for_each(&mut see)?;
            match nodes.last() {
                Some(last) if inside == RUN => after = last.key().clone(),
                _ => return Ok(()),
            }
        }
    }
}

/// Rows of a segment whose key begins with some values, not all; none when there are none.
fn rows_of_key(table: &Table, segment: &Segment, prefix: &[Value]) -> Result<Option<Source>> {
    let columns = table.key_positions(segment)?;
    if segment.is_outside(&columns, prefix) {
        return Ok(None);
    }
    match table.key_order(segment)? {
        None => {
            let start = segment.lower_bound(&columns, prefix)?;
            let end = segment.upper_bound(&columns, prefix, start)?;
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
