//! Grouping rows by key: [`Grouper`] gives each distinct key an id.

mod codes;
mod dense;
mod grouper;
mod intern;
#[cfg(test)]
mod tests;

pub use grouper::{Grouper, Seen};
