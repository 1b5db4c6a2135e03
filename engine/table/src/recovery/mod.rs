//! Recovery: applies the log to nothing or, to follow it, to what readers see, and opens the files
//! that it names.

pub(crate) mod follow;
mod install;
pub(crate) mod open;
mod opened;
mod partition;
mod replay;
