//! Filters that a join derives from its keys at run time, once its build side is collected, and
//! that the scans of its probe side apply (after Bratbergsengen's and Graefe's bit vector
//! filtering). If there are few keys, a scan may also look them up in an index ("join index
//! filter": Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD 2022,
//! section 5.1).
//!
//! A [`KeyFilter`] is created empty, together with the operators; the join fills it before it reads
//! its probe side. It never drops a row that has a partner, and may pass any other: the join
//! decides. An empty filter passes every row, so leaving it empty is correct too. A sort with a
//! limit fills one, too: with a bound for its first key, which it lowers while it reads.

mod bound;
mod keys;
#[cfg(test)]
mod tests;

use crate::group::Grouper;
use bound::Bound;
pub use bound::Descending;
use keys::KeySet;
use nacre_column::kernel::Predicate;
use nacre_column::{Bitmap, Form, Values, Vector};
use nacre_sql::expr::Expr;
use nacre_sql::key_use;
use nacre_sql::plan::JoinKind;
use nacre_table::Zone;
use nacre_types::{DataType, Value, key};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Rows to test before deciding whether testing is worth it.
const TRIAL_ROWS: usize = 1 << 14;

/// The most keys of a join that are offered for lookups.
const MAX_LOOKUPS: usize = 1 << 14;

/// The values of one key column of a join's build side, or the bound of a sort's first key; shared by
/// all threads that scan below.
pub struct KeyFilter {
    test: Test,
    tested: AtomicUsize,
    passed: AtomicUsize,
    /// For lookups: the keys of the join, and the number of this key column.
    lookup: Option<(Arc<JoinKeys>, usize)>,
}

/// What a filter keeps.
enum Test {
    /// The keys of a join.
    Keys(OnceLock<KeySet>),
    /// Keys up to a bound.
    Bound(Bound),
}

impl Default for KeyFilter {
    fn default() -> KeyFilter {
        KeyFilter {
            test: Test::Keys(OnceLock::new()),
            tested: AtomicUsize::default(),
            passed: AtomicUsize::default(),
            lookup: None,
        }
    }
}

/// The distinct keys of a join's build side, if they are few: a vector for each key column, without
/// nulls.
#[derive(Default)]
pub struct JoinKeys(OnceLock<Vec<Arc<Vector>>>);

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

    /// The filter of a sort with a limit, for a first key of this type; `None` for a type whose
    /// values are not bounded.
    pub fn of_sort(
        data_type: DataType,
        order: Descending,
        nulls_first: bool,
    ) -> Option<Arc<KeyFilter>> {
        let test = Test::Bound(Bound::new(data_type, order, nulls_first)?);
        Some(Arc::new(KeyFilter { test, ..KeyFilter::default() }))
    }

    /// Fills the filter with the values of the build side. Only the first call counts.
    pub fn fill(&self, values: impl ExactSizeIterator<Item = i64> + Clone) {
        match &self.test {
            Test::Keys(keys) => drop(keys.set(KeySet::of(values))),
            Test::Bound(_) => debug_assert!(false, "a sort's filter has a bound, no values"),
        }
    }

    /// Lowers the bound of a sort to a value of its first key: the rows that the sort returns are at
    /// most that, and less if the bound is strict.
    pub fn tighten(&self, value: Value, is_strict: bool) {
        match &self.test {
            Test::Bound(bound) => bound.tighten(value, is_strict),
            Test::Keys(_) => debug_assert!(false, "a join's filter has no bound"),
        }
    }

    /// Whether this is the filter of a sort.
    pub fn is_bound(&self) -> bool {
        matches!(self.test, Test::Bound(_))
    }

    /// Those values of a set that a sort's filter keeps; `None` without a bound.
    pub fn bounded(&self, set: &Predicate) -> Option<Predicate> {
        match &self.test {
            Test::Bound(bound) => bound.bounded(set),
            Test::Keys(_) => None,
        }
    }

    /// Whether the filter is filled.
    pub fn is_filled(&self) -> bool {
        match &self.test {
            Test::Keys(keys) => keys.get().is_some(),
            Test::Bound(bound) => bound.is_known(),
        }
    }

    /// Whether the filter is filled and has dropped at least a quarter of the rows so far.
    pub fn is_worth_it(&self) -> bool {
        let tested = self.tested.load(Ordering::Relaxed);
        self.is_filled()
            && (tested < TRIAL_ROWS
                || self.passed.load(Ordering::Relaxed) < tested - tested / 8 * 2)
    }

    /// Whether a block with this zone may have a row with a partner.
    pub fn may_match(&self, zone: &Zone) -> bool {
        let keys = match &self.test {
            Test::Bound(bound) => return bound.may_match(zone),
            Test::Keys(keys) => keys,
        };
        let Some(keys) = keys.get() else { return true };
        match (key::integer(&zone.min), key::integer(&zone.max)) {
            (Some(min), Some(max)) => keys.any_between(min, max),
            // Nulls have no partner; a minimum that is null means that there are only nulls.
            _ => !zone.min.is_null(),
        }
    }

    /// Those of the rows that may have a partner, or sort before the bound.
    pub fn passing(&self, vector: &Vector, rows: &Bitmap) -> Bitmap {
        let Some(passed) = self.kept(vector, rows) else { return rows.clone() };
        self.tested.fetch_add(rows.count_ones(), Ordering::Relaxed);
        self.passed.fetch_add(passed.count_ones(), Ordering::Relaxed);
        passed
    }

    /// Like [`KeyFilter::passing`], and not counted; `None` if all rows pass untested.
    pub fn kept(&self, vector: &Vector, rows: &Bitmap) -> Option<Bitmap> {
        debug_assert_eq!(vector.len(), rows.len(), "a value for each row");
        match &self.test {
            Test::Bound(bound) => bound.passing(vector, rows),
            Test::Keys(keys) => keys.get().and_then(|keys| passing(keys, vector, rows)),
        }
    }
}

/// Those of the rows whose value may be a key; `None` for values that are not tested.
fn passing(keys: &KeySet, vector: &Vector, rows: &Bitmap) -> Option<Bitmap> {
    let passed = match vector.form() {
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
            _ => return None,
        },
        _ => return None,
    };
    Some(match vector.validity() {
        Some(valid) => passed.and(valid),
        None => passed,
    })
}

/// The filters that may be applied to a node's output, with the output column of each.
pub type RuntimeFilters = nacre_sql::Wanted<Arc<KeyFilter>>;

/// The filters that a join fills, by key; `None` for a key that no scan could use.
pub type JoinFilters = Vec<Option<Arc<KeyFilter>>>;

/// Fills the filters of a join from the groups of its build side.
pub fn fill(filters: &JoinFilters, grouper: &Grouper) {
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
pub fn filters_of(kind: JoinKind, keys: &[(Expr, Expr)]) -> JoinFilters {
    let all: Arc<JoinKeys> = Arc::default();
    let filter = |(at, (left, right)): (usize, &(Expr, Expr))| {
        let lookup = key_use(kind, left, right)?.is_exact.then(|| (all.clone(), at));
        Some(Arc::new(KeyFilter { lookup, ..KeyFilter::default() }))
    };
    keys.iter().enumerate().map(filter).collect()
}
