//! Building the dictionary of a column: its distinct values, sorted, and the codes of its blocks.

use super::order::ascends;
use crate::{Bitmap, BytesColumn, Values};
use nacre_types::hash::Map;
use nacre_types::{PhysicalType, invariant, key};
use std::hash::Hash;

/// The dictionary of a column: its values, ascending, and the codes of every block.
pub(crate) struct Built {
    pub values: Values,
    pub codes: Vec<Vec<u32>>,
}

/// Builds the dictionary of a column. `None` if there are more than `max_values` distinct values,
/// or values that keys order as equal but that differ in their bits (NaN, negative zero). Null rows
/// get code 0.
pub(crate) fn build(blocks: &[(Values, Option<Bitmap>)], max_values: usize) -> Option<Built> {
    let (first, _) = blocks.first()?;
    match first.physical() {
        PhysicalType::Bool => None,
        PhysicalType::I64 => build_as(
            blocks,
            max_values,
            |values, row| if let Values::I64(v) = values { Some(v[row]) } else { None },
            Values::I64,
        ),
        PhysicalType::I128 => build_as(
            blocks,
            max_values,
            |values, row| if let Values::I128(v) = values { Some(v[row]) } else { None },
            Values::I128,
        ),
        PhysicalType::F64 => build_as(
            blocks,
            max_values,
            |values, row| match values {
                Values::F64(v) if !v[row].is_nan() && v[row].to_bits() != (-0.0f64).to_bits() => {
                    Some(key::order_f64(v[row]))
                }
                _ => None,
            },
            |ordered| Values::F64(ordered.into_iter().map(from_order).collect()),
        ),
        PhysicalType::Bytes => build_as(
            blocks,
            max_values,
            |values, row| if let Values::Bytes(v) = values { Some(v.get(row)) } else { None },
            |values| {
                let mut column = BytesColumn::default();
                values.into_iter().for_each(|v| column.push(v));
                Values::Bytes(column)
            },
        ),
    }
}

/// The inverse of [`key::order_f64`] for values allowed in a dictionary of floats.
fn from_order(ordered: u64) -> f64 {
    let value = f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered });
    debug_assert_eq!(key::order_f64(value), ordered, "the rank of {value}");
    value
}

fn build_as<'a, K: Hash + Ord + Copy>(
    blocks: &'a [(Values, Option<Bitmap>)],
    max_values: usize,
    at: impl Fn(&'a Values, usize) -> Option<K>,
    finish: impl Fn(Vec<K>) -> Values,
) -> Option<Built> {
    let mut numbers: Map<K, u32> = Map::default();
    let mut codes = Vec::with_capacity(blocks.len());
    for (values, validity) in blocks {
        let mut block = Vec::with_capacity(values.len());
        let mut previous: Option<(K, u32)> = None;
        for row in 0..values.len() {
            if validity.as_ref().is_some_and(|v| !v.get(row)) {
                block.push(0);
                continue;
            }
            let value = at(values, row)?;
            let number = match previous {
                Some((same, number)) if same == value => number,
                _ => {
                    let next = numbers.len() as u32;
                    *numbers.entry(value).or_insert(next)
                }
            };
            previous = Some((value, number));
            block.push(number);
        }
        if numbers.len() > max_values {
            return None;
        }
        codes.push(block);
    }
    if numbers.is_empty() {
        return None;
    }
    // Maps numbers in order of appearance to codes in value order.
    let mut sorted: Vec<(K, u32)> = numbers.into_iter().collect();
    sorted.sort_by_key(|(value, _)| *value);
    let mut code_of = vec![0u32; sorted.len()];
    for (code, (_, number)) in sorted.iter().enumerate() {
        code_of[*number as usize] = code as u32;
    }
    codes.iter_mut().flatten().for_each(|code| *code = code_of[*code as usize]);
    let values = finish(sorted.into_iter().map(|(value, _)| value).collect());
    invariant!(ascends(&values), "a dictionary of {} values does not ascend", values.len());
    debug_assert!(
        codes.iter().flatten().all(|code| (*code as usize) < values.len()),
        "a code outside its dictionary of {} values",
        values.len()
    );
    Some(Built { values, codes })
}
