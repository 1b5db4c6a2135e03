//! What the segments of a flush or a merge must look like: recovery refuses any others, and searches
//! rely on their order.

use crate::layout::table_layout::TableLayout;
use crate::segments::part::parts_of;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::{Value, invariant, key};
use std::sync::Arc;

/// A segment has the columns of its table, those that its rows are ordered by, and a part of each
/// index.
pub(super) fn check_segment(table: &Table, segment: &Arc<Segment>) {
    let layout = table.layout();
    debug_assert!(
        layout.segment_columns().iter().all(|c| segment.column_index(c.id).is_some()),
        "segment {} lacks a column of table {}",
        segment.id(),
        table.schema().name
    );
    debug_assert!(
        layout.order_columns(segment).is_ok() && layout.key_order(segment).is_ok(),
        "segment {} lacks a column that its rows are ordered by",
        segment.id()
    );
    let parts = parts_of(segment);
    invariant!(
        table.indexes().iter().all(|index| {
            let mut own = parts.iter().filter(|part| part.index() == index.id());
            // A footer that cannot be read any more is reported by its next reader.
            own.next().is_some_and(|p| p.fits(index.types(), segment.rows()).unwrap_or(true))
        }),
        "segment {} lacks a part of an index",
        segment.id()
    );
}

/// Segments that were written one after the other make one run: no row of one comes before a row of
/// the segment before it.
pub(super) fn check_run<'a>(layout: &TableLayout, run: impl Iterator<Item = &'a Segment>) {
    let mut last: Option<Vec<u8>> = None;
    for segment in run {
        let ends = ends_of(layout, segment);
        let (first, end) = ends.map_or((None, None), |(first, end)| (Some(first), Some(end)));
        debug_assert!(
            last.is_none() || first.is_none() || last <= first,
            "rows of segment {} come before those of the one before it",
            segment.id()
        );
        last = end;
    }
}

/// The least and the greatest value, encoded, of the first column that the rows of a segment are
/// ordered by; `None` if it has nulls, or if its footer has only bounds of the values.
fn ends_of(layout: &TableLayout, segment: &Segment) -> Option<(Vec<u8>, Vec<u8>)> {
    let position = *layout.order_columns(segment).ok()?.first()?;
    let columns = segment.columns().ok()?;
    let column = columns.get(position).filter(|c| c.exact && c.null_count == 0)?;
    let encode = |value: &Value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, column.data_type, value).ok().map(|()| bytes)
    };
    Some((encode(&column.min)?, encode(&column.max)?))
}
