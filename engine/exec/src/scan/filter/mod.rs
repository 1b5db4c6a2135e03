//! The filters of a scan, taken apart for what can answer them without reading values.

pub(in crate::scan) mod clauses;
pub(in crate::scan) mod prune;
