//! Verifies that the rows of a table satisfy a new check, or a column that takes no nulls any more,
//! and, in [`unique`], a new unique index.
//!
//! First all rows are looked at, beside writers; then those that were committed meanwhile, until few
//! are left; and in the end the last ones, while the gate of the table is closed. The commit lock is
//! not held in any of these.

use crate::catalog::to_verify::ToVerify;
use crate::catalog::unique;
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_types::{CheckConstraint, Column, Result, TableSchema, Value, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Whether rows that satisfy `old` may not satisfy `new`: there is another check, a column takes no
/// nulls any more, or is new and has nulls in rows that are older, or a new index computes a column that
/// may fail.
fn is_stricter(new: &TableSchema, old: &TableSchema) -> bool {
    let is_new = |check: &CheckConstraint| !old.checks.contains(check);
    let may_be_null = |column: &Column| match old.columns.iter().find(|c| c.id == column.id) {
        Some(before) => before.nullable,
        None => column.must_be_given(),
    };
    let is_known = |id| old.computed.iter().any(|c| c.id == id);
    new.checks.iter().any(is_new)
        || new.columns.iter().any(|c| !c.nullable && may_be_null(c))
        || new.computed.iter().any(|c| c.may_fail() && !is_known(c.id))
}

/// Whether a new version of a table asks more of its rows, or of their keys, than the old one, or has
/// indexes that they must be entered in.
pub(crate) fn asks_more(new: &Table, old: &Table) -> bool {
    debug_assert!(new.shares_partitions(old), "the rows of another table are asked for more");
    is_stricter(new.schema(), old.schema()) || adds_index(new, old)
}

/// Whether a new version of a table refers to other rows than the old one, or is referred to by others.
pub(crate) fn changes_references(new: &Table, old: &Table) -> bool {
    debug_assert!(new.id() == old.id(), "table {} is compared with {}", new.id(), old.id());
    let (new, old) = (new.schema(), old.schema());
    new.foreign_keys != old.foreign_keys || new.referenced_by != old.referenced_by
}

/// Whether a new version of a table has an index that the old one does not have.
pub(crate) fn adds_index(new: &Table, old: &Table) -> bool {
    new.indexes().iter().any(|index| !old.has_index(index.id()))
}

/// Whether a new version of a table has a unique index that the old one does not have.
pub(crate) fn adds_unique(new: &Table, old: &Table) -> bool {
    new.unique_indexes().any(|index| !old.has_index(index.id()))
}

/// Checks rows against what a new version of a table demands and the old one did not. Rows in memory
/// must already be in new unique indexes. The answer is final only while the table's gate is closed.
/// Returns how many rows were looked at for rules.
pub(crate) fn verify(new: &Table, old: &Table, to_verify: ToVerify<'_>) -> Result<usize> {
    let rows = match is_stricter(new.schema(), old.schema()) {
        true => rules(new, to_verify)?,
        false => 0,
    };
    unique::verify(new, old, to_verify).map(|()| rows)
}

/// Checks rows of a table against all its rules. Returns how many.
fn rules(table: &Table, to_verify: ToVerify<'_>) -> Result<usize> {
    let types = table.schema().types();
    let mut count = 0;
    for partition in table.partitions() {
        // Listed first: a row that is flushed meanwhile is in memory, or in a segment that is newer.
        let list = to_verify.rows.segments(partition);
        let mut rows: Vec<Vec<Value>> = Vec::new();
        partition.try_each_node(|node| {
            let row = to_verify.has_node(node).then(|| to_verify.rows.row(node)).flatten();
            if let Some(row) = row {
                let row = table.layout().upgrade(row)?;
                let values = (0..types.len()).map(|at| table.layout().rows().value(&row, at));
                rows.push(values.collect());
                count += 1;
            }
            if rows.len() >= limits::VECTOR_ROWS {
                table.check_batch(&Batch::from_rows(&types, &rows))?;
                rows.clear();
            }
            Ok(())
        })?;
        debug_assert!(
            rows.len() < limits::VECTOR_ROWS,
            "{} rows are left after all full batches",
            rows.len()
        );
        table.check_batch(&Batch::from_rows(&types, &rows))?;
        for state in list.iter().filter(|state| to_verify.has_segment(state)) {
            segment_rows(table, state, &to_verify.rows.deleted(state))?;
            count += state.segment.rows();
        }
    }
    Ok(count)
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
