//! Filters that a join derives from its keys at run time, once its build side is collected, and
//! that the scans of its probe side apply (after Bratbergsengen's and Graefe's bit vector
//! filtering). If there are few keys, a scan may also look them up in an index ("join index
//! filter": Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD 2022,
//! section 5.1).
//!
//! A [`KeyFilter`] is created empty, together with the operators; the join fills it before it reads
//! its probe side. It never drops a row that has a partner, and may pass any other: the join
//! decides. An empty filter passes every row, so leaving it empty is correct too.

mod keys;
#[cfg(test)]
mod tests;

use crate::group::Grouper;
use keys::KeySet;
use nacre_column::{Bitmap, Form, Values, Vector};
use nacre_sql::expr::Expr;
use nacre_sql::key_use;
use nacre_sql::plan::JoinKind;
use nacre_table::Zone;
use nacre_types::key;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Rows to test before deciding whether testing is worth it.
const TRIAL_ROWS: usize = 1 << 14;

/// The most keys of a join that are offered for lookups.
const MAX_LOOKUPS: usize = 1 << 14;

/// The values of one key column of a join's build side, shared by all threads that scan its probe
/// side.
#[derive(Default)]
pub(crate) struct KeyFilter {
    keys: OnceLock<KeySet>,
    tested: AtomicUsize,
    passed: AtomicUsize,
    /// For lookups: the keys of the join, and the number of this key column.
    lookup: Option<(Arc<JoinKeys>, usize)>,
}

/// The distinct keys of a join's build side, if they are few: a vector for each key column, without
/// nulls.
#[derive(Default)]
pub(crate) struct JoinKeys(OnceLock<Vec<Arc<Vector>>>);

impl JoinKeys {
    /// The vectors, once they are known.
    pub fn get(&self) -> Option<&[Arc<Vector>]> {
        self.0.get().map(Vec::as_slice)
    }
}

impl KeyFilter {
    /// The join's keys, if they may be looked up, and the number of this key column.
    pub fn lookup(&self) -> Option<(&Arc<JoinKeys>, usize)> {
        self.lookup.as_ref().map(|(keys, at)| (keys, *at))
    }

    /// Fills the filter with the values of the build side. Only the first call counts.
    pub fn fill(&self, values: impl ExactSizeIterator<Item = i64> + Clone) {
        let _ = self.keys.set(KeySet::of(values));
    }

    /// Whether the filter is filled and has dropped at least a quarter of the rows so far.
    pub fn is_worth_it(&self) -> bool {
        let tested = self.tested.load(Ordering::Relaxed);
        self.keys.get().is_some()
            && (tested < TRIAL_ROWS
                || self.passed.load(Ordering::Relaxed) < tested - tested / 8 * 2)
    }

    /// Whether a block with this zone may have a row with a partner.
    pub fn may_match(&self, zone: &Zone) -> bool {
        let Some(keys) = self.keys.get() else { return true };
        match (key::integer(&zone.min), key::integer(&zone.max)) {
            (Some(min), Some(max)) => keys.any_between(min, max),
            // Nulls have no partner; a minimum that is null means that there are only nulls.
            _ => !zone.min.is_null(),
        }
    }

    /// Those of the rows that may have a partner.
    pub fn passing(&self, vector: &Vector, rows: &Bitmap) -> Bitmap {
        debug_assert_eq!(vector.len(), rows.len(), "a value for each row");
        let Some(keys) = self.keys.get() else { return rows.clone() };
        let mut passed = match vector.form() {
            Form::Flat(Values::I64(values)) => keys.passing(values, rows),
            Form::Constant(Values::I64(values)) => {
                match values.first().is_some_and(|v| keys.contains(*v)) {
                    true => rows.clone(),
                    false => Bitmap::filled(rows.len(), false),
                }
            }
            Form::Dictionary { codes, values } => match &**values {
                Values::I64(values) => {
                    let passes: Vec<bool> = values.iter().map(|v| keys.contains(*v)).collect();
                    rows.filtered(codes, |code| passes[code as usize])
                }
                _ => return rows.clone(),
            },
            _ => return rows.clone(),
        };
        if let Some(valid) = vector.validity() {
            passed = passed.and(valid);
        }
        self.tested.fetch_add(rows.count_ones(), Ordering::Relaxed);
        self.passed.fetch_add(passed.count_ones(), Ordering::Relaxed);
        passed
    }
}

/// The filters that may be applied to a node's output, with the output column of each.
pub(crate) type RuntimeFilters = nacre_sql::Wanted<Arc<KeyFilter>>;

/// The filters that a join fills, by key; `None` for a key that no scan could use.
pub(crate) type JoinFilters = Vec<Option<Arc<KeyFilter>>>;

/// Fills the filters of a join from the groups of its build side.
pub(crate) fn fill(filters: &JoinFilters, grouper: &Grouper) {
    for (key, filter) in filters.iter().enumerate() {
        let Some(filter) = filter else { continue };
        if let Some(values) = grouper.integers(key) {
            filter.fill(values);
        }
        if let Some((keys, _)) = &filter.lookup
            && grouper.groups() <= MAX_LOOKUPS
        {
            keys.0.get_or_init(|| grouper.key_vectors(0, grouper.groups()));
        }
    }
}

/// A filter for each key of a join that its left side could use.
pub(crate) fn filters_of(kind: JoinKind, keys: &[(Expr, Expr)]) -> JoinFilters {
    let all: Arc<JoinKeys> = Arc::default();
    let filter = |(at, (left, right)): (usize, &(Expr, Expr))| {
        let lookup = key_use(kind, left, right)?.is_exact.then(|| (all.clone(), at));
        Some(Arc::new(KeyFilter { lookup, ..KeyFilter::default() }))
    };
    keys.iter().enumerate().map(filter).collect()
}
