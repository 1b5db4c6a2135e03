//! Splits the filters of a scan by what can evaluate them without reading values.

pub(in crate::scan) mod clauses;
pub(in crate::scan) mod order_range;
pub(in crate::scan) mod prune;
