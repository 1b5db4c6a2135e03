//! Run-time filters: what a join knows about its keys once its build side is collected, told to the scans of its
//! probe side (after Bratbergsengen's and Graefe's "bit vector filtering").
//!
//! A [`KeyFilter`] is made together with the operators and empty at first; the join fills it before it asks its
//! probe side for a row. It never holds back a row that has a partner, and lets others pass as it likes: the join
//! decides. An empty one lets all pass, so that who never fills one is right too.

mod keys;
mod route;
#[cfg(test)]
mod tests;

pub(crate) use route::Wanted;

use crate::expr::Rows;
use keys::Keys;
use nacre_column::{Form, Values, Vector};
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::plan::JoinKind;
use nacre_table::Zone;
use nacre_types::{DataType, PhysicalType, key};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Rows that are tested before it is asked whether testing is worth it.
const TRIAL_ROWS: usize = 1 << 14;

/// The values of one key of a join's build side, for all threads that scan its probe side.
#[derive(Default)]
pub(crate) struct KeyFilter {
    keys: OnceLock<Keys>,
    tested: AtomicUsize,
    passed: AtomicUsize,
}

impl KeyFilter {
    /// Says what values there are. Only the first call counts.
    pub fn fill(&self, values: impl ExactSizeIterator<Item = i64> + Clone) {
        let _ = self.keys.set(Keys::of(values));
    }

    /// Whether it is filled, and has not let pass nearly everything so far.
    pub fn is_worth_it(&self) -> bool {
        let tested = self.tested.load(Ordering::Relaxed);
        self.keys.get().is_some()
            && (tested < TRIAL_ROWS || self.passed.load(Ordering::Relaxed) < tested - tested / 8 * 2)
    }

    /// Whether a block of these bounds may have a row with a partner.
    pub fn may_match(&self, zone: &Zone) -> bool {
        let Some(keys) = self.keys.get() else { return true };
        match (key::integer(&zone.min), key::integer(&zone.max)) {
            (Some(min), Some(max)) => keys.any_between(min, max),
            // Nothing but nulls, which have no partner.
            _ => !zone.min.is_null(),
        }
    }

    /// Those of `rows` that may have a partner.
    pub fn select(&self, vector: &Vector, rows: Rows<'_>) -> Vec<u32> {
        let Some(keys) = self.keys.get() else { return rows.to_selection() };
        let valid = |row: usize| vector.validity().is_none_or(|v| v.get(row));
        let mut out = Vec::new();
        match vector.form() {
            Form::Flat(Values::I64(values)) => keys.select(values, rows, &mut out),
            Form::Constant(Values::I64(values)) => {
                if values.first().is_some_and(|v| keys.contains(*v)) {
                    out = rows.to_selection();
                }
            }
            Form::Dictionary { codes, values } => match &**values {
                Values::I64(values) => {
                    let passes: Vec<bool> = values.iter().map(|v| keys.contains(*v)).collect();
                    out.extend(rows.iter().filter(|row| passes[codes[*row] as usize]).map(|row| row as u32));
                }
                _ => return rows.to_selection(),
            },
            _ => return rows.to_selection(),
        }
        if vector.validity().is_some() {
            out.retain(|row| valid(*row as usize));
        }
        self.tested.fetch_add(rows.count(), Ordering::Relaxed);
        self.passed.fetch_add(out.len(), Ordering::Relaxed);
        out
    }
}

/// What a join fills, by key; none where nobody could use it.
pub(crate) type Filters = Vec<Option<Arc<KeyFilter>>>;

/// Whether a left row without a partner is of no use to a join.
fn drops_left(kind: JoinKind) -> bool {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    matches!(kind, Inner | Semi | Right | RightSemi | RightAnti)
}

/// A filter for each key of a join that its left side could use.
pub(crate) fn filters_of(kind: JoinKind, keys: &[(Expr, Expr)]) -> Filters {
    let useful = |(left, right): &(Expr, Expr)| {
        drops_left(kind)
            && matches!(left.kind, ExprKind::Column(_))
            && [left, right].iter().all(|e| e.data_type.physical() == PhysicalType::I64)
            && left.data_type != DataType::UInt64
            && right.data_type != DataType::UInt64
    };
    keys.iter().map(|key| useful(key).then(Arc::default)).collect()
}
