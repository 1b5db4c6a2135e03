//! Recovery: replays the log and opens the files that it names.

mod listed;
pub(crate) mod open;
mod replay;
