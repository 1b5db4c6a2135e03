//! The rows that aggregates process.

use crate::entry::aggregate::State;
use crate::vector::rows::ActiveRows;
use nacre_column::{Bitmap, Vector};
use nacre_types::{DataType, Error, Result};
use std::any::Any;
use std::sync::Arc;

/// The rows at which an argument is not null, so that loops need not check for nulls.
pub(super) fn not_null<'s>(
    vector: &Vector,
    rows: ActiveRows<'s>,
    selection: &'s mut Vec<u32>,
) -> ActiveRows<'s> {
    let Some(validity) = vector.validity() else { return rows };
    selection.extend(rows.iter().filter(|row| validity.get(*row)).map(|row| row as u32));
    rows.narrowed(selection)
}

/// Returns the first argument and the rows at which it is not null; `None` for an argument that is
/// only null.
pub(super) fn counted<'a>(
    args: &'a [Arc<Vector>],
    rows: ActiveRows<'a>,
    selection: &'a mut Vec<u32>,
) -> Option<(&'a Vector, ActiveRows<'a>)> {
    let arg = args.first().filter(|arg| arg.data_type() != DataType::Null)?;
    Some((arg, not_null(arg, rows, selection)))
}

/// The validity of results, some of which may be null.
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

/// The state of a group; the default if the group has no rows.
pub(super) fn state<T: Copy + Default>(states: &[T], at: usize) -> T {
    states.get(at).copied().unwrap_or_default()
}

/// The error for an argument of a type that the aggregate does not support.
#[cold]
pub(super) fn wrong(data_type: DataType) -> Error {
    Error::type_error(format!("an aggregate was given {data_type}"))
}

/// Downcasts states of the same aggregate. Errors: `type` for those of another one.
pub(super) fn like<S: State>(states: &dyn State) -> Result<&S> {
    (states as &dyn Any).downcast_ref().ok_or_else(unlike)
}

/// The error for merging states of different aggregates.
#[cold]
pub(super) fn unlike() -> Error {
    Error::type_error("states of different aggregates cannot be merged")
}
