//! What a scan in key order needs of a source: few rows at first, the last ones first, and bounds.

use super::Source;
use crate::expr;
use nacre_table::SegmentView;
use nacre_types::{Value, limits};

impl Source {
    /// Says that few rows may be enough: so many are looked at first, then ever more.
    pub fn start_small(&mut self, rows: usize) {
        self.vector_rows = rows.clamp(1, limits::VECTOR_ROWS);
    }

    /// Turns round the order in which blocks and vectors come, before the first one did.
    pub fn turn_round(&mut self) {
        self.turned = !self.turned;
        if let Some(current) = &mut self.current {
            current.blocks.reverse();
        }
    }

    /// What no row of these blocks comes before, and what none comes after, by one column, null being the smallest
    /// value; nothing where that is not known.
    pub fn bounds(
        &self,
        view: &SegmentView,
        blocks: &[usize],
        column: usize,
        descending: bool,
    ) -> (Option<Value>, Option<Value>) {
        let mut bounds: Option<(Value, Value)> = None;
        for block in blocks {
            let rows = view.segment.block_rows(*block);
            let zone = self.zone(view, column, *block, rows);
            let low = if zone.null_count > 0 { Value::Null } else { zone.min };
            bounds = Some(match bounds {
                None => (low, zone.max),
                Some((min, max)) => (smaller(min, low, true), smaller(max, zone.max, false)),
            });
        }
        let (min, max) = bounds.unzip();
        if descending { (max, min) } else { (min, max) }
    }
}

/// The smaller one of two values, or the larger; null is the smallest.
fn smaller(a: Value, b: Value, smaller: bool) -> Value {
    let less = match (a.is_null(), b.is_null()) {
        (false, false) => expr::compare_values(&a, &b).is_le(),
        (null, _) => null,
    };
    if less == smaller { a } else { b }
}
