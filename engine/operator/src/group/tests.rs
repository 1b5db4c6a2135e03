//! Groups are numbered in the order keys are first seen, whatever that order is and whichever table
//! holds them.

use super::grouper::{Grouper, Seen};
use crate::buffer::limits::NO_ROW;
use crate::expr::ActiveRows;
use nacre_column::{Values, Vector};
use nacre_types::hash::{Map, hash_u64};
use nacre_types::{DataType, Value};
use std::sync::Arc;

fn keys(values: &[Option<i64>]) -> Vec<Arc<Vector>> {
    let values: Vec<Value> = values.iter().map(|v| v.map_or(Value::Null, Value::Int)).collect();
    vec![Arc::new(Vector::from_values(DataType::Int64, &values))]
}

/// The same keys, none of them null, as codes of a dictionary that has a value more.
fn as_dictionary(keys: &[Option<i64>]) -> Option<Vec<Arc<Vector>>> {
    let values: Vec<i64> = keys.iter().copied().collect::<Option<_>>()?;
    let mut distinct = values.clone();
    distinct.push(i64::MIN + 1);
    distinct.sort_unstable();
    distinct.dedup();
    let code = |value| distinct.binary_search(value).unwrap() as u32;
    let codes = values.iter().map(code).collect();
    let distinct = Arc::new(Values::I64(distinct.clone()));
    Some(vec![Arc::new(Vector::dictionary(DataType::Int64, codes, distinct, None))])
}

/// Orders of a range of keys: ascending, far apart first, random, each key several times, and with
/// distant keys last.
fn orders() -> Vec<Vec<Option<i64>>> {
    let n = 40_000;
    let ascending: Vec<i64> = (0..n).collect();
    let apart: Vec<i64> = (0..n).map(|v| v * 7_919 % n).collect();
    let chance: Vec<i64> =
        (0..2 * n).map(|v| (hash_u64(v as u64) % n as u64) as i64 - 20_000).collect();
    let runs: Vec<i64> = (0..2 * n).map(|v| v / 4 * 16).collect();
    let outliers: Vec<i64> =
        apart.iter().copied().chain([i64::MIN, 5, i64::MAX]).chain(n..2 * n).collect();
    let every = [ascending, apart, chance, runs, outliers];
    let with_nulls =
        |values: &Vec<i64>| values.iter().map(|v| (v % 101 != 7).then_some(*v)).collect();
    let without = |values: &Vec<i64>| values.iter().copied().map(Some).collect();
    every.iter().map(with_nulls).chain(every.iter().map(without)).collect()
}

#[test]
fn groups_are_numbered_as_keys_are_first_seen() {
    let mut dense_again = 0;
    for values in orders() {
        let mut grouper = Grouper::new(&[DataType::Int64]);
        let mut known: Map<Option<i64>, u32> = Map::default();
        let (mut out, mut left) = (Vec::new(), false);
        for (at, part) in values.chunks(1_000).enumerate() {
            let coded = as_dictionary(part).filter(|_| at % 2 == 1);
            let keys = coded.unwrap_or_else(|| keys(part));
            grouper.assign(&keys, ActiveRows::all(part.len()), &mut out).unwrap();
            for (value, group) in part.iter().zip(&out) {
                let next = known.len() as u32;
                assert_eq!(*known.entry(*value).or_insert(next), *group, "{value:?}");
            }
            dense_again += usize::from(left && grouper.dense.is_some());
            left = grouper.dense.is_none();
        }
        assert_eq!(grouper.groups(), known.len());
        let asked: Vec<Option<i64>> =
            values.iter().copied().chain((90_000..91_000).map(Some)).collect();
        let mut seen = Seen::default();
        for part in asked.chunks(1_000) {
            grouper.lookup(&keys(part), ActiveRows::all(part.len()), &mut seen, &mut out).unwrap();
            for (value, group) in part.iter().zip(&out) {
                assert_eq!(known.get(value).copied().unwrap_or(NO_ROW), *group, "{value:?}");
            }
        }
    }
    assert!(dense_again > 1, "tables became dense again {dense_again} times");
}
