//! Whether an operator returns equal rows more than once.

/// What becomes of a row that equals an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Keep,
    Drop,
}
