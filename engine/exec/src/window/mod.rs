//! Window functions.

mod bounds;
pub(crate) mod operator;
mod results;
mod run;
mod summaries;
#[cfg(test)]
mod tests;
