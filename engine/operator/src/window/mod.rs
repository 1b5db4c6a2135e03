//! Window functions.

mod bounds;
pub mod operator;
mod results;
mod run;
mod summaries;
