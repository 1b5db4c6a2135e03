//! Runs plans on several threads, through the host's `Parallelism`.
//!
//! The input of a scan is divided into *morsels*: neighbouring blocks of a segment, or a rowstore.
//! Each thread takes one morsel after another and runs a *pipeline* over it: newly built operators
//! that see only that morsel. So operators are single-threaded, and threads share no mutable state
//! except the number of the next morsel (V. Leis et al., *Morsel-Driven Parallelism*, SIGMOD 2014).
//!
//! Invariants: rows and groups are returned in the order in which a single thread would return
//! them. Of several errors, that of the first morsel is reported, as on a single thread. A shared
//! input is computed once, however many pipelines read it. Sums of doubles are merged in no fixed
//! order, so their last digits may vary. A thread working on a morsel starts no parallel work. No
//! lock is held while rows are read.

mod aggregate;
mod gather;
mod pipeline;
mod plan;
mod sides;
#[cfg(test)]
pub(crate) mod tests;
mod workers;

pub(crate) use aggregate::ParallelAggregate;
pub(crate) use gather::Gather;
pub(crate) use pipeline::{BuildPipelines, PipelinePart};
pub(crate) use plan::{ParallelPlan, plan_of};
