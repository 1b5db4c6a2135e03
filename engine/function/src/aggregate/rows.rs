//! Rows that aggregates count.

use crate::vector::rows::ActiveRows;
use nacre_column::{Bitmap, Vector};
use nacre_types::{DataType, Error};

/// Those of the rows at which an argument is not null, so that loops need not look for nulls.
pub(super) fn not_null<'s>(
    vector: &Vector,
    rows: ActiveRows<'s>,
    selection: &'s mut Vec<u32>,
) -> ActiveRows<'s> {
    let Some(validity) = vector.validity() else { return rows };
    selection.extend(rows.iter().filter(|row| validity.get(*row)).map(|row| row as u32));
    rows.narrowed(selection)
}

/// The validity of results of which some are null.
pub(super) fn validity(valid: impl ExactSizeIterator<Item = bool>) -> Option<Bitmap> {
    let mut out = Bitmap::filled(valid.len(), true);
    let mut nulls = false;
    for (at, valid) in valid.enumerate() {
        if !valid {
            out.set(at, false);
            nulls = true;
        }
    }
    nulls.then_some(out)
}

/// A state of a group; its default if no row came for it.
pub(super) fn state<T: Copy + Default>(states: &[T], at: usize) -> T {
    states.get(at).copied().unwrap_or_default()
}

/// The error of an argument of a type the aggregate is not made for.
#[cold]
pub(super) fn wrong(data_type: DataType) -> Error {
    Error::type_error(format!("an aggregate was given {data_type}"))
}

/// The error of states that are merged with those of another aggregate.
#[cold]
pub(super) fn unlike() -> Error {
    Error::type_error("states of different aggregates cannot be merged")
}
