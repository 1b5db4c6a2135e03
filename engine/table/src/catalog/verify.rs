//! Verifies that the rows of a table satisfy a new unique index, a new check, or a column that takes
//! no nulls any more.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::block_keys;
use crate::layout::keys::fingerprint;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_rowstore::{Node, Row};
use nacre_types::{CheckConstraint, Column, Result, TableSchema, Value, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Which rows of a table are verified.
pub(crate) trait VerifiedRows {
    /// The row of a node, if it is one of them.
    fn row(&self, node: &Node) -> Option<Row>;

    /// The segments of a partition.
    fn segments(&self, partition: &Partition) -> Arc<SegmentList>;

    /// Whether the rows of a listed segment are among them.
    fn has(&self, state: &SegmentState) -> bool {
        state.is_current()
    }

    /// The rows of a segment that are not among them.
    fn deleted(&self, state: &SegmentState) -> Arc<RoaringBitmap>;
}

/// The rows of the newest commit.
pub(crate) struct Committed;

impl VerifiedRows for Committed {
    fn row(&self, node: &Node) -> Option<Row> {
        node.newest().and_then(|version| version.change.into_row())
    }

    fn segments(&self, partition: &Partition) -> Arc<SegmentList> {
        partition.segments()
    }

    fn deleted(&self, state: &SegmentState) -> Arc<RoaringBitmap> {
        state.all_deleted()
    }
}

/// Checks all rows against the unique indexes that `old` did not have. Rows in memory must already
/// be indexed. The answer is final only under the commit lock.
pub(crate) fn new_indexes(table: &Table, old: &Table, rows: &dyn VerifiedRows) -> Result<()> {
    debug_assert!(table.shares_partitions(old), "an index is verified against another table");
    let mut new = table.unique_indexes().filter(|index| !old.has_index(index.id()));
    new.try_for_each(|index| unique(table, index, rows))
}

fn unique(table: &Table, index: &Index, rows: &dyn VerifiedRows) -> Result<()> {
    debug_assert!(index.is_unique(), "index {} is verified and not unique", index.name());
    let mut seen: Vec<(u64, u64)> = Vec::new();
    each_key(table, index, rows, &mut |key| {
        if !index.may_repeat(key) {
            seen.push(fingerprint(key));
        }
        Ok(())
    })?;
    seen.sort_unstable();
    let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]) else {
        return Ok(());
    };
    drop(seen);
    each_key(table, index, rows, &mut |key| {
        if fingerprint(key) == twice {
            Err(index.duplicate(&table.schema().name, key))
        } else {
            Ok(())
        }
    })
}

/// Visits the index keys of rows.
fn each_key(
    table: &Table,
    index: &Index,
    rows: &dyn VerifiedRows,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for partition in table.partitions() {
        each_entry(index, partition.number(), &[], None, |entry| {
            let node = partition.rowstore().get(entry.row_key());
            match node.and_then(|node: Arc<Node>| rows.row(&node)) {
                Some(row) if table.has_key(index, &row, entry.index_key())? => {
                    visit(entry.index_key())
                }
                _ => Ok(()),
            }
        })?;
        for state in rows.segments(partition).iter().filter(|state| rows.has(state)) {
            let deleted = rows.deleted(state);
            for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
                let keys = block_keys(table.layout(), index, state, start)?;
                debug_assert!(
                    keys.len() == limits::BLOCK_ROWS.min(state.segment.rows() - start),
                    "{} keys of the block at row {start}",
                    keys.len()
                );
                let live =
                    keys.iter().zip(start as u32..).filter(|(_, row)| !deleted.contains(*row));
                live.map(|(key, _)| key).try_for_each(|key| visit(key))?;
            }
        }
    }
    Ok(())
}

/// Whether rows that satisfy `old` may not satisfy `new`: there is another check, a column takes no
/// nulls any more, or a new index computes a column that may fail.
pub(crate) fn is_stricter(new: &TableSchema, old: &TableSchema) -> bool {
    let is_new = |check: &CheckConstraint| !old.checks.contains(check);
    let takes_null = |id| old.columns.iter().any(|c| c.id == id && c.nullable);
    let is_known = |id| old.computed.iter().any(|c| c.id == id);
    new.checks.iter().any(is_new)
        || new.columns.iter().any(|c| !c.nullable && takes_null(c.id))
        || new.computed.iter().any(|c| c.may_fail() && !is_known(c.id))
}

/// Checks rows of a table against all its rules. The answer is final only under the commit lock.
pub(crate) fn all_rows(table: &Table, verified: &dyn VerifiedRows) -> Result<()> {
    let types = table.schema().types();
    for partition in table.partitions() {
        let mut nodes = Vec::new();
        partition.rowstore().range_after(None, usize::MAX, &mut nodes);
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for node in nodes {
            if let Some(row) = verified.row(&node) {
                let row = table.layout().upgrade(row)?;
                let values = (0..types.len()).map(|at| table.layout().rows().value(&row, at));
                rows.push(values.collect());
            }
            if rows.len() >= limits::VECTOR_ROWS {
                table.check_batch(&Batch::from_rows(&types, &rows))?;
                rows.clear();
            }
        }
        debug_assert!(
            rows.len() < limits::VECTOR_ROWS,
            "{} rows are left after all full batches",
            rows.len()
        );
        table.check_batch(&Batch::from_rows(&types, &rows))?;
        for state in verified.segments(partition).iter().filter(|state| verified.has(state)) {
            segment_rows(table, state, &verified.deleted(state))?;
        }
    }
    Ok(())
}

fn segment_rows(table: &Table, state: &SegmentState, deleted: &RoaringBitmap) -> Result<()> {
    let segment = &state.segment;
    let mapping = table.layout().segment_mapping(segment);
    debug_assert!(
        mapping.len() == table.schema().columns.len(),
        "{} columns of a segment are mapped",
        mapping.len()
    );
    for start in (0..segment.rows()).step_by(limits::BLOCK_ROWS) {
        let count = limits::BLOCK_ROWS.min(segment.rows() - start);
        let column = |(column, place): (&Column, &Option<usize>)| match place {
            Some(at) => Ok(Arc::new(segment.decode(*at, start, count)?)),
            None => Ok(Arc::new(Vector::constant(column.data_type, &column.default, count))),
        };
        let columns = table.schema().columns.iter().zip(&mapping).map(column);
        let rows = Batch::new(columns.collect::<Result<_>>()?, count);
        let live = (0..count as u32).filter(|row| !deleted.contains(start as u32 + row)).collect();
        table.check_batch(&Batch { selection: Some(live), ..rows }.compact())?;
    }
    Ok(())
}
