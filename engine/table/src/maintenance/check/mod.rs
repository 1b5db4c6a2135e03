//! `check`: reads everything and compares it with what must hold. It reports, and repairs nothing.

mod findings;
mod hashes;
mod indexes;
mod rows;
pub(crate) mod run;
