//! Simulates the whole database on one host from a single seed: sessions that run inside each
//! other's calls, a disk that fails (its fault model is documented in [`disk`]), crashes at any
//! call, and a model that knows every correct result.
//!
//! [`plan::plan`] expands a seed into a plan, [`run::run`] runs it, and [`shrink::shrink`] shrinks
//! a failing plan.

pub mod background;
pub mod clock;
pub mod coverage;
pub mod disk;
pub mod fault;
pub mod follower;
pub mod found;
pub mod hook;
pub mod isolation;
pub mod model;
pub mod now;
pub mod op;
pub mod panics;
pub mod plan;
pub mod prepared;
pub mod references;
pub mod run;
pub mod scheduler;
pub mod session;
pub mod shrink;
pub mod subject;
pub mod tiers;
pub mod turns;
pub mod world;

/// Plants a bug in the engine, by name. Requires the feature `plant`.
pub fn plant(name: &str) -> Result<(), String> {
    #[cfg(feature = "plant")]
    {
        if nacredb::plant::set(name) { Ok(()) } else { Err(format!("no bug is called {name}")) }
    }
    #[cfg(not(feature = "plant"))]
    Err(format!("this build cannot plant {name}: it needs the feature `plant`"))
}
