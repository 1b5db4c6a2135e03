//! What is known about the filters of a scan: the clauses they consist of (`clauses`), in which
//! order and how to evaluate these (`adaptive`), and what can rule out blocks (`prune`,
//! `order_range`) without reading values.

pub(in crate::scan) mod adaptive;
pub(in crate::scan) mod clauses;
pub(in crate::scan) mod order_range;
pub(in crate::scan) mod prune;
