//! The bound of a sort with a limit: once the sort knows as many rows as it returns, a row whose
//! first key sorts behind the last of them is dropped before its other columns are read.

use nacre_column::kernel::{self, Comparison, Predicate};
use nacre_column::{Bitmap, Form, Scalar, Values, Vector};
use nacre_function::kernel::order::compare_values;
use nacre_table::Zone;
use nacre_types::{DataType, PhysicalType, Value};
use std::cmp::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

/// Whether a sort key's greatest value comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descending(pub bool);

/// The last row that a sort may still return, by its first key.
pub(super) struct Bound {
    physical: PhysicalType,
    order: Descending,
    /// Whether nulls sort before all values.
    nulls_first: bool,
    last: RwLock<Option<Arc<Last>>>,
}

struct Last {
    value: Value,
    /// Whether a row with the same value is dropped, too.
    is_strict: bool,
    /// The values that pass.
    passing: Predicate,
}

/// Those of the rows for which a test holds.
fn some(rows: &Bitmap, test: impl Fn(usize) -> bool) -> Bitmap {
    Bitmap::of_ones(rows.ones().into_iter().filter(|row| test(*row as usize)), rows.len())
}

/// Whether a sort can bound a key of this type: its order is that of the stored numbers and texts.
fn is_bounded(data_type: DataType) -> bool {
    use DataType::{Binary, Decimal, Text, Uuid};
    data_type.is_integer()
        || data_type.is_moment()
        || matches!(data_type, Decimal { .. } | Text { .. } | Binary { .. } | Uuid)
}

impl Bound {
    /// No bound yet for keys of this type; `None` if there is never one.
    pub fn new(data_type: DataType, order: Descending, nulls_first: bool) -> Option<Bound> {
        let physical = data_type.physical();
        let last = RwLock::default();
        is_bounded(data_type).then_some(Bound { physical, order, nulls_first, last })
    }

    fn last(&self) -> Option<Arc<Last>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is a bound.
    pub fn is_known(&self) -> bool {
        self.last().is_some()
    }

    /// How two values sort.
    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        let order = compare_values(a, b);
        if self.order == Descending(true) { order.reverse() } else { order }
    }

    /// Lowers the bound to this value, unless it is lower already.
    pub fn tighten(&self, value: Value, is_strict: bool) {
        let op = match (self.order.0, is_strict) {
            (false, false) => Comparison::LessOrEqual,
            (false, true) => Comparison::Less,
            (true, false) => Comparison::GreaterOrEqual,
            (true, true) => Comparison::Greater,
        };
        if value.is_null() {
            return;
        }
        let Some(passing) = Predicate::compare(self.physical, op, &value) else { return };
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        let is_lower = last.as_ref().is_none_or(|last| match self.compare(&value, &last.value) {
            Ordering::Equal => is_strict && !last.is_strict,
            order => order.is_lt(),
        });
        if is_lower {
            *last = Some(Arc::new(Last { value, is_strict, passing }));
        }
    }

    /// The values of a set that pass; `None` without a bound.
    pub fn bounded(&self, set: &Predicate) -> Option<Predicate> {
        Some(self.last()?.passing.clone().and(set))
    }

    /// Whether a block with this zone may have a row that passes.
    pub fn may_match(&self, zone: &Zone) -> bool {
        let Some(last) = self.last() else { return true };
        if self.nulls_first && zone.null_count > 0 {
            return true;
        }
        let first = if self.order.0 { &zone.max } else { &zone.min };
        // A minimum that is null means that there are only nulls.
        !zone.min.is_null()
            && match self.compare(first, &last.value) {
                Ordering::Equal => !last.is_strict,
                order => order.is_lt(),
            }
    }

    /// Those of the rows that pass; `None` without a bound.
    pub fn passing(&self, vector: &Vector, rows: &Bitmap) -> Option<Bitmap> {
        let last = self.last()?;
        let passed = match vector.form() {
            // Comparing texts takes far longer than finding those that are left.
            Form::Flat(Values::Bytes(texts)) => {
                some(rows, |row| last.passing.accepts(&Scalar::Bytes(texts.get(row).into())))
            }
            _ => kernel::filter(vector, &last.passing).and(rows),
        };
        let passed = match vector.validity() {
            Some(valid) => passed.and(valid),
            None => passed,
        };
        Some(match vector.validity() {
            Some(valid) if self.nulls_first => passed.or(&rows.and_not(valid)),
            _ => passed,
        })
    }
}
