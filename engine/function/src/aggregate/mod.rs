//! The aggregates, one entry each.

pub mod collected;
pub mod count;
pub mod extreme;
pub mod grouping;
pub mod json;
pub mod moments;
pub mod quantile;
mod rows;
pub mod sum;
