//! Run-time filters: what a join knows about its keys once its build side is collected, told to the scans of its
//! probe side (after Bratbergsengen's and Graefe's "bit vector filtering"). When the keys are few, they are told as they
//! are too, so that a scan can look them up in an index instead (SIGMOD 2022 paper, 5.1: "join index filter").
//!
//! A [`KeyFilter`] is made together with the operators and empty at first; the join fills it before it asks its
//! probe side for a row. It never holds back a row that has a partner, and lets others pass as it likes: the join
//! decides. An empty one lets all pass, so that who never fills one is right too.

mod keys;
#[cfg(test)]
mod tests;

use crate::expr::ActiveRows;
use crate::group::Grouper;
use keys::Keys;
use nacre_column::{Form, Values, Vector};
use nacre_sql::expr::Expr;
use nacre_sql::key_use;
use nacre_sql::plan::JoinKind;
use nacre_table::Zone;
use nacre_types::key;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Rows that are tested before it is asked whether testing is worth it.
const TRIAL_ROWS: usize = 1 << 14;

/// More keys of a join than these are not told one by one.
const MAX_LOOKUPS: usize = 1 << 14;

/// The values of one key of a join's build side, for all threads that scan its probe side.
#[derive(Default)]
pub(crate) struct KeyFilter {
    keys: OnceLock<Keys>,
    tested: AtomicUsize,
    passed: AtomicUsize,
    /// The values can be looked for one by one: those of the join, and which of its keys this is about.
    lookup: Option<(Arc<JoinKeys>, usize)>,
}

/// The different keys of a join's build side, if they are few: a vector for each of its columns, without nulls.
#[derive(Default)]
pub(crate) struct JoinKeys(OnceLock<Vec<Arc<Vector>>>);

impl JoinKeys {
    /// The vectors, once they are known.
    pub fn get(&self) -> Option<&[Arc<Vector>]> {
        self.0.get().map(Vec::as_slice)
    }
}

impl KeyFilter {
    /// The join's keys, if they may be looked up one by one, and which of their columns this is about.
    pub fn lookup(&self) -> Option<(&Arc<JoinKeys>, usize)> {
        self.lookup.as_ref().map(|(keys, at)| (keys, *at))
    }

    /// Says what values there are. Only the first call counts.
    pub fn fill(&self, values: impl ExactSizeIterator<Item = i64> + Clone) {
        let _ = self.keys.set(Keys::of(values));
    }

    /// Whether it is filled, and has not let pass nearly everything so far.
    pub fn is_worth_it(&self) -> bool {
        let tested = self.tested.load(Ordering::Relaxed);
        self.keys.get().is_some()
            && (tested < TRIAL_ROWS
                || self.passed.load(Ordering::Relaxed) < tested - tested / 8 * 2)
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
    pub fn select(&self, vector: &Vector, rows: ActiveRows<'_>) -> Vec<u32> {
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
                    out.extend(
                        rows.iter()
                            .filter(|row| passes[codes[*row] as usize])
                            .map(|row| row as u32),
                    );
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

/// The filters that may be applied to a node's output.
pub(crate) type Wanted = nacre_sql::Wanted<Arc<KeyFilter>>;

/// What a join fills, by key; none where nobody could use it.
pub(crate) type Filters = Vec<Option<Arc<KeyFilter>>>;

/// Tells all filters of a join what its keys are.
pub(crate) fn fill(filters: &Filters, grouper: &Grouper) {
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
pub(crate) fn filters_of(kind: JoinKind, keys: &[(Expr, Expr)]) -> Filters {
    let all: Arc<JoinKeys> = Arc::default();
    let filter = |(at, (left, right)): (usize, &(Expr, Expr))| {
        let lookup = key_use(kind, left, right)?.is_exact.then(|| (all.clone(), at));
        Some(Arc::new(KeyFilter { lookup, ..KeyFilter::default() }))
    };
    keys.iter().enumerate().map(filter).collect()
}
