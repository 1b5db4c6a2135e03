//! Recovery: replays the log and opens the files that it names.

pub(crate) mod open;
mod replay;
