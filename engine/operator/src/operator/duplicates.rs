//! Handling of equal rows.

/// What happens to a row that equals an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// It is returned, too.
    Keep,
    /// It is left out.
    Drop,
}
