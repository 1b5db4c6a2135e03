//! Window functions.

mod bounds;
mod operator;
mod results;
mod summaries;
#[cfg(test)]
mod tests;
