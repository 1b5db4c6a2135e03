//! Adaptive filters, after Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*,
//! SIGMOD 2022, section 5.2: how selective and how expensive each clause is (`estimates`), is
//! measured at the head of each segment and decides in which order and by which strategy the
//! clauses are evaluated (`decision`). `learned` has the measurements of a scan, which its threads
//! share, and decides what is worth measuring. Evaluation itself is in `scan::source`.

pub(in crate::scan) mod decision;
pub(in crate::scan) mod estimates;
pub(in crate::scan) mod learned;
#[cfg(test)]
mod tests;
