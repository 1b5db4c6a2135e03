//! Window functions.

mod bounds;
pub(crate) mod operator;
mod results;
mod summaries;
#[cfg(test)]
mod tests;
