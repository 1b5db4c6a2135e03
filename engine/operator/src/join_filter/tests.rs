//! Filters pass every row that has a partner, and hardly any other.

use super::KeyFilter;
use super::keys::KeySet;
use nacre_column::{Bitmap, Values, Vector};
use nacre_table::Zone;
use nacre_types::hash::{Set, hash_u64};
use nacre_types::{DataType, Value};
use std::sync::Arc;

/// Sets of all shapes: none, narrow, wide and few, wide and many, at the ends of the domain.
fn sets() -> Vec<Vec<i64>> {
    vec![
        vec![],
        vec![7],
        (0..1000).map(|v| v * 3 - 500).collect(),
        (0..100).map(|v| v * 1_000_003).collect(),
        (0..50_000).map(|v| hash_u64(v) as i64).collect(),
        (0..100_000).map(|v| v * 40).collect(),
        vec![i64::MIN, -1, i64::MAX],
        vec![i64::MAX - 1, i64::MAX],
    ]
}

#[test]
fn values_of_the_set_are_found_and_few_others() {
    for values in sets() {
        let keys = KeySet::of(values.iter().copied());
        let known: Set<i64> = values.iter().copied().collect();
        assert!(values.iter().all(|v| keys.contains(*v)), "{} values", values.len());
        let strangers =
            (0..10_000).map(|v| hash_u64(v + 1_000_000) as i64).filter(|v| !known.contains(v));
        let wrong = strangers.filter(|v| keys.contains(*v)).count();
        assert!(wrong < 500, "{wrong} of 10,000 wrong with {} values", values.len());
    }
}

#[test]
fn bounds_of_blocks() {
    for values in sets() {
        let keys = KeySet::of(values.iter().copied());
        for v in values.iter().step_by(values.len() / 50 + 1) {
            for width in [0, 1, 100, 1 << 40] {
                assert!(keys.any_between(*v as i128 - width, *v as i128 + width));
            }
        }
        assert!(!keys.any_between(i64::MAX as i128 + 1, i64::MAX as i128 + 10));
    }
    let keys = KeySet::of((0..100_000i32).map(|v| v as i64 * 40));
    assert!(!keys.any_between(41, 79));
    assert!(!keys.any_between(-10, -1));
    assert!(keys.any_between(41, 80));
    let keys = KeySet::of((0..100i32).map(|v| v as i64 * 1_000_003));
    assert!(!keys.any_between(1_000_004, 2_000_000));
}

/// The rows of a vector that pass.
fn passing(filter: &KeyFilter, vector: &Vector) -> Vec<u32> {
    filter.passing(vector, &Bitmap::filled(vector.len(), true)).ones()
}

#[test]
fn rows_of_vectors_of_every_form() {
    let filter = KeyFilter::default();
    let flat = Vector::new(DataType::Int64, Values::I64((0..100).collect()), None);
    // A filter that is not filled passes everything.
    assert_eq!(passing(&filter, &flat).len(), 100);
    assert!(!filter.is_worth_it());
    filter.fill([3, 50, 1000].into_iter());
    assert!(filter.is_worth_it());
    assert_eq!(passing(&filter, &flat), [3, 50]);
    let three = Bitmap::of_ones([1, 3, 99], 100);
    assert_eq!(filter.passing(&flat, &three).ones(), [3]);
    let mut valid = Bitmap::filled(100, true);
    valid.set(3, false);
    let holes = Vector::new(DataType::Int64, Values::I64((0..100).collect()), Some(valid));
    assert_eq!(passing(&filter, &holes), [50]);
    let constant = |value| Vector::constant(DataType::Int64, &value, 4);
    assert_eq!(passing(&filter, &constant(Value::Int(50))), [0, 1, 2, 3]);
    assert!(passing(&filter, &constant(Value::Int(51))).is_empty());
    assert!(passing(&filter, &constant(Value::Null)).is_empty());
    let values = Arc::new(Values::I64(vec![3, 4]));
    let coded = Vector::dictionary(DataType::Int64, vec![0, 1, 1, 0], values, None);
    assert_eq!(passing(&filter, &coded), [0, 3]);
}

#[test]
fn a_filter_that_drops_no_rows_is_not_worth_it() {
    let filter = KeyFilter::default();
    filter.fill((0..1000i32).map(i64::from));
    let all = Vector::new(DataType::Int64, Values::I64((0..1000).collect()), None);
    (0..20).for_each(|_| drop(passing(&filter, &all)));
    assert!(!filter.is_worth_it());
}

#[test]
fn zones() {
    let filter = KeyFilter::default();
    let zone = |min, max| Zone { min, max, null_count: 0, exact: true };
    assert!(filter.may_match(&zone(Value::Int(0), Value::Int(1))));
    filter.fill([3, 50].into_iter());
    assert!(filter.may_match(&zone(Value::Int(0), Value::Int(3))));
    assert!(!filter.may_match(&zone(Value::Int(4), Value::Int(49))));
    assert!(!filter.may_match(&zone(Value::Null, Value::Null)));
}
