//! What an entry of the registry consists of.

pub mod aggregate;
pub mod coerce;
pub mod definition;
pub mod doc;
pub mod grouping;
pub mod scalar;
pub mod window;
