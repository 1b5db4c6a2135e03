//! The parts of a registry entry.

pub mod aggregate;
pub mod coerce;
pub mod created;
pub mod definition;
pub mod doc;
pub mod grouping;
pub mod scalar;
pub mod window;
