//! The tiers in a simulation of their own: one table, machines whose disks are cut off, lost or replaced, and a
//! blob store that fails, loses answers and applies what was given up later.
//!
//! One seed decides everything. The model is the list of all commits with the range of log positions in which
//! each one's record is. A database that is opened from the blobs says which position it has, and must have
//! exactly the commits before it; the position must not be lower than what a writer has been told is uploaded.

pub mod blobs;
mod branches;
pub mod machine;
mod older;
mod past;
mod reader;
pub mod run;
mod state;
mod statements;
