//! `check`: reads everything and verifies the invariants. It reports violations and repairs
//! nothing.

mod findings;
mod hashes;
mod indexes;
mod rows;
pub(crate) mod run;
mod runs;
