//! Opening a database.

pub(crate) mod open;
