//! What an entry of the registry consists of.

pub mod aggregate;
pub mod arguments;
pub mod binding;
pub mod call;
pub mod coerce;
pub mod doc;
pub mod scalar;
pub mod window;
