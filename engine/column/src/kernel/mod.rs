//! Kernels over vectors. Each looks at the forms it is fast on and falls back to values.

mod filter;

pub use filter::{Comparison, filter_compare};
