//! Kernels over vectors and encoded values. Each has a fast path for some forms and falls back to
//! values.

mod comparison;
mod filter;
mod groups;
pub(crate) mod pattern;
pub(crate) mod predicate;
pub(crate) mod spans;
#[cfg(test)]
mod tests;

pub use comparison::Comparison;
pub use filter::filter;
pub(crate) use filter::filter_form;
pub use groups::{count_by_group, groups_of, sum_by_group, sum_floats};
pub use pattern::Pattern;
pub use predicate::Predicate;
