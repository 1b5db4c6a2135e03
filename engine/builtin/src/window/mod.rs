//! The window functions, one entry each.

pub mod ignoring_nulls;
pub mod ranking;
pub mod value;
