//! Runs logical plans: reads tables, and connects the operators of a plan.
//!
//! `build` turns a plan into operators, which are in `nacre-operator`; `scan` has those that read
//! tables, and `parallel` runs parts of a plan on several threads.
//!
//! Invariants: no operator knows the builder. Nothing here waits, writes tables, or knows SQL text.

mod build;
mod parallel;
mod scan;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use build::{build, build_collected, build_locating};
