//! The dense table of a grouper, addressed by the values of the key columns.

use super::codes::Codes;
use crate::buffer::limits::NO_ROW;
use nacre_column::kernel::groups_of;
use nacre_column::{Form, Values, Vector};

/// One column's extent in the dense table: code 0 is null, code `n` is the value `low + n - 1`.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub low: i64,
    pub size: usize,
}

/// Index of each row's group in the dense table. Null is at 0 of its axis.
pub(super) fn dense_slots(axes: &[Axis], codes: &[Codes], n: usize) -> Vec<usize> {
    let mut at = vec![0usize; n];
    for (codes, axis) in codes.iter().zip(axes) {
        for (at, v) in at.iter_mut().zip(&codes.values) {
            *at = at
                .wrapping_mul(axis.size)
                .wrapping_add((v.wrapping_sub(axis.low) as usize).wrapping_add(1));
        }
        if let Some(nulls) = &codes.nulls {
            for (k, null) in nulls.iter().enumerate() {
                if *null {
                    let code = (codes.values[k].wrapping_sub(axis.low) as usize).wrapping_add(1);
                    at[k] = at[k].wrapping_sub(code);
                }
            }
        }
    }
    at
}

/// The group of each row in the dense table; [`NO_ROW`] for rows of no group.
pub(super) fn dense_lookup(
    axes: &[Axis],
    slots: &[u32],
    codes: &[Codes],
    n: usize,
    out: &mut Vec<u32>,
) {
    if axes.is_empty() {
        return out.resize(n, NO_ROW);
    }
    // A value outside its axis belongs to no group; its index is meaningless.
    let mut outside = vec![false; n];
    for (codes, axis) in codes.iter().zip(axes) {
        for (k, outside) in outside.iter_mut().enumerate() {
            // Computed in 64 bits: the distance may not fit in a 32-bit `usize`.
            let distance = codes.values[k].wrapping_sub(axis.low) as u64;
            *outside |= !codes.is_null(k) && distance >= axis.size as u64 - 1;
        }
    }
    let at = dense_slots(axes, codes, n);
    out.extend(
        at.into_iter().zip(outside).map(|(at, outside)| if outside { NO_ROW } else { slots[at] }),
    );
}

/// The group of each row in one pass, if the key is one column of integers without nulls that all have groups;
/// else returns false.
pub(super) fn known_groups(
    axes: &[Axis],
    slots: &[u32],
    vector: &Vector,
    out: &mut Vec<u32>,
) -> bool {
    let [axis] = axes else { return false };
    if vector.validity().is_some() {
        return false;
    }
    match vector.form() {
        // The first one is that of null.
        Form::Flat(Values::I64(values)) => groups_of(values, axis.low, &slots[1..], NO_ROW, out),
        _ => false,
    }
}
