//! Handling of equal rows.

/// What happens to a row that equals an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Keep,
    Drop,
}
