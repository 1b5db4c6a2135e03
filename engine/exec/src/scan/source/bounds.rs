//! Bounds of a column over some blocks, from their zone maps.

use super::columns::StoredColumns;
use nacre_operator::expr;
use nacre_table::{SegmentView, Span};
use nacre_types::{Result, Value};

/// The least and greatest values of a column in these blocks, where null is the least; `None`
/// without blocks, or if they are not known.
pub(in crate::scan) fn bounds(
    columns: &StoredColumns,
    view: &SegmentView,
    blocks: &[usize],
    column: usize,
) -> Result<Option<(Value, Value)>> {
    let mut bounds: Option<(Value, Value)> = None;
    for block in blocks {
        let Some(zone) = columns.zone(view, column, Span::Block(*block))? else { return Ok(None) };
        let low = if zone.null_count > 0 { Value::Null } else { zone.min };
        bounds = Some(match bounds {
            None => (low, zone.max),
            Some((min, max)) => (least(min, low), greatest(max, zone.max)),
        });
    }
    Ok(bounds)
}

/// The lesser of two values; null is the least.
fn least(a: Value, b: Value) -> Value {
    if is_less(&a, &b) { a } else { b }
}

/// The greater of two values; null is the least.
fn greatest(a: Value, b: Value) -> Value {
    if is_less(&a, &b) { b } else { a }
}

fn is_less(a: &Value, b: &Value) -> bool {
    match (a.is_null(), b.is_null()) {
        (false, false) => expr::compare_values(a, b).is_le(),
        (null, _) => null,
    }
}
