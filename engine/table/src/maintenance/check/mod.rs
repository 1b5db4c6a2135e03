//! `check`: reads everything and verifies the invariants. It reports violations and repairs
//! nothing.

pub(crate) mod agenda;
mod findings;
mod hashes;
mod indexes;
mod rows;
pub(crate) mod run;
mod runs;
