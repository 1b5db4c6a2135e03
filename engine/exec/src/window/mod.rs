//! Window functions.

mod bounds;
mod operator;
mod results;
mod summaries;
#[cfg(test)]
mod tests;

pub(crate) use operator::Window;
