//! Plans on several threads, through the host's `Parallelism`.
//!
//! What a scan has to read is cut into *morsels*: some neighbouring blocks of a segment, or a
//! rowstore. Each thread takes one morsel after the other and runs a *pipeline* over it: operators
//! built anew, which see that morsel only. So operators stay what they are on one thread, and threads
//! share nothing that changes but the number of the next morsel (Leis et al., *Morsel-Driven
//! Parallelism*, SIGMOD 2014).
//!
//! Invariants: rows come out in the order in which one thread would return them, and so do groups. Of
//! several errors, the one of the first morsel is reported, which one thread would have met. An input
//! that a plan shares is computed once, however many pipelines read it. Sums of doubles are joined in
//! no particular order: their last digits may differ from run to run. A thread that works on a morsel
//! gives no work to others. No lock is held while rows are read.

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
