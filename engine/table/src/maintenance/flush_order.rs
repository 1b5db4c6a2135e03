//! The order in which a flush writes the rows of a table with a sort key.

use crate::table::version::Table;
use nacre_rowstore::{FlushMark, Node, Row};
use nacre_types::{Result, Timestamp};
use std::sync::Arc;

/// A rowstore row being flushed.
pub(super) struct FlushRow {
    pub node: Arc<Node>,
    /// Commit of the version being written.
    pub commit: Timestamp,
    /// Marks it as flushed; taken by the commit.
    pub mark: Option<FlushMark>,
}

/// A row with its position in the order of the sort key.
pub(super) struct SortedRow {
    pub order: Vec<u8>,
    pub row: Row,
    pub flush: FlushRow,
}

/// Sorts rows by the columns of a sort key, then by their keys.
pub(super) fn sorted(
    table: &Table,
    sort: &[usize],
    found: Vec<(Row, FlushRow)>,
) -> Result<Vec<SortedRow>> {
    let layout = table.layout();
    let with_order = |(row, flush): (Row, FlushRow)| {
        let values: Vec<_> = sort.iter().map(|column| layout.rows().value(&row, *column)).collect();
        let mut order = layout.encode_order(&values)?;
        order.extend_from_slice(flush.node.key());
        Ok(SortedRow { order, row, flush })
    };
    let mut rows = found.into_iter().map(with_order).collect::<Result<Vec<_>>>()?;
    rows.sort_by(|a, b| a.order.cmp(&b.order));
    debug_assert!(
        rows.windows(2).all(|pair| pair[0].order < pair[1].order),
        "two rows of a flush have the same key"
    );
    Ok(rows)
}

/// The position of the first row of a sorted part.
pub(super) fn first_order(part: &std::vec::IntoIter<SortedRow>) -> Option<&[u8]> {
    part.as_slice().first().map(|row| &row.order[..])
}
