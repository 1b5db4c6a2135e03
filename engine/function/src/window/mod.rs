//! The window functions, one entry each.

pub mod ranking;
pub mod value;
